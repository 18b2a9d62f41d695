//! `get_time`: the current time in any zone.

mod cities;

use std::{fmt, sync::Arc};

use jiff::{
    Timestamp, Zoned,
    fmt::strtime,
    tz::{TimeZone, TimeZoneDatabase},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolyard_core::{
    BoxFuture, CallContext, RawJson, Tool, ToolCallRequest, ToolError, ToolHints, ToolOutput, ToolSpec,
};

use self::cities::zone_of_city;
use crate::{
    arguments::{read_arguments, schema_of},
    text::{MAX_ECHOED_NAME_CHARS, one_line, truncate},
};

const MAX_FORMAT_BYTES: usize = 256;
const MAX_SUGGESTED_ZONES: usize = 3;
/// Further characters of an unknown zone are not compared.
const MAX_COMPARED_CHARS: usize = 64;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct GetTimeArguments {
    /// IANA name of a time zone, such as `Asia/Shanghai`; the default is the operator's, else UTC
    timezone: Option<String>,
    /// How to write the time, in the manner of strftime, such as `%Y-%m-%d %H:%M`
    format: Option<String>,
}

/// Returns the current time; replaceable in tests.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The tool `get_time`.
pub struct GetTime {
    spec: ToolSpec,
    default_zone: String,
    zones: TimeZoneDatabase,
    clock: Clock,
}

impl GetTime {
    /// Creates the tool with the system's clock. `default_zone`, or else UTC, applies when a call names no zone.
    pub fn new(default_zone: Option<String>) -> Self {
        Self::with_clock(default_zone, Arc::new(Timestamp::now))
    }

    /// Creates the tool with another clock.
    pub fn with_clock(default_zone: Option<String>, clock: Clock) -> Self {
        let spec = ToolSpec::new("get_time", "Tell the current date, time and weekday in a time zone")
            .with_input_schema(schema_of::<GetTimeArguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            .with_capability("time");
        // Bundled instead of the system's, so that no environment variable changes the result.
        let zones = TimeZoneDatabase::bundled();
        Self { spec, default_zone: default_zone.unwrap_or_else(|| "UTC".to_owned()), zones, clock }
    }

    fn output(&self, arguments: &GetTimeArguments) -> Result<ToolOutput, ToolError> {
        let name = arguments.timezone.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let zone = self.zone(name.unwrap_or(&self.default_zone))?;
        let now = (self.clock)().to_zoned(zone);
        let weekday = strtime::format("%A", &now).unwrap_or_default();
        let iso = iso_seconds(&now);
        let text = match arguments.format.as_deref().filter(|format| !format.trim().is_empty()) {
            Some(format) => format_time(format, &now)?,
            None => format!("{weekday}, {iso}"),
        };
        let mut output = ToolOutput::text(text);
        output.structured = Some(RawJson::from_value(&json!({
            "iso": iso,
            "timezone": now.time_zone().iana_name().unwrap_or("UTC"),
            "weekday": weekday,
            "unix": now.timestamp().as_second(),
        })));
        Ok(output)
    }

    fn zone(&self, name: &str) -> Result<TimeZone, ToolError> {
        if name.eq_ignore_ascii_case("utc") || name.eq_ignore_ascii_case("z") {
            return Ok(TimeZone::UTC);
        }
        self.zones.get(name).map_err(|_| {
            let suggestions = match zone_of_city(name) {
                Some(zone) => vec![zone.to_owned()],
                None => similar_zones(name, self.zones.available().map(|zone| zone.to_string())),
            };
            let hint = match suggestions.as_slice() {
                [] => "use an IANA name: a region and a city of it, such as Europe/Berlin".to_owned(),
                suggestions => format!("use an IANA name, perhaps {}", suggestions.join(", ")),
            };
            let error = format!("unknown time zone `{}`", truncate(&one_line(name), MAX_ECHOED_NAME_CHARS));
            ToolError::failed(error).with_hint(hint)
        })
    }
}

/// ISO 8601 without fractions of a second: `2026-08-09T14:03:00+08:00[Asia/Shanghai]`.
fn iso_seconds(now: &Zoned) -> String {
    strtime::format("%Y-%m-%dT%H:%M:%S%:z[%Q]", now).unwrap_or_else(|_| now.to_string())
}

fn format_time(format: &str, now: &Zoned) -> Result<String, ToolError> {
    if format.len() > MAX_FORMAT_BYTES {
        return Err(ToolError::failed(format!("the format is longer than {MAX_FORMAT_BYTES} bytes")));
    }
    strtime::format(format, now).map_err(|error| {
        ToolError::failed(format!("invalid time format: {error}"))
            .with_hint("use strftime conversions, such as %Y-%m-%d %H:%M:%S")
    })
}

/// At most [`MAX_SUGGESTED_ZONES`] zones whose city is spelled similarly.
fn similar_zones(name: &str, zones: impl Iterator<Item = String>) -> Vec<String> {
    let name: String = name.chars().take(MAX_COMPARED_CHARS).collect();
    let name = name.to_lowercase().replace(' ', "_");
    let city = city_of(&name);
    // More than one wrong letter in three makes another word.
    let max_distance = city.chars().count() / 3;
    let rank = |zone: String| {
        let lowercase = zone.to_lowercase();
        let city_distance = strsim::osa_distance(city, city_of(&lowercase));
        // The sign of `Etc/GMT+8` is the opposite of what users expect, and no city is similar to `GMT+0`.
        let is_similar = city_distance <= max_distance && !city_of(&zone).starts_with("GMT");
        is_similar.then(|| (city_distance, strsim::osa_distance(&name, &lowercase), zone))
    };
    let mut similar: Vec<_> = zones.filter_map(rank).collect();
    similar.sort();
    similar.into_iter().take(MAX_SUGGESTED_ZONES).map(|(_, _, zone)| zone).collect()
}

fn city_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

impl Tool for GetTime {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        request: &'a ToolCallRequest,
        _context: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { self.output(&read_arguments(&request.arguments)?) })
    }
}

impl fmt::Debug for GetTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GetTime").field("default_zone", &self.default_zone).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "get_time_tests.rs"]
mod tests;
