//! `[retention]` as plain data: how long the store keeps what it has.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use toolyard_mcp_client::config::{InvalidDuration, deserialize_duration};

use super::DurationSetting;

const DAY: Duration = Duration::from_hours(24);

/// How long the store keeps what it has. A gateway on HTTP removes what is older once an hour, one gateway of a store at a time; `toolyard
/// store vacuum` does it at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionSettings {
    /// Audit records, by whole days in UTC: `365d`. For ever by default. The rest of the log stays verifiable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<RetentionPeriod>,
    /// Runs that have ended, from their start, with their steps, events and approvals: `90d`. For ever by default. Runs with a step
    /// whose outcome is unknown are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<RetentionPeriod>,
    /// Stored results; `7d` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<RetentionPeriod>,
}

/// A positive time, written in days like `90d`, or like other durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct RetentionPeriod(pub Duration);

impl FromStr for RetentionPeriod {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let days = text.trim().strip_suffix('d').and_then(|days| days.trim_end().parse::<u32>().ok());
        match days {
            Some(0) => Err(InvalidDuration),
            Some(days) => Ok(Self(DAY.saturating_mul(days))),
            None => text.parse().map(|DurationSetting(duration)| Self(duration)),
        }
    }
}

impl TryFrom<String> for RetentionPeriod {
    type Error = InvalidDuration;

    fn try_from(text: String) -> Result<Self, InvalidDuration> {
        text.parse()
    }
}

impl<'de> Deserialize<'de> for RetentionPeriod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_duration(deserializer)
    }
}

impl fmt::Display for RetentionPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.as_secs().is_multiple_of(DAY.as_secs()) && self.0.subsec_nanos() == 0 {
            write!(f, "{}d", self.0.as_secs() / DAY.as_secs())
        } else {
            f.write_str(&String::from(DurationSetting(self.0)))
        }
    }
}

impl From<RetentionPeriod> for String {
    fn from(period: RetentionPeriod) -> Self {
        period.to_string()
    }
}

impl JsonSchema for RetentionPeriod {
    fn schema_name() -> Cow<'static, str> {
        "RetentionPeriod".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "examples": ["90d", "12h"]})
    }
}

#[cfg(feature = "store")]
impl RetentionSettings {
    /// What the store removes.
    pub fn retention(&self) -> toolyard_store::Retention {
        let mut results = toolyard_store::ResultRetention::default();
        if let Some(RetentionPeriod(period)) = self.results {
            results.max_age_millis = i64::try_from(period.as_millis()).unwrap_or(i64::MAX);
        }
        let period = |period: Option<RetentionPeriod>| period.map(|RetentionPeriod(period)| period);
        toolyard_store::Retention { audit: period(self.audit), runs: period(self.runs), results }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_days_or_durations() {
        let read = |text: &str| toml::from_str::<RetentionSettings>(&format!("audit = {text}"));
        let period = |text: &str| read(text).unwrap().audit.unwrap();
        assert_eq!(period("\"90d\"").0, Duration::from_hours(90 * 24));
        assert_eq!(
            (period("\"90d\"").to_string(), period("\"24h\"").to_string()),
            ("90d".to_owned(), "1d".to_owned())
        );
        assert_eq!(period("\"36h\"").to_string(), "36h");
        for wrong in ["\"0d\"", "\"d\"", "\"-1d\"", "90", "\"ninety\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
