//! From a text to a moment: machine formats, then words. What can be read in two ways is refused with both
//! readings; what was assumed is said in the notes.

mod base;
mod calendar;
mod clock;
mod draft;
mod exact;
mod names;
mod number;
mod period;
mod phrase;
mod place;
mod relative;
mod shift;
mod words;

#[cfg(test)]
mod tests;

use crate::fault::Fault;
use crate::local;
use jiff::Zoned;
use jiff::civil::{Date, Time};

const LONGEST: usize = 200;
const ADVICE: &str = "Write 2027-03-05T14:30, Unix seconds, or words such as: tomorrow at 3pm, in 3 days, 2 weeks ago, \
                      next friday 17:00, 5 March 2027 14:30 Europe/Berlin, first monday of next month.";

const START_TAKEN: &str = "No time of day is given, so the start of the day is taken.";

/// A moment, and how the text was read.
#[derive(Debug, Clone)]
pub struct Moment {
    pub at: Zoned,
    pub notes: Vec<String>,
    /// True when the text names its own zone or offset.
    pub own_zone: bool,
}

/// Reads a moment; what the text leaves open, zone included, follows from now.
pub fn parse(text: &str, now: &Zoned) -> Result<Moment, Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Fault::new("The text is empty.", ADVICE));
    }
    if text.chars().count() > LONGEST {
        return Err(Fault::new(
            format!("The text is longer than {LONGEST} characters."),
            "Give only the date and time.",
        ));
    }
    match exact::read(text, now) {
        Some(found) => found,
        None => in_words(text, now),
    }
}

fn in_words(text: &str, now: &Zoned) -> Result<Moment, Fault> {
    let mut words = words::Words::of(text);
    let mut notes = Vec::new();
    let found = place::cut(&mut words)?;
    words.part_signs();
    let own_zone = found.is_some();
    let now = match found {
        Some(zone) => {
            notes.extend(zone.note);
            now.with_time_zone(zone.tz)
        }
        None => now.clone(),
    };
    let at = phrase::read(&mut words, &now, &mut notes)?;
    Ok(Moment { at, notes, own_zone })
}

/// A date and perhaps a time in the zone of now.
fn local_moment(date: Date, time: Option<Time>, now: &Zoned, note: String) -> Result<Moment, Fault> {
    let mut notes = if note.is_empty() { Vec::new() } else { vec![note] };
    let at = match time {
        Some(time) => local::resolve(date.to_datetime(time), now.time_zone())?,
        None => {
            notes.push(START_TAKEN.to_owned());
            local::start_of_day(date, now.time_zone(), &mut notes)?
        }
    };
    Ok(Moment { at, notes, own_zone: false })
}
