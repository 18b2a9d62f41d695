//! The tracing log on stderr, with secrets redacted and repetitions counted.
//!
//! `line` is one line as text or JSON, `deduplicator` decides which lines are written, `request_log` logs requests.

mod deduplicator;
mod line;
mod request_log;

use std::{
    io::Write as _,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    EnvFilter, Layer,
    layer::{Context, SubscriberExt as _},
    util::SubscriberInitExt as _,
};

use self::{
    deduplicator::Deduplicator,
    line::{FieldValue, LogLine, Repetition},
};

use super::live_region::print_above;

pub(crate) use line::{LogFormat, format_time};
pub(crate) use request_log::RequestLog;

/// Identical warnings and errors are reported once in this time.
const REPETITION_WINDOW: Duration = Duration::from_secs(10);
/// The target of state changes of servers, which `serve` logs.
pub(crate) const SERVERS_TARGET: &str = "toolyard::servers";
/// The target of reloaded settings.
pub(crate) const SETTINGS_TARGET: &str = "toolyard::settings";
/// The target of changes of the store's latency.
pub(crate) const STORE_TARGET: &str = "toolyard::store";

static LOG: OnceLock<Arc<Log>> = OnceLock::new();

/// Starts logging to stderr: warnings by default, decisions with `-v`, everything with `-vv`, or as `TOOLYARD_LOG` says.
pub(crate) fn init(verbosity: u8, is_serving: bool, format: LogFormat) {
    let directives = std::env::var("TOOLYARD_LOG").ok();
    let log = Arc::new(Log::new(format, Box::new(write_to_stderr)));
    subscriber(filter(verbosity, is_serving, directives.as_deref()), Arc::clone(&log)).init();
    let _ = LOG.set(log);
}

/// Writes what was counted and not reported yet; called before the process ends.
pub(crate) fn flush() {
    if let Some(log) = LOG.get() {
        log.report(Deduplicator::take_all);
    }
}

/// A message outside of the log as a log line in JSON, with its hint.
pub(crate) fn json_message(level: Level, message: &str, hint: Option<&str>) -> String {
    let fields = hint.map(|hint| ("hint", FieldValue::Text(hint.to_owned()))).into_iter().collect();
    let line = LogLine { level, target: "toolyard".to_owned(), message: message.to_owned(), fields };
    line.render(LogFormat::Json, jiff::Timestamp::now(), None)
}

fn filter(verbosity: u8, is_serving: bool, directives: Option<&str>) -> EnvFilter {
    // A directive covers all targets that begin with it. The store says itself that its database fails, once, where the pool of
    // connections has a line for each.
    let level = match (verbosity, is_serving) {
        // Commands report failures of servers and calls themselves.
        (0, false) => "warn,toolyard_mcp=error,toolyard_hub::upstream=off,sqlx=error",
        // `serve` logs the states of servers itself.
        (0, true) => {
            "warn,toolyard_mcp_client::lifecycle=error,toolyard::servers=info,toolyard::settings=info,toolyard::store=info,sqlx=error"
        }
        (1, _) => "toolyard=debug,toolyard_hub=debug,toolyard_mcp=debug,toolyard_tools=debug,warn",
        _ => "trace",
    };
    directives
        .and_then(|directives| EnvFilter::try_new(directives).ok())
        .unwrap_or_else(|| EnvFilter::new(level))
}

fn subscriber(filter: EnvFilter, log: Arc<Log>) -> impl Subscriber + Send + Sync {
    tracing_subscriber::registry().with(LogLayer(log)).with(filter)
}

fn write_to_stderr(line: &str) {
    // One write, so that lines of several threads do not mix. There is nowhere to report a failure.
    let _ = print_above(|| std::io::stderr().write_all(format!("{line}\n").as_bytes()));
}

type WriteLine = dyn Fn(&str) + Send + Sync;

/// Where lines go, and which of them.
struct Log {
    format: LogFormat,
    write: Box<WriteLine>,
    state: Mutex<LogState>,
}

struct LogState {
    deduplicator: Deduplicator<LogLine>,
    /// Whether a thread reports repetitions at the end of their window.
    has_reporter: bool,
}

