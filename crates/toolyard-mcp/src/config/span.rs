//! Lengths of time as a person writes them.

use std::{borrow::Cow, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A length of time, written as a person would: `30s`, `1m 30s`, `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// A text that is no length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not a length of time; write it like `30s`, `2m` or `500ms`")]
pub struct NotASpan;

impl FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let parsed: Result<jiff::SignedDuration, _> = text.trim().parse();
        let time = parsed.ok().and_then(|time| Duration::try_from(time).ok()).filter(|time| !time.is_zero());
        time.map(Self).ok_or(NotASpan)
    }
}

impl TryFrom<String> for Span {
    type Error = NotASpan;

    fn try_from(text: String) -> Result<Self, NotASpan> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        // Only a time of more than 292 billion years does not fit.
        format!("{:#}", jiff::SignedDuration::try_from(span.0).unwrap_or(jiff::SignedDuration::MAX))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "examples": ["30s", "2m", "500ms"]})
    }
}

/// How long something may be idle: a length of time, or `never` for no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IdleStop {
    /// It is never stopped for being idle.
    Never,
    /// It is stopped after this time.
    After(Span),
}

impl TryFrom<String> for IdleStop {
    type Error = NotASpan;

    fn try_from(text: String) -> Result<Self, NotASpan> {
        if text.trim() == "never" { Ok(Self::Never) } else { text.parse().map(Self::After) }
    }
}

impl From<IdleStop> for String {
    fn from(stop: IdleStop) -> Self {
        match stop {
            IdleStop::Never => "never".to_owned(),
            IdleStop::After(span) => span.into(),
        }
    }
}

impl JsonSchema for IdleStop {
    fn schema_name() -> Cow<'static, str> {
        "IdleStop".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "examples": ["5m", "never"]})
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_as_people_write_them() {
        assert_eq!("60s".parse(), Ok(Span(Duration::from_secs(60))));
        assert_eq!(String::from(Span(Duration::from_secs(300))), "5m");
        assert_eq!(String::from(Span(Duration::from_millis(1_500))), "1s 500ms");
        assert_eq!(IdleStop::try_from("never".to_owned()), Ok(IdleStop::Never));
        for wrong in ["", "0s", "-5s", "soon", "30", "1e99s", "never"] {
            assert_eq!(wrong.parse::<Span>(), Err(NotASpan), "{wrong}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn what_is_written_is_read_again(millis in 1_u64..1 << 50) {
            let span = Span(Duration::from_millis(millis));
            prop_assert_eq!(String::from(span).parse(), Ok(span));
        }

        #[test]
        fn no_text_breaks_it(text in ".{0,40}") {
            let _ = text.parse::<Span>();
        }
    }
}
