//! Arguments of `toolyard serve`.

use clap::{Args, builder::TypedValueParser as _};
use toolyard::settings::SurfaceSetting;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  toolyard serve --http                     http://127.0.0.1:7300/mcp, with a generated token
  toolyard serve --http 7411                another port of this machine
  toolyard serve --http 0.0.0.0:7300 --allow-host tools.example.com
  toolyard serve --stdio                    for clients that start Toolyard; see `toolyard connect`
  toolyard serve --stdio --profile office   only the tools of [serve.profiles.office]

Clients of every MCP revision use the same endpoint; profiles are at /mcp/NAME. Servers start on the first call of one \
of their tools. SIGTERM lets in-flight calls finish; over HTTP, SIGHUP reloads the settings, unless run on a terminal.")]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:7300", value_parser = listen_address, conflicts_with = "stdio")]
    pub(crate) http: Option<String>,
    /// Serve on standard input and output; the default unless run on a terminal
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Disable authentication (loopback addresses only)
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) no_auth: bool,
    /// How tools are offered to clients
    #[arg(long, value_enum)]
    pub(crate) surface: Option<SurfaceSetting>,
    /// Offer only the tools of this profile (over HTTP, profiles are at /mcp/NAME)
    #[arg(long, value_name = "NAME", conflicts_with = "http")]
    pub(crate) profile: Option<String>,
    /// Also serve the HTTP+SSE transport of MCP 2024-11-05, at /sse
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) legacy_sse: bool,
    /// Number of worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256).map(usize::from))]
    pub(crate) threads: usize,
    /// Additional host name by which clients may reach this server
    #[arg(long, value_name = "HOST", conflicts_with = "stdio")]
    pub(crate) allow_host: Vec<String>,
    /// Origin of web pages that may connect, such as https://example.com
    #[arg(long, value_name = "ORIGIN", conflicts_with = "stdio")]
    pub(crate) allow_origin: Vec<String>,
}

/// An address to listen on: `HOST:PORT`, or a port of the loopback address.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a clap value parser")]
pub(super) fn listen_address(text: &str) -> Result<String, std::convert::Infallible> {
    let port = text.strip_prefix(':').unwrap_or(text);
    Ok(if port.parse::<u16>().is_ok() { format!("127.0.0.1:{port}") } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_this_machine() {
        for (text, address) in
            [("7411", "127.0.0.1:7411"), (":7411", "127.0.0.1:7411"), ("[::1]:80", "[::1]:80")]
        {
            assert_eq!(listen_address(text).unwrap(), address);
        }
    }
}
