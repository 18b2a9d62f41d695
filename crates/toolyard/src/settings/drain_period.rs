//! The drain period in `[serve]`: a duration that may be zero.

use std::{borrow::Cow, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use toolyard_mcp_client::config::{InvalidDuration, deserialize_duration};

use super::DurationSetting;

/// How long a stopping gateway accepts connections, written like `15s`; `0s` for not at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct DrainPeriod(pub Duration);

impl<'de> Deserialize<'de> for DrainPeriod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_duration(deserializer)
    }
}

impl TryFrom<String> for DrainPeriod {
    type Error = InvalidDuration;

    fn try_from(text: String) -> Result<Self, InvalidDuration> {
        if text.trim() == "0s" {
            return Ok(Self(Duration::ZERO));
        }
        text.parse().map(|duration: DurationSetting| Self(duration.0))
    }
}

impl From<DrainPeriod> for String {
    fn from(period: DrainPeriod) -> Self {
        if period.0.is_zero() { "0s".to_owned() } else { DurationSetting(period.0).into() }
    }
}

impl JsonSchema for DrainPeriod {
    fn schema_name() -> Cow<'static, str> {
        "DrainPeriod".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "examples": ["15s", "0s"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_may_be_zero_and_must_have_a_unit() {
        for (text, millis) in [("0s", 0), ("15s", 15_000), ("500ms", 500)] {
            let period = DrainPeriod::try_from(text.to_owned()).unwrap();
            assert_eq!((period.0.as_millis(), String::from(period).as_str()), (millis, text));
        }
        for wrong in ["0", "15", "-1s", "soon", ""] {
            assert!(DrainPeriod::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
