//! The command line: one file per command or command group.

mod ask;
mod audit;
mod call;
mod callers;
mod connect;
mod import;
mod models;
mod open;
mod policy;
mod runs;
mod secrets;
mod serve;
mod servers;
mod service;
mod settings;
mod skills;
mod store;
mod tools;
mod top;
mod worker;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::terminal::logging::LogFormat;

pub(crate) use ask::{AskArgs, ChatArgs};
pub(crate) use audit::{AuditCommand, AuditFilter};
pub(crate) use call::CallArgs;
pub(crate) use callers::{AddCallerArgs, CallersCommand};
pub(crate) use connect::ConnectArgs;
pub(crate) use import::ImportArgs;
pub(crate) use models::{AddModelArgs, ModelsCommand};
pub(crate) use open::OpenArgs;
pub(crate) use policy::PolicyCommand;
pub(crate) use runs::{ApprovalArgs, ResumeArgs, RunsCommand, StepResolution};
pub(crate) use secrets::SecretsCommand;
pub(crate) use serve::ServeArgs;
pub(crate) use servers::{AddServerArgs, EditServerArgs, ServersCommand};
pub(crate) use service::{InstallServiceArgs, ServiceCommand};
pub(crate) use settings::SettingsCommand;
pub(crate) use skills::SkillsCommand;
pub(crate) use store::StoreCommand;
pub(crate) use tools::{SearchToolsArgs, ToolsCommand};
pub(crate) use top::TopArgs;
pub(crate) use worker::WorkerArgs;

const EXAMPLES: &str = "\
Examples:
  toolyard import                                            import MCP servers from your editors
  toolyard connect claude                                    point Claude Code at Toolyard
  toolyard serve --http                                      serve all tools over MCP
  toolyard open                                              open the console of the running gateway
  toolyard servers list                                      list MCP servers and their status
  toolyard tools search \"read a spreadsheet\"                 find tools
  toolyard call calculate '{\"expression\":\"2^10\"}'            call a tool
  toolyard call --capability time                            call any tool with the capability `time`
  toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b
  toolyard ask \"what is 2^10, and what time is it in Tokyo?\"  ask an agent
  toolyard chat                                              chat with an agent
  toolyard doctor                                            check settings, servers and models

Data goes to stdout, messages go to stderr.
Exit codes: 0 success · 1 failed · 2 usage error · 3 unreachable · 4 denied by policy or user · 5 outcome unknown · \
6 awaiting approval · 130 interrupted";

/// A gateway that gives AI agents one endpoint for all their tools
#[derive(Debug, Parser)]
#[command(name = "toolyard", version, about, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    /// Settings file to use instead of the nearest toolyard.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print data as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log routing and execution decisions to stderr; -vv logs everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Format of the log and of messages on stderr
    #[arg(long, global = true, value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List, show and search tools
    #[command(subcommand)]
    Tools(ToolsCommand),
    /// Call a tool
    Call(CallArgs),
    /// Ask an agent, which plans, calls tools, verifies results and answers
    Ask(AskArgs),
    /// Chat with an agent
    Chat(ChatArgs),
    /// List, add, remove and test language models
    #[command(subcommand)]
    Models(ModelsCommand),
    /// List, show and trust skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// List, add and test MCP servers, and approve their changed tools
    #[command(subcommand)]
    Servers(ServersCommand),
    /// Store, list and remove secrets that servers need, encrypted
    #[command(subcommand)]
    Secrets(SecretsCommand),
    /// Import MCP servers from Claude, Cursor, VS Code, Codex, Gemini or a registry's server.json
    Import(ImportArgs),
    /// Serve all tools over MCP, on stdio or HTTP
    Serve(ServeArgs),
    /// Run the gateway as a service of systemd or launchd
    #[command(subcommand)]
    Service(ServiceCommand),
    /// Serve this machine's tools to gateways over NATS
    Worker(WorkerArgs),
    /// Add, list and revoke callers with API keys
    #[command(subcommand)]
    Callers(CallersCommand),
    /// Watch the calls, servers and runs of a running gateway
    Top(TopArgs),
    /// Open the console of the running gateway in a browser
    Open(OpenArgs),
    /// Point Claude, Cursor, VS Code, Codex or Gemini at Toolyard in place of the servers imported from them
    Connect(ConnectArgs),
    /// Show, search, verify and export the audit log of tool calls
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Validate policies: who may call which tool
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show how much of the quotas is used, and when it is free again
    Quotas,
    /// List, show, resume, approve and cancel agent runs
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Check, back up, export, import and vacuum the store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Trust this project's settings files with their current content
    Trust {
        /// Skip the confirmation prompt
        #[arg(short, long)]
        yes: bool,
    },
    /// Check settings, tools, servers and models, and suggest fixes
    Doctor,
    /// Print what toolyard.toml may contain
    #[command(subcommand)]
    Settings(SettingsCommand),
    /// Print a shell completion script, for example: source <(toolyard completions bash)
    ///
    /// The shell then completes the names of tools, servers, models and agents, too; no server is started for it.
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[cfg(test)]
mod command_reference_tests;
#[cfg(test)]
mod wording_tests;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
