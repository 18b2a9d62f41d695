//! Parts written by hand beside the libraries that could replace them (`docs/design/0019-hand-written-parts.md`), as
//! instruction counts of callgrind.
//!
//! Without arguments, or with the names of comparisons, the program measures and prints tables. It starts itself under
//! valgrind with `case …`, once for a low and once for a high number of iterations: the difference contains no start-up
//! cost. The other end of a connection is always the process that prints the tables, so its instructions do not count.

mod callgrind;
mod http_client;
mod http_server;
mod json;
mod load;
mod report;
#[expect(dead_code, reason = "the client needs one of its functions")]
#[path = "../../../../crates/toolyard-mcp-client/src/sanitize.rs"]
mod sanitize;
#[path = "../../../../crates/toolyard-mcp-client/src/sync.rs"]
mod sync;
mod transport;

use std::{error::Error, process::ExitCode};

use mimalloc::MiMalloc;

/// As in the `toolyard` binary.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["case", comparison, rest @ ..] => run_case(comparison, rest),
        comparisons => report::run(comparisons),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run_case(comparison: &str, arguments: &[&str]) -> Outcome {
    match (comparison, arguments) {
        ("http-client", [way, address, bytes, count]) => {
            block_on(http_client::run(way, address, bytes.parse()?, count.parse()?))
        }
        ("http-server", [way]) => block_on(http_server::run(way)),
        ("json", [task, way, message, count]) => json::run(task, way, message, count.parse()?),
        ("json-depth", [way]) => json::read_deep(way),
        _ => Err(format!("unknown case {comparison} {arguments:?}").into()),
    }
}

/// One thread, as `toolyard serve` has by default.
fn block_on(future: impl Future<Output = Outcome>) -> Outcome {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(future)
}
