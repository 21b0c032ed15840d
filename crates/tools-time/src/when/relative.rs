//! Days named from today: `tomorrow`, `next friday`, `last month`.
//!
//! `next friday` is the first Friday after today and `last friday` the last one before today, so on a Friday both
//! are a week away. `friday` and `this friday` are the coming one, and today counts. `next week`, `next month` and
//! `next year` are one step of the calendar from now and keep the time of day.

use super::base::Base;
use super::names::{self, Unit};
use super::shift::{Direction, Shift};
use super::words::Words;
use crate::fault::Fault;
use crate::say;
use jiff::civil::{Date, Weekday};
use jiff::{ToSpan, Zoned};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    This,
    Next,
    Last,
}

pub fn which(word: &str) -> Option<Which> {
    Some(match word {
        "this" | "current" | "coming" | "upcoming" => Which::This,
        "next" => Which::Next,
        "last" | "previous" | "past" => Which::Last,
        _ => return None,
    })
}

/// Reads a day named from today, if one stands here.
pub fn take(words: &mut Words, now: &Zoned, notes: &mut Vec<String>) -> Result<Option<Base>, Fault> {
    if words.take(&["now"]) || words.take_all(&["right", "now"]) {
        return Ok(Some(Base::Instant(now.clone())));
    }
    if let Some(days) = named_day(words) {
        return later(now.date(), days).map(|date| Some(Base::Day(date)));
    }
    let mark = words.mark();
    let Some(which) = words.take_map(which) else {
        return Ok(None);
    };
    if which == Which::This {
        words.take(&["coming"]);
    }
    if let Some(weekday) = words.take_map(names::weekday) {
        return pick(which, weekday, now.date(), &words.since(mark), notes).map(Some);
    }
    match words.take_map(names::unit) {
        Some(unit) => step(which, unit, now, &words.since(mark), notes).map(Some),
        None => {
            words.back_to(mark);
            Ok(None)
        }
    }
}

fn named_day(words: &mut Words) -> Option<i64> {
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

pub fn later(date: Date, days: i64) -> Result<Date, Fault> {
    let span = 0.days().try_days(days).map_err(|_| Fault::out_of_range())?;
    date.checked_add(span).map_err(|_| Fault::out_of_range())
}

/// The coming weekday; today counts.
pub fn coming(weekday: Weekday, today: Date) -> Result<Date, Fault> {
    later(today, i64::from(today.weekday().until(weekday)))
}

fn pick(
    which: Which,
    weekday: Weekday,
    today: Date,
    said: &str,
    notes: &mut Vec<String>,
) -> Result<Base, Fault> {
    let ahead = i64::from(today.weekday().until(weekday));
    let name = say::weekday(weekday);
    let (days, reading) = match which {
        Which::This => (ahead, format!("the coming {name}, today included")),
        Which::Next => (if ahead == 0 { 7 } else { ahead }, format!("the first {name} after today")),
        Which::Last => (ahead - 7, format!("the last {name} before today")),
    };
    let date = later(today, days)?;
    let other = if which == Which::Next { other_next(today, date)? } else { String::new() };
    notes.push(format!("\"{said}\" is read as {reading}: {date}{other}."));
    Ok(Base::Day(date))
}

/// Within a week some people mean the one a week later.
fn other_next(today: Date, found: Date) -> Result<String, Fault> {
    let left_in_week = i64::from(6 - today.weekday().to_monday_zero_offset());
    if found > later(today, left_in_week)? {
        return Ok(String::new());
    }
    Ok(format!("; the one of next week is {}", later(found, 7)?))
}

fn step(which: Which, unit: Unit, now: &Zoned, said: &str, notes: &mut Vec<String>) -> Result<Base, Fault> {
    let direction = match which {
        Which::This if unit == Unit::Week => return Ok(Base::Week(now.datetime())),
        Which::This => return Err(vague(said)),
        Which::Next => Direction::Ahead,
        Which::Last => Direction::Back,
    };
    let shift = Shift::one(unit);
    if !shift.is_by_calendar() {
        return shift.apply(now, direction, notes).map(Base::Instant);
    }
    let reading = shift.on_calendar(now.datetime(), direction, notes)?;
    notes.push(format!(
        "\"{said}\" is read as one {} {}.",
        name(unit),
        if which == Which::Next { "from now" } else { "ago" }
    ));
    Ok(if unit == Unit::Week { Base::Week(reading) } else { Base::Kept(reading) })
}

pub fn vague(said: &str) -> Fault {
    Fault::new(
        format!("\"{said}\" is a stretch of time, not a moment."),
        format!("Say start of {said}, end of {said}, or a day."),
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
