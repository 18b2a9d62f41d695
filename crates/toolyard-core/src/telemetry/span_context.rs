//! [`SpanContext`]: identifies a span, as W3C's `traceparent`.

use std::{
    fmt,
    num::{NonZeroU64, NonZeroU128},
    str::FromStr,
};

/// The flag of `traceparent` that says whether the trace is recorded.
const SAMPLED_FLAG: u8 = 1;
const TRACEPARENT_BYTES: usize = 55;
/// Version 00, with dashes where they belong.
const TRACEPARENT_TEMPLATE: &[u8; TRACEPARENT_BYTES] =
    b"00-00000000000000000000000000000000-0000000000000000-00";
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

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

/// The header or variable is not a W3C trace context.
///
/// Remedy: send `traceparent` as `00-TRACE_ID-SPAN_ID-FLAGS`, or omit it.
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

    /// The value of `traceparent`.
    pub fn to_traceparent(&self) -> Traceparent {
        let mut text = *TRACEPARENT_TEMPLATE;
        let [high, low] = split(self.trace_id.get());
        let flags = if self.is_sampled { SAMPLED_FLAG } else { 0 };
        let fields = [(3, 16, high), (19, 16, low), (36, 16, self.span_id.get()), (53, 2, u64::from(flags))];
        for (start, length, number) in fields {
            if let Some(output) = text.get_mut(start..start + length) {
                write_hex(output, number);
            }
        }
        Traceparent(text)
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
        let bytes = text.as_bytes();
        let (version, rest) = field::<2>(bytes)?;
        let (high, rest) = field::<16>(after_dash(rest)?)?;
        let (low, rest) = field::<16>(rest)?;
        let (span_id, rest) = field::<16>(after_dash(rest)?)?;
        let (flags, rest) = field::<2>(after_dash(rest)?)?;
        // Later versions may append fields; version ff is forbidden.
        let is_complete = rest.is_empty() || (version != 0 && rest.starts_with(b"-"));
        if version == 0xff || !is_complete {
            return Err(InvalidTraceparent);
        }
        Ok(Self {
            trace_id: NonZeroU128::new(u128::from(high) << 64 | u128::from(low)).ok_or(InvalidTraceparent)?,
            span_id: NonZeroU64::new(span_id).ok_or(InvalidTraceparent)?,
            is_sampled: flags & u64::from(SAMPLED_FLAG) != 0,
        })
    }
}

/// Reads `N` lower-case hexadecimal digits; also returns what follows them. It is called for every request.
fn field<const N: usize>(bytes: &[u8]) -> Result<(u64, &[u8]), InvalidTraceparent> {
    let (digits, rest) = bytes.split_first_chunk::<N>().ok_or(InvalidTraceparent)?;
    let mut value = 0;
    for digit in digits {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return Err(InvalidTraceparent),
        };
        value = value << 4 | u64::from(digit);
    }
    Ok((value, rest))
}

fn after_dash(bytes: &[u8]) -> Result<&[u8], InvalidTraceparent> {
    bytes.strip_prefix(b"-").ok_or(InvalidTraceparent)
}

impl fmt::Display for SpanContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_traceparent().as_str())
    }
}

/// The text of a `traceparent`, without an allocation.
#[derive(Debug, Clone, Copy)]
pub struct Traceparent([u8; TRACEPARENT_BYTES]);

impl Traceparent {
    /// The text.
    pub fn as_str(&self) -> &str {
        // Only digits and dashes are written.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// The higher and the lower half of an id.
fn split(id: u128) -> [u64; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the halves are taken on purpose")]
    [(id >> 64) as u64, id as u64]
}

/// Writes the lower-case hexadecimal digits of a number, as many as there is space for.
fn write_hex(output: &mut [u8], mut number: u64) {
    for place in output.iter_mut().rev() {
        let digit = number & 0xf;
        *place = HEX_DIGITS.get(usize::try_from(digit).unwrap_or_default()).copied().unwrap_or_default();
        number >>= 4;
    }
}

/// A number that is unique for all practical purposes. Ids of spans need no more, and are made for every call.
fn random_id() -> NonZeroU64 {
    loop {
        if let Some(id) = NonZeroU64::new(fastrand::u64(..)) {
            return id;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

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

    proptest! {
        #[test]
        fn the_text_is_read_as_it_was_written(trace_id in 1_u128.., span_id in 1_u64.., is_sampled: bool) {
            let context = SpanContext {
                trace_id: NonZeroU128::new(trace_id).unwrap(),
                span_id: NonZeroU64::new(span_id).unwrap(),
                is_sampled,
            };
            let text = context.to_string();
            prop_assert_eq!(&text, &format!("00-{trace_id:032x}-{span_id:016x}-0{}", u8::from(is_sampled)));
            prop_assert_eq!(text.parse(), Ok(context));
        }
    }

    #[test]
    fn ids_differ() {
        let roots: HashSet<SpanContext> = std::iter::repeat_with(SpanContext::root).take(1_000).collect();
        assert_eq!(roots.len(), 1_000);
        let text = SpanContext::root().to_string();
        assert_eq!(text.parse::<SpanContext>().unwrap().to_string(), text);
    }
}
