//! Every decision about a call as one line, for the log and for whoever asks to have it explained.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde::Serialize;

/// One decision: at which stage, about what, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// `route`, `order`, `strategy`, `call`, `retry`, `merge`, `result`.
    pub stage: &'static str,
    /// The tool or source it is about.
    pub subject: String,
    /// What was decided and why.
    pub detail: String,
    /// How long it took, where it took time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "milliseconds")]
    pub elapsed: Option<Duration>,
}

fn milliseconds<S: serde::Serializer>(elapsed: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&elapsed.map(|time| time.as_secs_f64() * 1e3))
}

/// The decisions of one call, in the order they were made.
#[derive(Debug, Default)]
pub struct Trail(Mutex<Vec<Decision>>);

impl Trail {
    /// What was decided so far.
    pub fn decisions(&self) -> Vec<Decision> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, decision: Decision) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(decision);
    }
}

/// Takes note of a decision; the words are only made when somebody listens.
pub(crate) fn note(
    trail: Option<&Trail>,
    call: &str,
    stage: &'static str,
    elapsed: Option<Duration>,
    words: impl FnOnce() -> (String, String),
) {
    let logged = tracing::enabled!(target: "toolyard_hub", tracing::Level::DEBUG);
    if trail.is_none() && !logged {
        return;
    }
    let (subject, detail) = words();
    if logged {
        let milliseconds = elapsed.map(|time| time.as_secs_f64() * 1e3);
        tracing::debug!(target: "toolyard_hub", call, stage, subject, detail, milliseconds, "decided");
    }
    if let Some(trail) = trail {
        trail.add(Decision { stage, subject, detail, elapsed });
    }
}
