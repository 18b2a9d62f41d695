//! Decisions about a call, one line each, for the debug log and for `--explain`.

use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

/// One decision: at which stage, about what, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// `route`, `order`, `strategy`, `call`, `retry`, `merge`, `result`.
    pub stage: &'static str,
    /// The tool or source concerned.
    pub subject: String,
    /// The decision and its reason.
    pub detail: String,
    /// Elapsed time, if measured.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub elapsed: Option<Duration>,
}

fn milliseconds<S: serde::Serializer>(elapsed: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&elapsed.map(|time| time.as_secs_f64() * 1e3))
}

/// The decisions of one call, in order.
#[derive(Debug, Default)]
pub struct DecisionLog(Mutex<Vec<Decision>>);

impl DecisionLog {
    /// The decisions so far.
    pub fn decisions(&self) -> Vec<Decision> {
        self.0.lock().clone()
    }

    fn add(&self, decision: Decision) {
        self.0.lock().push(decision);
    }
}

/// Records a decision; the text is built only if it is logged or collected.
pub(crate) fn log_decision(
    log: Option<&DecisionLog>,
    call: &str,
    stage: &'static str,
    elapsed: Option<Duration>,
    describe: impl FnOnce() -> (String, String),
) {
    let logged = tracing::enabled!(target: "toolyard_hub", tracing::Level::DEBUG);
    if log.is_none() && !logged {
        return;
    }
    let (subject, detail) = describe();
    if logged {
        let milliseconds = elapsed.map(|time| time.as_secs_f64() * 1e3);
        tracing::debug!(target: "toolyard_hub", call, stage, subject, detail, milliseconds, "decided");
    }
    if let Some(log) = log {
        log.add(Decision { stage, subject, detail, elapsed });
    }
}
