//! Durations in settings.

use std::{borrow::Cow, fmt, marker::PhantomData, str::FromStr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

/// A positive duration, written like `30s`, `1m 30s` or `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct DurationSetting(pub Duration);

impl<'de> Deserialize<'de> for DurationSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_duration(deserializer)
    }
}

/// Reads a setting that is written as a duration. A number without a unit is an error that says how to write it.
pub fn deserialize_duration<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<String, Error = InvalidDuration>,
{
    deserializer.deserialize_any(DurationVisitor(PhantomData))
}

struct DurationVisitor<T>(PhantomData<T>);

impl<T: TryFrom<String, Error = InvalidDuration>> de::Visitor<'_> for DurationVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"30s\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        T::try_from(text.to_owned()).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        Err(without_unit(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        Err(without_unit(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        Err(without_unit(number))
    }
}

fn without_unit<E: de::Error>(number: impl fmt::Display) -> E {
    E::custom(format!("a duration needs a unit: write \"{number}s\" for seconds"))
}

/// A setting of time is not a duration.
///
/// Remedy: write a number with a unit: `500ms`, `30s`, `2m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a duration; write for example `30s`, `2m` or `500ms`")]
pub struct InvalidDuration;

impl FromStr for DurationSetting {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let parsed: Result<jiff::SignedDuration, _> = text.trim().parse();
        let duration = parsed.ok().and_then(|duration| Duration::try_from(duration).ok());
        duration.filter(|duration| !duration.is_zero()).map(Self).ok_or(InvalidDuration)
    }
}

impl TryFrom<String> for DurationSetting {
    type Error = InvalidDuration;

    fn try_from(text: String) -> Result<Self, InvalidDuration> {
        text.parse()
    }
}

impl From<DurationSetting> for String {
    fn from(setting: DurationSetting) -> Self {
        // Only durations of more than 292 billion years do not fit.
        format!("{:#}", jiff::SignedDuration::try_from(setting.0).unwrap_or(jiff::SignedDuration::MAX))
    }
}

impl JsonSchema for DurationSetting {
    fn schema_name() -> Cow<'static, str> {
        "DurationSetting".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "examples": ["30s", "2m", "500ms"]})
    }
}

/// When an idle server is stopped: after a duration, or `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub enum IdleStop {
    /// Never.
    Never,
    /// After this time.
    After(DurationSetting),
}

impl<'de> Deserialize<'de> for IdleStop {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_duration(deserializer)
    }
}

impl TryFrom<String> for IdleStop {
    type Error = InvalidDuration;

    fn try_from(text: String) -> Result<Self, InvalidDuration> {
        if text.trim() == "never" { Ok(Self::Never) } else { text.parse().map(Self::After) }
    }
}

impl From<IdleStop> for String {
    fn from(stop: IdleStop) -> Self {
        match stop {
            IdleStop::Never => "never".to_owned(),
            IdleStop::After(setting) => setting.into(),
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
    fn durations_are_parsed_and_formatted() {
        assert_eq!("60s".parse(), Ok(DurationSetting(Duration::from_secs(60))));
        assert_eq!(String::from(DurationSetting(Duration::from_secs(300))), "5m");
        assert_eq!(String::from(DurationSetting(Duration::from_millis(1_500))), "1s 500ms");
        assert_eq!(IdleStop::try_from("never".to_owned()), Ok(IdleStop::Never));
        for wrong in ["", "0s", "-5s", "soon", "30", "1e99s", "never"] {
            assert_eq!(wrong.parse::<DurationSetting>(), Err(InvalidDuration), "{wrong}");
        }
    }

    #[test]
    fn a_number_without_a_unit_is_answered_with_the_right_spelling() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "only parsed")]
        struct Table {
            timeout: Option<DurationSetting>,
            idle_stop: Option<IdleStop>,
        }
        let error = |text: &str| toml::from_str::<Table>(text).unwrap_err().message().to_owned();
        assert_eq!(error("timeout = 30"), "a duration needs a unit: write \"30s\" for seconds");
        assert_eq!(error("idle_stop = 2.5"), "a duration needs a unit: write \"2.5s\" for seconds");
        assert!(error("timeout = \"30\"").contains("`30s`"), "{}", error("timeout = \"30\""));
        assert!(error("timeout = true").contains("expected a duration such as \"30s\""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn durations_round_trip(millis in 1_u64..1 << 50) {
            let setting = DurationSetting(Duration::from_millis(millis));
            prop_assert_eq!(String::from(setting).parse(), Ok(setting));
        }

        #[test]
        fn parsing_never_panics(text in ".{0,40}") {
            let _ = text.parse::<DurationSetting>();
        }
    }
}
