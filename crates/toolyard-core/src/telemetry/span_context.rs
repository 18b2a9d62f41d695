//! [`SpanContext`]: identifies a span, as W3C's `traceparent`.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
    num::{NonZeroU64, NonZeroU128},
    str::FromStr,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

/// The flag of `traceparent` that says whether the trace is recorded.
const SAMPLED_FLAG: u8 = 1;

/// Identifies a span within a trace. Its text form is the value of `traceparent` in
/// [W3C Trace Context](https://www.w3.org/TR/trace-context/).
///
/// ```
/// use toolyard_core::telemetry::SpanContext;
///
/// let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let parent: SpanContext = text.parse().unwrap();
/// let child = parent.child();
/// assert_eq!(parent.to_string(), text);
/// assert_eq!(child.trace_id, parent.trace_id);
/// assert_ne!(child.span_id, parent.span_id);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: NonZeroU128,
    /// The span.
    pub span_id: NonZeroU64,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

/// The text is not a valid `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid traceparent")]
pub struct InvalidTraceparent;

impl SpanContext {
    /// The root of a new trace that is recorded.
    pub fn root() -> Self {
        let (high, low) = (random_id(), random_id());
        let trace_id = NonZeroU128::from(low) | u128::from(high.get()) << 64;
        Self { trace_id, span_id: random_id(), is_sampled: true }
    }

    /// The span of a trace context: its `traceparent`, if it has a valid one.
    pub fn from_trace_context(context: &[(String, String)]) -> Option<Self> {
        let (_, traceparent) = context.iter().find(|(key, _)| key == "traceparent")?;
        traceparent.parse().ok()
    }

    /// A new span in the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span_id: random_id(), ..*self }
    }
}

impl FromStr for SpanContext {
    type Err = InvalidTraceparent;

    fn from_str(text: &str) -> Result<Self, InvalidTraceparent> {
        let mut parts = text.split('-');
        let mut part = |length: usize| {
            let part = parts.next().filter(|part| part.len() == length).ok_or(InvalidTraceparent)?;
            let is_lower_hex = part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            if is_lower_hex { Ok(part) } else { Err(InvalidTraceparent) }
        };
        let number = |text| u128::from_str_radix(text, 16).map_err(|_| InvalidTraceparent);
        let (version, trace_id) = (part(2)?, number(part(32)?)?);
        let span_id = u64::from_str_radix(part(16)?, 16).map_err(|_| InvalidTraceparent)?;
        let flags = u8::from_str_radix(part(2)?, 16).map_err(|_| InvalidTraceparent)?;
        // Later versions may append fields; version ff is forbidden.
        if version == "ff" || (version == "00" && parts.next().is_some()) {
            return Err(InvalidTraceparent);
        }
        Ok(Self {
            trace_id: NonZeroU128::new(trace_id).ok_or(InvalidTraceparent)?,
            span_id: NonZeroU64::new(span_id).ok_or(InvalidTraceparent)?,
            is_sampled: flags & SAMPLED_FLAG != 0,
        })
    }
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.is_sampled { SAMPLED_FLAG } else { 0 };
        write!(f, "00-{:032x}-{:016x}-{flags:02x}", self.trace_id, self.span_id)
    }
}

/// A number that is unique for all practical purposes: a keyed hash of a counter, the key being random per process. Ids of
/// spans need no more, and are made for every call.
fn random_id() -> NonZeroU64 {
    static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        if let Some(id) = NonZeroU64::new(HASHER.hash_one(number)) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn malformed_values_are_refused() {
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333é-01",
        ] {
            assert_eq!(text.parse::<SpanContext>(), Err(InvalidTraceparent), "{text}");
        }
    }

    #[test]
    fn values_of_later_versions_are_read() {
        let text = "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-more";
        let context: SpanContext = text.parse().unwrap();
        assert_eq!(context.to_string(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    }

    #[test]
    fn ids_differ() {
        let roots: HashSet<SpanContext> = std::iter::repeat_with(SpanContext::root).take(1_000).collect();
        assert_eq!(roots.len(), 1_000);
        let text = SpanContext::root().to_string();
        assert_eq!(text.parse::<SpanContext>().unwrap().to_string(), text);
    }
}
