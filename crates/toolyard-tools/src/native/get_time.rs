//! `get_time`: the time in any zone, from a clock that can be replaced.

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

use super::cities::zone_of_city;
use crate::{
    arguments::{read_arguments, schema_of},
    text::{one_line, shortened},
};

const MAX_FORMAT_BYTES: usize = 256;

/// The arguments of `get_time`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// IANA name of a time zone, such as `Asia/Shanghai`; the default is the operator's, else UTC
    timezone: Option<String>,
    /// How to write the time, in the manner of strftime, such as `%Y-%m-%d %H:%M`
    format: Option<String>,
}

/// A clock: says what time it is now.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Tells the time.
pub struct GetTime {
    spec: ToolSpec,
    default_zone: String,
    zones: TimeZoneDatabase,
    clock: Clock,
}

impl GetTime {
    /// Tells the time by the system's clock, in `default_zone` (else UTC) where a call names no zone.
    pub fn new(default_zone: Option<String>) -> Self {
        Self::with_clock(default_zone, Arc::new(Timestamp::now))
    }

    /// Tells the time by another clock.
    pub fn with_clock(default_zone: Option<String>, clock: Clock) -> Self {
        let spec = ToolSpec::new("get_time", "Tell the current date, time and weekday in a time zone")
            .with_input_schema(schema_of::<Arguments>())
            .with_hints(ToolHints { open_world: Some(false), ..ToolHints::READ_ONLY })
            .with_capability("time");
        // The bundled zones, and not the system's, so that no environment variable changes the answer.
        let zones = TimeZoneDatabase::bundled();
        Self { spec, default_zone: default_zone.unwrap_or_else(|| "UTC".to_owned()), zones, clock }
    }

    fn answer(&self, arguments: &Arguments) -> Result<ToolOutput, ToolError> {
        let name = arguments.timezone.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let zone = self.zone(name.unwrap_or(&self.default_zone))?;
        let now = (self.clock)().to_zoned(zone);
        let weekday = strtime::format("%A", &now).unwrap_or_default();
        let iso = in_seconds(&now);
        let text = match arguments.format.as_deref().filter(|format| !format.trim().is_empty()) {
            Some(format) => formatted(format, &now)?,
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
            let near = match zone_of_city(name) {
                Some(zone) => vec![zone.to_owned()],
                None => near_names(name, self.zones.available().map(|zone| zone.to_string())),
            };
            let hint = match near.as_slice() {
                [] => "use an IANA name: a region and a city of it, such as Europe/Berlin".to_owned(),
                near => format!("use an IANA name, perhaps {}", near.join(", ")),
            };
            let error = format!("there is no time zone `{}`", shortened(&one_line(name), 64));
            ToolError::failed(error).with_hint(hint)
        })
    }
}

/// Without fractions of a second: `2026-08-09T14:03:00+08:00[Asia/Shanghai]`.
fn in_seconds(now: &Zoned) -> String {
    strtime::format("%Y-%m-%dT%H:%M:%S%:z[%Q]", now).unwrap_or_else(|_| now.to_string())
}

fn formatted(format: &str, now: &Zoned) -> Result<String, ToolError> {
    if format.len() > MAX_FORMAT_BYTES {
        return Err(ToolError::failed(format!("the format is longer than {MAX_FORMAT_BYTES} bytes")));
    }
    strtime::format(format, now).map_err(|error| {
        ToolError::failed(format!("failed to write the time in this format: {error}"))
            .with_hint("use strftime words, such as %Y-%m-%d %H:%M:%S")
    })
}

/// Up to three zones whose cities are spelt nearly like the one asked for; a city alone is enough.
fn near_names(asked: &str, known: impl Iterator<Item = String>) -> Vec<String> {
    let asked: String = asked.chars().take(64).collect();
    let asked = asked.to_lowercase().replace(' ', "_");
    let city = last_step(&asked);
    // One wrong letter in three: more, and it is another word.
    let bound = city.chars().count() / 3;
    let distance = |name: String| {
        let lowercase = name.to_lowercase();
        let of_city = strsim::osa_distance(city, last_step(&lowercase));
        // In `Etc/GMT+8` the sign is not what anyone expects, and no city is near to `GMT+0`.
        let near = of_city <= bound && !last_step(&name).starts_with("GMT");
        near.then(|| (of_city, strsim::osa_distance(&asked, &lowercase), name))
    };
    let mut near: Vec<_> = known.filter_map(distance).collect();
    near.sort();
    near.into_iter().take(3).map(|(_, _, name)| name).collect()
}

/// The city in the name of a zone.
fn last_step(name: &str) -> &str {
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
        Box::pin(async move { self.answer(&read_arguments(&request.arguments)?) })
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
