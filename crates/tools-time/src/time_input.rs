//! Input handling of all five tools: clock, zone name, text.

use crate::datetime_parser::Moment;
use crate::input_error::InputError;
use crate::{datetime_parser, time_format, zone};
use jiff::{Timestamp, Zoned};
use octo_toolkit::{Clock, ToolError};

/// Default of every zone argument.
pub fn default_timezone() -> String {
    "UTC".to_owned()
}

impl From<InputError> for ToolError {
    fn from(fault: InputError) -> Self {
        Self::invalid(fault.message).hint(fault.hint)
    }
}

/// Current time in whole seconds, so that moments counted from it have no fraction.
pub fn now_in_seconds(clock: &Clock) -> Timestamp {
    let now = clock.now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Current time in the named zone, and assumptions about the name.
pub fn now_in_zone(clock: &Clock, timezone: &str) -> Result<(Zoned, Vec<String>), ToolError> {
    let zone = zone::resolve(timezone)?;
    Ok((now_in_seconds(clock).to_zoned(zone.tz), zone.note.into_iter().collect()))
}

/// Parses a text in the named zone; a zone in the text takes precedence, which is noted.
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
