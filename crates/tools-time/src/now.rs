//! `time_now`.

use crate::{time_format, time_input};
use octo_toolkit::{CallContext, Clock, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Returns the current time in a time zone, with its UTC offset. For an unknown zone the error lists similar names.
/// Prefer time_parse for "tomorrow" or "in 3 hours".
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// IANA name such as Europe/Berlin, an offset such as +02:00, UTC, or local for the hub's machine.
    #[serde(default = "time_input::default_timezone")]
    timezone: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// RFC 3339 with the zone's offset.
    iso: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    unix: i64,
    /// The zone that was used.
    timezone: String,
    /// The zone's current offset, such as +01:00.
    utc_offset: String,
    /// The same, human-readable.
    human: String,
    /// Assumptions about the zone name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct Now;

impl Tool for Now {
    const NAME: &'static str = "time_now";
    const TITLE: &'static str = "Current time";
    const KEYWORDS: &'static str = "current clock date today what day hour timezone";
    const REQUESTS: &'static [&'static str] = &[
        "what time is it",
        "what is today's date",
        "current hour in Tokyo",
        "is it still morning in San Francisco",
        "the present unix timestamp",
        "which weekday is it today",
    ];
    const EFFECT: Effect = Effect::reads_volatile();
    type Input = Input;
    type Output = Output;
    type Grants = Clock;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("The time in UTC", json!({})),
            Example::new("The time in Tokyo", json!({"timezone": "Asia/Tokyo"})),
        ]
    }

    async fn run(&self, input: Input, clock: Clock, _cx: &CallContext) -> Result<Output, ToolError> {
        let (now, notes) = time_input::now_in_zone(&clock, &input.timezone)?;
        Ok(Output {
            iso: time_format::iso(&now),
            unix: now.timestamp().as_second(),
            timezone: time_format::zone_name(now.time_zone()),
            utc_offset: time_format::offset(now.offset()),
            human: time_format::human(&now),
            notes,
        })
    }
}
