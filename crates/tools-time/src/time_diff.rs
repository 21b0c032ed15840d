//! `time_diff`.

use crate::{datetime_parser, elapsed, time_format, time_input};
use jiff::tz::TimeZone;
use octo_toolkit::{CallContext, Clock, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Measures the time from start to end, negative if reversed; without a zone in UTC. Ambiguous texts are refused with
/// both readings. Prefer time_parse for "3 days after".
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Start: 2027-03-05T14:30+01:00, Unix seconds, now, or words.
    start: String,
    /// End, in the same formats.
    end: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Whole days of 24 hours.
    days: i64,
    /// Hours beyond the days.
    hours: i64,
    /// Minutes beyond the hours.
    minutes: i64,
    /// Seconds beyond the minutes.
    seconds: i64,
    /// Nanoseconds beyond the seconds, if any.
    #[serde(default, skip_serializing_if = "is_zero")]
    nanoseconds: i64,
    /// Total seconds, fractions truncated.
    total_seconds: i64,
    /// The same, human-readable, such as 2 days, 3 hours and 5 minutes.
    human: String,
    /// The start as interpreted, RFC 3339.
    start: String,
    /// The end as interpreted, RFC 3339.
    end: String,
    /// How ambiguous parts of the texts were interpreted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

pub struct Diff;

impl Tool for Diff {
    const NAME: &'static str = "time_diff";
    const TITLE: &'static str = "Time between two moments";
    const KEYWORDS: &'static str = "how long between duration days until since elapsed countdown age";
    const REQUESTS: &'static [&'static str] = &[
        "how many days until christmas",
        "how long did the nightly job take from 01:10 to 03:45",
        "time between two timestamps",
        "how old is someone born on 5 march 1990",
        "hours left before the deadline",
        "number of seconds from one date to another",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Clock;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "Between two dates",
                json!({"start": "2027-03-05T12:00Z", "end": "2027-03-07T15:05Z"}),
            )
            .with_output(json!({
                "days": 2,
                "hours": 3,
                "minutes": 5,
                "seconds": 0,
                "total_seconds": 183_900,
                "human": "2 days, 3 hours and 5 minutes",
                "start": "2027-03-05T12:00:00+00:00",
                "end": "2027-03-07T15:05:00+00:00",
            })),
            Example::new("Until a day", json!({"start": "now", "end": "2030-01-01 00:00 Europe/Berlin"})),
        ]
    }

    async fn run(&self, input: Input, clock: Clock, _cx: &CallContext) -> Result<Output, ToolError> {
        let now = time_input::now_in_seconds(&clock).to_zoned(TimeZone::UTC);
        let start = datetime_parser::parse(&input.start, &now)?;
        let end = datetime_parser::parse(&input.end, &now)?;
        let elapsed = elapsed::between(&start.at, &end.at);
        let prefix_with = |name: &'static str| move |note: String| format!("{name}: {note}");
        Ok(Output {
            days: elapsed.days,
            hours: elapsed.hours,
            minutes: elapsed.minutes,
            seconds: elapsed.seconds,
            nanoseconds: elapsed.nanoseconds,
            total_seconds: elapsed.total_seconds,
            human: elapsed.human(),
            start: time_format::iso(&start.at),
            end: time_format::iso(&end.at),
            notes: start
                .notes
                .into_iter()
                .map(prefix_with("start"))
                .chain(end.notes.into_iter().map(prefix_with("end")))
                .collect(),
        })
    }
}
