//! What all five tools do with what they are given: the clock, a zone's name, a text.

use crate::datetime_parser::Moment;
use crate::input_error::InputError;
use crate::{datetime_parser, time_format, zone};
use jiff::{Timestamp, Zoned};
use octo_toolkit::{Clock, ToolError};

/// The default of every zone argument.
pub fn default_timezone() -> String {
    "UTC".to_owned()
}

impl From<InputError> for ToolError {
    fn from(fault: InputError) -> Self {
        Self::invalid(fault.message).hint(fault.hint)
    }
}

/// The clock's time in whole seconds, so that what is counted from it has no odd fraction.
pub fn now_in_seconds(clock: &Clock) -> Timestamp {
    let now = clock.now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Now, in the zone of that name, and what was assumed about the name.
pub fn now_in_zone(clock: &Clock, timezone: &str) -> Result<(Zoned, Vec<String>), ToolError> {
    let zone = zone::resolve(timezone)?;
    Ok((now_in_seconds(clock).to_zoned(zone.tz), zone.note.into_iter().collect()))
}

/// The moment that a text means in the zone of that name; the text's own zone wins, and that is said.
pub fn parse_moment(clock: &Clock, text: &str, timezone: &str, argument: &str) -> Result<Moment, ToolError> {
    let (now, mut notes) = now_in_zone(clock, timezone)?;
    let moment = datetime_parser::parse(text, &now)?;
    let (own, asked) =
        (time_format::zone_name(moment.at.time_zone()), time_format::zone_name(now.time_zone()));
    if moment.has_own_zone && own != asked {
        notes = vec![format!("The text names its own zone, {own}, so {argument} ({asked}) is not used.")];
    }
    notes.extend(moment.notes);
    Ok(Moment { notes, ..moment })
}
