//! Days relative to today: `tomorrow`, `next friday`, `last month`.
//!
//! `next friday` is the first Friday after today and `last friday` the last one before today, so on a Friday both
//! are a week away. `friday` and `this friday` are the coming one, including today. `next week`, `next month` and
//! `next year` are one calendar unit from now and keep the time of day.

use super::date_shift::{Direction, Shift};
use super::date_spec::DateSpec;
use super::vocabulary::{self, Unit};
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use crate::time_format;
use jiff::civil::{Date, Weekday};
use jiff::{ToSpan, Zoned};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelativeWord {
    This,
    Next,
    Last,
}

pub fn relative_word(word: &str) -> Option<RelativeWord> {
    Some(match word {
        "this" | "current" | "coming" | "upcoming" => RelativeWord::This,
        "next" => RelativeWord::Next,
        "last" | "previous" | "past" => RelativeWord::Last,
        _ => return None,
    })
}

/// Takes a day relative to today, if there is one.
pub fn take(
    words: &mut WordCursor,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<Option<DateSpec>, InputError> {
    if words.take(&["now"]) || words.take_all(&["right", "now"]) {
        return Ok(Some(DateSpec::Instant(now.clone())));
    }
    if let Some(days) = named_day(words) {
        return add_days(now.date(), days).map(|date| Some(DateSpec::Day(date)));
    }
    let mark = words.mark();
    let Some(which) = words.take_map(relative_word) else {
        return Ok(None);
    };
    if which == RelativeWord::This {
        words.take(&["coming"]);
    }
    if let Some(weekday) = words.take_map(vocabulary::weekday) {
        return resolve_weekday(which, weekday, now.date(), &words.text_since(mark), notes).map(Some);
    }
    match words.take_map(vocabulary::unit) {
        Some(unit) => resolve_unit(which, unit, now, &words.text_since(mark), notes).map(Some),
        None => {
            words.reset_to(mark);
            Ok(None)
        }
    }
}

fn named_day(words: &mut WordCursor) -> Option<i64> {
    if words.take_all(&["day", "after", "tomorrow"]) || words.take_all(&["overmorrow"]) {
        return Some(2);
    }
    if words.take_all(&["day", "before", "yesterday"]) {
        return Some(-2);
    }
    words.take_map(|word| match word {
        "today" => Some(0),
        "tomorrow" | "tmrw" => Some(1),
        "yesterday" => Some(-1),
        _ => None,
    })
}

pub fn add_days(date: Date, days: i64) -> Result<Date, InputError> {
    let span = 0.days().try_days(days).map_err(|_| InputError::out_of_range())?;
    date.checked_add(span).map_err(|_| InputError::out_of_range())
}

/// The coming weekday, including today.
pub fn next_weekday(weekday: Weekday, today: Date) -> Result<Date, InputError> {
    add_days(today, i64::from(today.weekday().until(weekday)))
}

fn resolve_weekday(
    which: RelativeWord,
    weekday: Weekday,
    today: Date,
    phrase: &str,
    notes: &mut Vec<String>,
) -> Result<DateSpec, InputError> {
    let ahead = i64::from(today.weekday().until(weekday));
    let name = time_format::weekday_name(weekday);
    let (days, reading) = match which {
        RelativeWord::This => (ahead, format!("the coming {name}, today included")),
        RelativeWord::Next => (if ahead == 0 { 7 } else { ahead }, format!("the first {name} after today")),
        RelativeWord::Last => (ahead - 7, format!("the last {name} before today")),
    };
    let date = add_days(today, days)?;
    let other = if which == RelativeWord::Next { other_next(today, date)? } else { String::new() };
    notes.push(format!("\"{phrase}\" is read as {reading}: {date}{other}."));
    Ok(DateSpec::Day(date))
}

/// Within a week, `next` may also mean the day a week later.
fn other_next(today: Date, found: Date) -> Result<String, InputError> {
    let left_in_week = i64::from(6 - today.weekday().to_monday_zero_offset());
    if found > add_days(today, left_in_week)? {
        return Ok(String::new());
    }
    Ok(format!("; the one of next week is {}", add_days(found, 7)?))
}

fn resolve_unit(
    which: RelativeWord,
    unit: Unit,
    now: &Zoned,
    phrase: &str,
    notes: &mut Vec<String>,
) -> Result<DateSpec, InputError> {
    let direction = match which {
        RelativeWord::This if unit == Unit::Week => return Ok(DateSpec::Week(now.datetime())),
        RelativeWord::This => return Err(period_alone_error(phrase)),
        RelativeWord::Next => Direction::Ahead,
        RelativeWord::Last => Direction::Back,
    };
    let shift = Shift::one_unit(unit);
    if !shift.is_calendar_only() {
        return shift.apply(now, direction, notes).map(DateSpec::Instant);
    }
    let reading = shift.apply_calendar(now.datetime(), direction, notes)?;
    notes.push(format!(
        "\"{phrase}\" is read as one {} {}.",
        name(unit),
        if which == RelativeWord::Next { "from now" } else { "ago" }
    ));
    Ok(if unit == Unit::Week { DateSpec::Week(reading) } else { DateSpec::KeepTime(reading) })
}

pub fn period_alone_error(phrase: &str) -> InputError {
    InputError::new(
        format!("\"{phrase}\" is a period, not a moment."),
        format!("Write start of {phrase}, end of {phrase}, or a day."),
    )
}

fn name(unit: Unit) -> &'static str {
    match unit {
        Unit::Year => "year",
        Unit::Quarter => "quarter (three months)",
        Unit::Month => "month",
        Unit::Fortnight => "fortnight (14 days)",
        Unit::Week => "week",
        Unit::Day => "day",
        Unit::Hour => "hour",
        Unit::Minute => "minute",
        Unit::Second => "second",
        Unit::Millisecond => "millisecond",
    }
}
