//! What all five tools do with what they are given: the clock, a zone's name, a text.

use crate::fault::Fault;
use crate::when::Moment;
use crate::{say, when, zone};
use jiff::{Timestamp, Zoned};
use octo_toolkit::{Clock, ToolError};

/// The default of every zone argument.
pub fn utc() -> String {
    "UTC".to_owned()
}

impl From<Fault> for ToolError {
    fn from(fault: Fault) -> Self {
        Self::invalid(fault.message).hint(fault.hint)
    }
}

/// The clock's time in whole seconds, so that what is counted from it has no odd fraction.
pub fn instant(clock: &Clock) -> Timestamp {
    let now = clock.now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// Now, in the zone of that name, and what was assumed about the name.
pub fn now(clock: &Clock, timezone: &str) -> Result<(Zoned, Vec<String>), ToolError> {
    let zone = zone::resolve(timezone)?;
    Ok((instant(clock).to_zoned(zone.tz), zone.note.into_iter().collect()))
}

/// The moment that a text means in the zone of that name; the text's own zone wins, and that is said.
pub fn moment(clock: &Clock, text: &str, timezone: &str, argument: &str) -> Result<Moment, ToolError> {
    let (now, mut notes) = now(clock, timezone)?;
    let moment = when::parse(text, &now)?;
    let (own, asked) = (say::zone(moment.at.time_zone()), say::zone(now.time_zone()));
    if moment.own_zone && own != asked {
        notes = vec![format!("The text names its own zone, {own}, so {argument} ({asked}) is not used.")];
    }
    notes.extend(moment.notes);
    Ok(Moment { notes, ..moment })
}
