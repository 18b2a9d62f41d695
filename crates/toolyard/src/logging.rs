//! The log on standard error, without secrets.

use std::io::Write;

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// Libraries that write whole answers of providers into the log, in which a key may stand that no rule recognises.
const SILENT: [&str; 1] = ["genai"];

/// Logs go to stderr: warnings by default, decisions with `-v`, everything with `-vv`.
pub(crate) fn start(verbose: u8) {
    let wanted = std::env::var("TOOLYARD_LOG").ok();
    log(filter(verbose, wanted.as_deref()), || Redacting).init();
}

fn filter(verbose: u8, wanted: Option<&str>) -> EnvFilter {
    let level = match verbose {
        // What servers do wrong is told by the commands themselves.
        0 => "warn,toolyard_mcp=error",
        1 => "toolyard=debug,toolyard_hub=debug,toolyard_mcp=debug,toolyard_tools=debug,warn",
        _ => "trace",
    };
    wanted.and_then(|wanted| EnvFilter::try_new(wanted).ok()).unwrap_or_else(|| EnvFilter::new(level))
}

/// The log, whatever somebody wants to see of it without those that are silent.
fn log(
    filter: EnvFilter,
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(false).finish();
    log.with(filter_fn(|about| !is_silent(about.target())))
}

fn is_silent(target: &str) -> bool {
    let library = target.split_once("::").map_or(target, |(library, _)| library);
    SILENT.contains(&library)
}

/// Standard error, with secrets taken out of every line of the log.
struct Redacting;

impl Write for Redacting {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        std::io::stderr().write_all(toolyard_core::redact(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(verbose: u8, wanted: Option<&str>) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        tracing::subscriber::with_default(log(filter(verbose, wanted), move || writer.clone()), || {
            tracing::error!(target: "genai::webc::web_client", "the body of an answer");
            tracing::error!(target: "genai", "the body of an answer");
            tracing::warn!(target: "genaion", "somebody else");
            tracing::error!("something of ours");
        });
        String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn libraries_that_log_answers_of_providers_are_silent_whatever_is_wanted() {
        for (verbose, wanted) in [
            (0, None),
            (1, None),
            (2, None),
            (0, Some("trace")),
            (0, Some("genai=trace,genai::webc=trace,warn")),
        ] {
            let logged = logged(verbose, wanted);
            assert!(!logged.contains("the body of an answer"), "{verbose} {wanted:?}: {logged}");
            assert!(
                logged.contains("somebody else") && logged.contains("something of ours"),
                "{verbose} {wanted:?}: {logged}"
            );
        }
    }
}
