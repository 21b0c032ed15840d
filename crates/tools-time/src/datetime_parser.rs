//! Parses a text to a moment: machine formats, then words. Ambiguous texts are refused with both readings; assumptions
//! are reported in the notes.

mod calendar_date;
mod date_grammar;
mod date_shift;
mod date_spec;
mod machine_formats;
mod numeric_moment;
mod partial_moment;
mod period;
mod relative_date;
mod time_of_day;
mod vocabulary;
mod word_cursor;
mod zone_in_text;

#[cfg(test)]
mod tests;

use crate::input_error::InputError;
use crate::local_time;
use jiff::Zoned;
use jiff::civil::{Date, Time};

const MAX_TEXT_CHARS: usize = 200;
const FORMAT_HINT: &str = "Write 2027-03-05T14:30, Unix seconds, or words such as: tomorrow at 3pm, in 3 days, 2 weeks ago, \
                      next friday 17:00, 5 March 2027 14:30 Europe/Berlin, first monday of next month.";

const START_OF_DAY_NOTE: &str = "No time of day is given, so the start of the day is used.";

/// A moment, and how the text was interpreted.
#[derive(Debug, Clone)]
pub struct Moment {
    pub at: Zoned,
    pub notes: Vec<String>,
    /// True if the text names its own zone or offset.
    pub has_own_zone: bool,
}

/// Parses a moment; missing parts, including the zone, are taken from `now`.
pub fn parse(text: &str, now: &Zoned) -> Result<Moment, InputError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(InputError::new("The text is empty.", FORMAT_HINT));
    }
    if text.chars().count() > MAX_TEXT_CHARS {
        return Err(InputError::new(
            format!("The text is longer than {MAX_TEXT_CHARS} characters."),
            "Use only the date and time.",
        ));
    }
    match machine_formats::parse(text, now) {
        Some(found) => found,
        None => parse_words(text, now),
    }
}

fn parse_words(text: &str, now: &Zoned) -> Result<Moment, InputError> {
    let mut words = word_cursor::WordCursor::new(text);
    let mut notes = Vec::new();
    let found = zone_in_text::extract(&mut words)?;
    words.split_signs();
    let own_zone = found.is_some();
    let now = match found {
        Some(zone) => {
            notes.extend(zone.note);
            now.with_time_zone(zone.tz)
        }
        None => now.clone(),
    };
    let at = date_grammar::parse(&mut words, &now, &mut notes)?;
    Ok(Moment { at, notes, has_own_zone: own_zone })
}

/// A date and an optional time in the zone of `now`.
fn local_moment(date: Date, time: Option<Time>, now: &Zoned, note: String) -> Result<Moment, InputError> {
    let mut notes = if note.is_empty() { Vec::new() } else { vec![note] };
    let at = match time {
        Some(time) => local_time::resolve(date.to_datetime(time), now.time_zone())?,
        None => {
            notes.push(START_OF_DAY_NOTE.to_owned());
            local_time::start_of_day(date, now.time_zone(), &mut notes)?
        }
    };
    Ok(Moment { at, notes, has_own_zone: false })
}
