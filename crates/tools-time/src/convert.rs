//! `time_convert`.

use crate::{time_format, time_input, zone};
use jiff::Zoned;
use octo_toolkit::{CallContext, Clock, Effect, Example, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Converts a date and time between time zones by that date's rules. Ambiguous and nonexistent local times are
/// refused with the choices. Prefer time_now for the current time.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The moment: 2027-03-05T14:30, Unix seconds, or words such as tomorrow at 3pm.
    datetime: String,
    /// Zone of the moment; ignored if the text names its own zone or offset.
    #[serde(default = "time_input::default_timezone")]
    from_timezone: String,
    /// Zone to convert to: an IANA name, an offset such as +02:00, or UTC.
    to_timezone: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The moment in its original zone, RFC 3339.
    original: String,
    /// The same moment in the other zone, RFC 3339.
    converted: String,
    /// The original zone.
    from_timezone: String,
    /// The target zone.
    to_timezone: String,
    /// Offset of the original zone at that moment.
    from_utc_offset: String,
    /// Offset of the target zone at that moment.
    to_utc_offset: String,
    /// How far the target zone is ahead of the original zone, such as +06:00.
    difference: String,
    /// How the texts were interpreted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

pub struct Convert;

impl Tool for Convert {
    const NAME: &'static str = "time_convert";
    const TITLE: &'static str = "Convert between time zones";
    const KEYWORDS: &'static str = "timezone different city meeting clock translate hours";
    const REQUESTS: &'static [&'static str] = &[
        "what is 3 pm in Berlin in New York time",
        "when does the call at 14:00 utc start in Tokyo",
        "turn a unix timestamp into local time in Lisbon",
        "change the meeting hour from london to sydney zone",
        "webinar at 9 am pacific, when is that for me in Europe",
        "translate a timestamp to another timezone",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Clock;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "A meeting in Berlin, in New York time",
                json!({"datetime": "2027-03-20T14:00", "from_timezone": "Europe/Berlin", "to_timezone": "America/New_York"}),
            )
            .with_output(json!({
                "original": "2027-03-20T14:00:00+01:00",
                "converted": "2027-03-20T09:00:00-04:00",
                "from_timezone": "Europe/Berlin",
                "to_timezone": "America/New_York",
                "from_utc_offset": "+01:00",
                "to_utc_offset": "-04:00",
                "difference": "-05:00",
            })),
            Example::new(
                "Unix seconds as a time in Tokyo",
                json!({"datetime": "1800000000", "to_timezone": "Asia/Tokyo"}),
            ),
        ]
    }

    async fn run(&self, input: Input, clock: Clock, _cx: &CallContext) -> Result<Output, ToolError> {
        let target = zone::resolve(&input.to_timezone)?;
        let moment =
            time_input::parse_moment(&clock, &input.datetime, &input.from_timezone, "from_timezone")?;
        let (from, to) = (&moment.at, moment.at.with_time_zone(target.tz));
        Ok(Output {
            original: time_format::iso(from),
            converted: time_format::iso(&to),
            from_timezone: time_format::zone_name(from.time_zone()),
            to_timezone: time_format::zone_name(to.time_zone()),
            from_utc_offset: time_format::offset(from.offset()),
            to_utc_offset: time_format::offset(to.offset()),
            difference: difference(from, &to),
            notes: moment.notes.into_iter().chain(target.note).collect(),
        })
    }
}

/// Difference of two offsets. It can be up to 26 hours, more than the range of an offset.
fn difference(from: &Zoned, to: &Zoned) -> String {
    time_format::seconds_as_offset(to.offset().seconds() - from.offset().seconds())
}
