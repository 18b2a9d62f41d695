//! Arguments of `toolyard callers`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum CallersCommand {
    /// Add a caller and print its API key, once
    Add(AddCallerArgs),
    /// List callers and what they may use
    List,
    /// Give a caller another API key and print it; the previous one is invalid at once
    Rotate {
        /// Name of the caller
        name: String,
        /// How long the key is valid, for example 90d; by default for ever
        #[arg(long, value_name = "DURATION")]
        expires: Option<String>,
    },
    /// Revoke a caller for ever; running gateways refuse it within a second
    Revoke {
        /// Name of the caller
        name: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddCallerArgs {
    /// Name of the caller, in the audit log too; it is never given to another caller
    pub(crate) name: String,
    /// Only this profile; / is the main endpoint. May be repeated; by default all
    #[arg(long = "profile", value_name = "PROFILE")]
    pub(crate) profiles: Vec<String>,
    /// Only this agent. May be repeated; by default all
    #[arg(long = "agent", value_name = "AGENT")]
    pub(crate) agents: Vec<String>,
    /// How long the key is valid, for example 90d; by default for ever
    #[arg(long, value_name = "DURATION")]
    pub(crate) expires: Option<String>,
}
