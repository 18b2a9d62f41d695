//! The words of `toolyard serve`.

use clap::{Args, builder::TypedValueParser as _};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard serve --http                     http://127.0.0.1:7300/mcp, with a token that is made once and kept
  toolyard serve --http 0.0.0.0:7300 --allow-host yard.example.com
  toolyard serve --stdio                    for clients that start us; `toolyard connect claude` sees to it
  toolyard serve --stdio --profile office   only what [serve.profiles.office] of your settings offers

Old and new clients are served at one address, each in the protocol it speaks. Profiles are at /mcp/NAME. Servers are started when one of \
their tools is called; nothing can be registered from outside. SIGTERM lets calls end that are under way.")]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7300", conflicts_with = "stdio")]
    pub(crate) http: Option<String>,
    /// Serve whoever started us, over standard input and output; the default unless on a terminal
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Let everybody in who gets here; only for addresses of this machine itself
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) no_auth: bool,
    /// Offer all tools one by one, three that find the others, or whichever costs less
    #[arg(long, value_enum)]
    pub(crate) surface: Option<SurfaceWord>,
    /// Only what this profile of your settings offers (over HTTP, profiles are at /mcp/NAME)
    #[arg(long, value_name = "NAME", conflicts_with = "http")]
    pub(crate) profile: Option<String>,
    /// Serve clients of the oldest kind too, at /sse
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) legacy_sse: bool,
    /// How many threads carry out requests
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256).map(usize::from))]
    pub(crate) threads: usize,
    /// A name under which clients may ask for this machine
    #[arg(long, value_name = "NAME", conflicts_with = "stdio")]
    pub(crate) allow_host: Vec<String>,
    /// An origin of web pages that may ask, such as https://example.com
    #[arg(long, value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) allow_origin: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SurfaceWord {
    /// All tools, one by one
    Full,
    /// Three tools that find, show and call the others
    Search,
    /// Whichever costs the client's model less
    Auto,
}
