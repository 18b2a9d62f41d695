//! The tracing log on stderr, with secrets redacted.

use std::io::Write;

use tracing::Subscriber;
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// Libraries that log whole provider responses, which may contain keys that redaction does not recognize.
const MUTED_LIBRARIES: [&str; 1] = ["genai"];

/// Starts logging to stderr: warnings by default, decisions with `-v`, everything with `-vv`, or as `TOOLYARD_LOG` says.
pub(crate) fn init(verbosity: u8) {
    let directives = std::env::var("TOOLYARD_LOG").ok();
    subscriber(filter(verbosity, directives.as_deref()), || RedactingStderr).init();
}

fn filter(verbosity: u8, directives: Option<&str>) -> EnvFilter {
    let level = match verbosity {
        // Commands report failures of servers themselves. A directive covers all crates whose names begin with it.
        0 => "warn,toolyard_mcp=error",
        1 => "toolyard=debug,toolyard_hub=debug,toolyard_mcp=debug,toolyard_tools=debug,warn",
        _ => "trace",
    };
    directives
        .and_then(|directives| EnvFilter::try_new(directives).ok())
        .unwrap_or_else(|| EnvFilter::new(level))
}

/// A subscriber with this filter that never logs the muted libraries.
fn subscriber(
    filter: EnvFilter,
    writer: impl for<'w> MakeWriter<'w> + Send + Sync + 'static,
) -> impl Subscriber + Send + Sync {
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(false).finish();
    log.with(filter_fn(|metadata| !is_muted(metadata.target())))
}

fn is_muted(target: &str) -> bool {
    let library = target.split_once("::").map_or(target, |(library, _)| library);
    MUTED_LIBRARIES.contains(&library)
}

struct RedactingStderr;

impl Write for RedactingStderr {
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
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn log_output(verbosity: u8, directives: Option<&str>) -> String {
        let buffer = LogBuffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(
            subscriber(filter(verbosity, directives), move || writer.clone()),
            || {
                tracing::error!(target: "genai::webc::web_client", "a provider response");
                tracing::error!(target: "genai", "a provider response");
                tracing::warn!(target: "genaion", "another library");
                tracing::error!("our own event");
            },
        );
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn muted_libraries_are_never_logged_whatever_the_filter() {
        for (verbosity, directives) in [
            (0, None),
            (1, None),
            (2, None),
            (0, Some("trace")),
            (0, Some("genai=trace,genai::webc=trace,warn")),
        ] {
            let logged = log_output(verbosity, directives);
            assert!(!logged.contains("a provider response"), "{verbosity} {directives:?}: {logged}");
            assert!(
                logged.contains("another library") && logged.contains("our own event"),
                "{verbosity} {directives:?}: {logged}"
            );
        }
    }
}
