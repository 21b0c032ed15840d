//! `time_parse`.

use crate::{time_format, time_input};
use octo_toolkit::{CallContext, Clock, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Parses a date and time in words or machine formats and reports its assumptions. Ambiguous texts are refused with
/// both readings. Prefer time_convert to change zones.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// One moment, in English words, ISO 8601, RFC 2822 or Unix seconds.
    text: String,
    /// Zone of the text; ignored if the text names its own zone or offset.
    #[serde(default = "time_input::default_timezone")]
    timezone: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// RFC 3339 with offset.
    iso: String,
    /// Seconds since 1970-01-01T00:00:00Z, fractions truncated.
    unix: i64,
    /// Calendar year in that zone.
    year: i16,
    /// Month, 1 to 12.
    month: i8,
    /// Day of the month.
    day: i8,
    /// Hour, 0 to 23.
    hour: i8,
    /// Minute.
    minute: i8,
    /// Second.
    second: i8,
    /// Zone of the moment: the text's own, or the requested one.
    timezone: String,
    /// The zone's offset at that moment.
    utc_offset: String,
    /// Weekday in English, such as Friday.
    day_of_week: String,
    /// How ambiguous parts of the text were interpreted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct Parse;

impl Tool for Parse {
    const NAME: &'static str = "time_parse";
    const TITLE: &'static str = "Parse a date and time";
    const KEYWORDS: &'static str = "understand natural language date next week tomorrow timestamp interpret";
    const REQUESTS: &'static [&'static str] = &[
        "what date is next friday",
        "when exactly is three days from now at noon",
        "turn 5 march 2027 2:30pm into iso format",
        "which weekday was 20 july 1969",
        "date of the first monday of next month",
        "make sense of a date written in words",
        "90 days after 1 may as a date",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Clock;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "A date in words",
                json!({"text": "5 March 2027 2:30pm", "timezone": "Europe/Berlin"}),
            )
            .with_output(json!({
                "iso": "2027-03-05T14:30:00+01:00",
                "unix": 1_804_253_400,
                "year": 2027,
                "month": 3,
                "day": 5,
                "hour": 14,
                "minute": 30,
                "second": 0,
                "timezone": "Europe/Berlin",
                "utc_offset": "+01:00",
                "day_of_week": "Friday",
            })),
            Example::new(
                "Relative to now",
                json!({"text": "next friday 5pm", "timezone": "America/New_York"}),
            ),
            Example::new(
                "By the calendar",
                json!({"text": "first monday of next month at 9:00 Europe/London"}),
            ),
        ]
    }

    async fn run(&self, input: Input, clock: Clock, _cx: &CallContext) -> Result<Output, ToolError> {
        let moment = time_input::parse_moment(&clock, &input.text, &input.timezone, "timezone")?;
        let at = &moment.at;
        Ok(Output {
            iso: time_format::iso(at),
            unix: at.timestamp().as_second(),
            year: at.year(),
            month: at.month(),
            day: at.day(),
            hour: at.hour(),
            minute: at.minute(),
            second: at.second(),
            timezone: time_format::zone_name(at.time_zone()),
            utc_offset: time_format::offset(at.offset()),
            day_of_week: time_format::weekday_name(at.weekday()).to_owned(),
            notes: moment.notes,
        })
    }
}