struct LogLayer(Arc<Log>);

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        self.0.write_due();
        let line = LogLine::of(event);
        // Of lower levels, every line matters: somebody asked for them.
        if line.level > Level::WARN || self.0.admit(event.metadata().name(), &line) {
            self.0.write(&line, None);
        }
    }
}

impl Log {
    fn new(format: LogFormat, write: Box<WriteLine>) -> Self {
        let state = LogState { deduplicator: Deduplicator::new(REPETITION_WINDOW), has_reporter: false };
        Self { format, write, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock()
    }

    fn write(&self, line: &LogLine, repetition: Option<Repetition>) {
        (self.write)(&line.render(self.format, jiff::Timestamp::now(), repetition));
    }

    /// Whether to write a line. If it is counted, a thread reports it later.
    fn admit(self: &Arc<Self>, place: &'static str, line: &LogLine) -> bool {
        let mut state = self.lock();
        let is_written = state.deduplicator.admit(place, line, Instant::now());
        if !is_written && !state.has_reporter {
            let log = Arc::clone(self);
            let reporter = std::thread::Builder::new().name("log-reporter".to_owned());
            state.has_reporter = reporter.spawn(move || log.report_until_quiet()).is_ok();
        }
        is_written
    }

    fn report_until_quiet(&self) {
        loop {
            std::thread::sleep(REPETITION_WINDOW / 10);
            self.write_due();
            let mut state = self.lock();
            if !state.deduplicator.has_unreported() {
                state.has_reporter = false;
                return;
            }
        }
    }

    fn write_due(&self) {
        self.report(Deduplicator::take_due);
    }

    fn report(&self, take: impl FnOnce(&mut Deduplicator<LogLine>, Instant) -> Vec<(LogLine, Repetition)>) {
        let due = take(&mut self.lock().deduplicator, Instant::now());
        for (line, repetition) in due {
            self.write(&line, Some(repetition));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    /// What is logged while `events` runs.
    fn log_output(filter: EnvFilter, format: LogFormat, events: impl FnOnce()) -> String {
        let lines = Lines::default();
        let written = lines.clone();
        let log = Arc::new(Log::new(format, Box::new(move |line| written.0.lock().push(line.to_owned()))));
        tracing::subscriber::with_default(subscriber(filter, Arc::clone(&log)), events);
        log.report(Deduplicator::take_all);
        lines.0.lock().join("\n")
    }

    #[test]
    fn serving_logs_failed_calls_refused_clients_and_states_of_servers() {
        let events = || {
            tracing::warn!(target: "toolyard_hub::upstream", "call failed");
            tracing::warn!(target: "toolyard_mcp_server::http::connection", "access denied");
            tracing::info!(target: SERVERS_TARGET, "fake: ready");
            tracing::warn!(target: "toolyard_mcp_client::lifecycle::supervisor", "server down");
        };
        let serving = log_output(filter(0, true, None), LogFormat::Text, events);
        assert!(
            ["call failed", "access denied", "fake: ready"].iter().all(|line| serving.contains(line))
                && !serving.contains("server down"),
            "{serving}"
        );
        assert_eq!(log_output(filter(0, false, None), LogFormat::Text, events), "");
    }

    #[test]
    fn identical_warnings_are_counted_in_both_formats() {
        let events = || (0..135).for_each(|_| tracing::error!(error = "disk full", "failed to write"));
        let text = log_output(EnvFilter::new("warn"), LogFormat::Text, events);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("(repeated 134 times in the last 1 s)"), "{text}");
        let json = log_output(EnvFilter::new("warn"), LogFormat::Json, events);
        let lines: Vec<serde_json::Value> =
            json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((lines.len(), &lines[0]["fields"]["error"]), (2, &"disk full".into()));
        assert_eq!((&lines[1]["repeated"], &lines[1]["level"]), (&134.into(), &"error".into()));
        let debug = || (0..3).for_each(|_| tracing::debug!("a decision"));
        assert_eq!(log_output(EnvFilter::new("debug"), LogFormat::Text, debug).lines().count(), 3);
    }
}
