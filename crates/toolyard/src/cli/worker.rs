//! Arguments of `toolyard worker`.

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard worker office --nats nats://nats.example:4222
  toolyard worker office                    NATS and credentials from [cluster] of toolyard.toml
  toolyard worker reports --concurrency 8   at most 8 calls at the same time

A worker serves the tools of the MCP servers and skills in its own settings to gateways on other machines. Start \
the same command on several machines to share the calls. A gateway serves the tools of a worker if its settings say so:

  [cluster]
  nats = \"nats://nats.example:4222\"
  workers = [\"office\"]

Like those of servers, definitions are pinned by the gateway: a changed tool is not called until \
`toolyard servers approve NAME` approves it there. SIGTERM lets running calls finish. The guide says which NATS \
permissions a worker needs.")]
pub(crate) struct WorkerArgs {
    /// Group that this worker belongs to: `a` to `z`, digits, `-` and `_`
    #[arg(value_name = "NAME")]
    pub(crate) group: String,
    /// NATS servers, separated by commas, in place of `[cluster] nats`
    #[arg(long, value_name = "URL")]
    pub(crate) nats: Option<String>,
    /// Calls that are executed at the same time; more are refused as busy, and gateways try another worker
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,
    /// Serve native tools such as `calculate`, too, which every gateway has itself
    #[arg(long)]
    pub(crate) native: bool,
}
