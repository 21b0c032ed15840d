//! Grammar of dates in natural language. Parts may be in any order: a day, a time of day, steps.

use super::calendar_date::{self, CalendarDate};
use super::date_shift::{self, Direction, Shift};
use super::date_spec::DateSpec;
use super::partial_moment::{PartialMoment, set_once};
use super::period;
use super::relative_date;
use super::time_of_day::{self, DayPart};
use super::vocabulary;
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use crate::zone::closest_words;
use jiff::Zoned;

const FILLER_WORDS: &[&str] = &["at", "on", "the", "of", "in", "by", "for", "-"];

/// Parses the words to a moment.
pub fn parse(words: &mut WordCursor, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, InputError> {
    if let Some((shift, direction)) = take_leading_shift(words, notes)? {
        let from = parse(words, now, notes)?;
        return shift.apply(&from, direction, notes);
    }
    let mut draft = PartialMoment::default();
    while !words.is_done() {
        take_part(&mut draft, words, now, notes)?;
    }
    draft.resolve(now, notes)
}

/// `3 days after …`, `two hours before …`, `a week from …`; not `3 days from now` at the end of a text.
fn take_leading_shift(
    words: &mut WordCursor,
    notes: &mut Vec<String>,
) -> Result<Option<(Shift, Direction)>, InputError> {
    // `5 minutes past 3` is a time of day.
    if time_of_day::take(&mut words.clone())?.is_some() {
        return Ok(None);
    }
    let (mark, said) = (words.mark(), notes.len());
    let direction = match date_shift::take(words, notes)? {
        None => None,
        Some(_) if words.peek() == Some("from") && words.peek_at(1) == Some("now") => None,
        Some(shift) => words.take_map(leading_direction).map(|direction| (shift, direction)),
    };
    if direction.is_none() {
        words.reset_to(mark);
        notes.truncate(said);
    }
    Ok(direction)
}

fn leading_direction(word: &str) -> Option<Direction> {
    match word {
        "after" | "from" => Some(Direction::Ahead),
        "before" => Some(Direction::Back),
        _ => None,
    }
}

fn take_part(
    draft: &mut PartialMoment,
    words: &mut WordCursor,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<(), InputError> {
    if let Some(clock) = time_of_day::take(words)? {
        return set_once(&mut draft.time_of_day, clock, "times of day");
    }
    if take_steps(draft, words, now, notes)? || words.take_all(&["local", "time"]) {
        return Ok(());
    }
    if let Some((days, part)) = part_of_day(words) {
        set_once(&mut draft.day_part, part, "parts of the day")?;
        return match days {
            Some(days) => draft.set_date_spec(DateSpec::Day(relative_date::add_days(now.date(), days)?)),
            None => Ok(()),
        };
    }
    if let Some(base) = period::take(words, now, notes)? {
        return draft.set_date_spec(base);
    }
    if let Some(base) = relative_date::take(words, now, notes)? {
        return draft.set_date_spec(base);
    }
    take_date(draft, words, notes)
}

fn take_date(
    draft: &mut PartialMoment,
    words: &mut WordCursor,
    notes: &mut Vec<String>,
) -> Result<(), InputError> {
    if let Some(weekday) = words.take_map(vocabulary::weekday) {
        return set_once(&mut draft.weekday, weekday, "weekdays");
    }
    match calendar_date::take(words, notes)? {
        Some(CalendarDate::YearMonthDay(date)) => draft.set_date_spec(DateSpec::Day(date)),
        Some(CalendarDate::MonthDay(month, day)) => set_once(&mut draft.month_day, (month, day), "days"),
        Some(CalendarDate::Day(day)) => set_once(&mut draft.day, day, "days"),
        Some(CalendarDate::Year(year)) => set_once(&mut draft.year, year, "years"),
        None if words.take(FILLER_WORDS) => Ok(()),
        None => Err(unknown_word_error(words)),
    }
}

/// `tonight`, `this morning`, `last night`; or just `evening`, without a day.
fn part_of_day(words: &mut WordCursor) -> Option<(Option<i64>, DayPart)> {
    if words.take(&["tonight"]) {
        return Some((Some(0), DayPart::Night));
    }
    let days = match words.peek()? {
        "this" => Some(0),
        "last" => Some(-1),
        _ => None,
    };
    let part = words.peek_at(usize::from(days.is_some())).and_then(time_of_day::day_part)?;
    words.skip(1 + usize::from(days.is_some()));
    Some((days, part))
}

/// `in 3 days`, `2 weeks ago`, `3 days from now`; and `+ 2 hours` after something else.
fn take_steps(
    draft: &mut PartialMoment,
    words: &mut WordCursor,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<bool, InputError> {
    let (mark, said) = (words.mark(), notes.len());
    let sign = take_sign(words);
    let ahead = sign.is_none() && words.take(&["in"]);
    let Some(shift) = date_shift::take(words, notes)? else {
        words.reset_to(mark);
        notes.truncate(said);
        return Ok(false);
    };
    let direction = match (sign, ahead) {
        (Some(direction), _) => direction,
        (None, true) => {
            words.take(&["time"]);
            words.take_all(&["from", "now"]);
            Direction::Ahead
        }
        (None, false) => {
            take_direction(words).ok_or_else(|| missing_direction_error(&words.text_since(mark)))?
        }
    };
    if sign.is_some() && !draft.has_no_start() {
        draft.steps.push((shift, direction));
        return Ok(true);
    }
    let base = if shift.is_calendar_only() {
        DateSpec::KeepTime(shift.apply_calendar(now.datetime(), direction, notes)?)
    } else {
        DateSpec::Instant(shift.apply(now, direction, notes)?)
    };
    draft.set_date_spec(base)?;
    Ok(true)
}

/// `+`, `plus`, `-`, `minus`, also before a number without a space.
fn take_sign(words: &mut WordCursor) -> Option<Direction> {
    words.take_map(|word| match word {
        "+" | "plus" => Some(Direction::Ahead),
        "-" | "minus" => Some(Direction::Back),
        _ => None,
    })
}

fn take_direction(words: &mut WordCursor) -> Option<Direction> {
    if words.take_all(&["from", "now"]) {
        return Some(Direction::Ahead);
    }
    words.take_map(|word| match word {
        "ago" | "earlier" | "back" => Some(Direction::Back),
        "later" | "hence" => Some(Direction::Ahead),
        _ => None,
    })
}

fn missing_direction_error(said: &str) -> InputError {
    InputError::new(
        format!("\"{said}\" is a duration, not a moment."),
        format!("Write in {said}, {said} ago, or {said} after another moment."),
    )
}

fn unknown_word_error(words: &WordCursor) -> InputError {
    let first = words.peek().unwrap_or_default();
    let word = if matches!(first, "a" | "an") { words.peek_at(1).unwrap_or(first) } else { first };
    let hint = match word {
        "every" | "each" | "daily" | "weekly" | "monthly" | "yearly" => {
            "A repetition is not one moment; use one of its days."
        }
        "to" | "until" | "till" | "between" | "through" | "since" | "during" => {
            "A period is not one moment; parse its start and its end."
        }
        "few" | "several" | "some" | "soon" | "mid" | "weekend" | "week" | "month" | "year" => {
            "That is not exact enough; use a day or a number."
        }
        _ => "",
    };
    if !hint.is_empty() {
        return InputError::new(format!("\"{word}\" is not a single moment."), hint);
    }
    let suggestions = closest_words(word, vocabulary::GRAMMAR_WORDS.iter().copied(), 1);
    let hint = match suggestions.first() {
        Some(close) if word.len() > 2 && *close != word => {
            format!("Did you mean {close}? {}", super::FORMAT_HINT)
        }
        _ => super::FORMAT_HINT.to_owned(),
    };
    InputError::new(format!("\"{word}\" is not recognized here."), hint)
}
