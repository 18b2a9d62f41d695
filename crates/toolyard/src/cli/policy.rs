//! Arguments of `toolyard policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Validate policy files
    Check {
        /// Policy files; those of the settings if there are none
        files: Vec<PathBuf>,
    },
    /// Compare the decisions of policies with expected ones
    Test {
        /// File with test cases, as TOML or JSON
        file: PathBuf,
    },
    /// Show what policies and patterns decide about a call, and why
    Explain(ExplainArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Who calls: local, anonymous or ISSUER#SUBJECT, such as toolyard:api-key#ci
    #[arg(long, value_name = "ID", default_value = "local")]
    pub(crate) caller: String,
    /// A group of the caller; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// A scope of the caller; can be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) scope: Vec<String>,
    /// The claims of the caller's token, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) claims: Option<String>,
    /// The tool: NAME or NAME@SOURCE
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: String,
    /// The arguments of the call, as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub(crate) arguments: String,
    /// The agent that makes the call
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The profile of the endpoint
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) profile: String,
}
