//! Dates by the calendar: `March 5, 2027`, `5 March`, `2027-03-05`, `the 15th`. A date like 5/3/2027 that has two
//! readings is refused with both.

use super::names;
use super::period::only_a_month;
use super::words::Words;
use crate::fault::Fault;
use crate::say;
use jiff::civil::Date;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Full(Date),
    /// Month and day; the year may stand elsewhere in the text.
    MonthDay(i8, i8),
    Day(i8),
    Year(i16),
}

/// Reads a date, if one stands here.
pub fn take(words: &mut Words, notes: &mut Vec<String>) -> Result<Option<Found>, Fault> {
    if let Some(word) = words.peek().filter(|word| word.contains(['/', '-', '.'])) {
        let found = numeric(word, notes)?;
        words.skip(usize::from(found.is_some()));
        return Ok(found.map(Found::Full));
    }
    if let Some(found) = year_first(words)? {
        return Ok(Some(found));
    }
    if let Some(found) = month_first(words)? {
        return Ok(Some(found));
    }
    if let Some(found) = day_first(words)? {
        return Ok(Some(found));
    }
    if let Some(year) = words.take_map(names::year) {
        return Ok(Some(Found::Year(year)));
    }
    if let Some(day) = numbered_day(words) {
        return Ok(Some(Found::Day(day)));
    }
    let ordinal =
        |word: &str| names::ordinal(word).filter(|_| word.starts_with(|c: char| c.is_ascii_digit()));
    Ok(words.take_map(ordinal).map(Found::Day))
}

/// `the 27`, when no month follows.
fn numbered_day(words: &mut Words) -> Option<i8> {
    let follows = words.ahead(2).unwrap_or_default();
    let is_other = follows == "of" || names::month(follows).is_some() || names::unit(follows).is_some();
    let day =
        words.ahead(1).and_then(names::day_of_month).filter(|_| words.peek() == Some("the") && !is_other)?;
    words.skip(2);
    Some(day)
}

/// `2027 march 5`.
fn year_first(words: &mut Words) -> Result<Option<Found>, Fault> {
    let mark = words.mark();
    let found = words
        .take_map(names::year)
        .zip(words.take_map(names::month))
        .zip(words.take_map(names::day_of_month));
    let Some(((year, month), day)) = found else {
        words.back_to(mark);
        return Ok(None);
    };
    date(year, month, day).map(|date| Some(Found::Full(date)))
}

/// `march 5 2027`, `march the 5th`, `march 5`.
fn month_first(words: &mut Words) -> Result<Option<Found>, Fault> {
    let Some(month) = words.take_map(names::month) else {
        return Ok(None);
    };
    words.take(&["the"]);
    let is_hour = matches!(words.ahead(1), Some("am" | "pm" | "o'clock" | "oclock"));
    let day = if is_hour { None } else { words.take_map(names::day_of_month) };
    match day {
        Some(day) => with_year(month, day, words).map(Some),
        None => Err(only_a_month(month, words.take_map(names::year))),
    }
}

/// `5 march 2027`, `5th of march`.
fn day_first(words: &mut Words) -> Result<Option<Found>, Fault> {
    let mark = words.mark();
    let day = words.take_map(names::day_of_month);
    words.take(&["of"]);
    match day.zip(words.take_map(names::month)) {
        Some((day, month)) => with_year(month, day, words).map(Some),
        None => {
            words.back_to(mark);
            Ok(None)
        }
    }
}

fn with_year(month: i8, day: i8, words: &mut Words) -> Result<Found, Fault> {
    words.take(&["of"]);
    match words.take_map(names::year) {
        Some(year) => date(year, month, day).map(Found::Full),
        None => Ok(Found::MonthDay(month, day)),
    }
}

pub fn date(year: i16, month: i8, day: i8) -> Result<Date, Fault> {
    if !(1..=12).contains(&month) {
        return Err(Fault::new(
            format!("There is no month {month}."),
            "Months go from 1 to 12; write 2027-03-05.",
        ));
    }
    Date::new(year, month, day).map_err(|_| {
        let last = Date::new(year, month, 1).map(|first| first.days_in_month()).unwrap_or(31);
        Fault::new(
            format!("There is no {day} {} {year}.", say::month(month)),
            format!("{} {year} has {last} days.", say::month(month)),
        )
    })
}

/// The coming day of that name; today counts.
pub fn coming(month: i8, day: i8, today: Date, notes: &mut Vec<String>) -> Result<Date, Fault> {
    // The rarest date, 29 February, comes again within eight years.
    let years = (0..=8).map(|ahead| today.year().saturating_add(ahead));
    let found = years.filter_map(|year| Date::new(year, month, day).ok()).find(|date| *date >= today);
    let found = found.map_or_else(|| date(today.year(), month, day), Ok)?;
    notes.push(format!("No year is given, so the coming {day} {} is taken: {found}.", say::month(month)));
    Ok(found)
}

/// The coming day with that number in its month; today counts.
pub fn coming_day(day: i8, today: Date, notes: &mut Vec<String>) -> Result<Date, Fault> {
    let mut month = today.first_of_month();
    for _ in 0..3 {
        if let Ok(found) = Date::new(month.year(), month.month(), day)
            && found >= today
        {
            notes.push(format!("No month is given, so the coming day {day} is taken: {found}."));
            return Ok(found);
        }
        month = month.last_of_month().tomorrow().map_err(|_| Fault::out_of_range())?;
    }
    Err(Fault::out_of_range())
}

fn numeric(word: &str, notes: &mut Vec<String>) -> Result<Option<Date>, Fault> {
    let parts: Vec<&str> = word.split(['/', '-', '.']).collect();
    let digits =
        |part: &&str| matches!(part.len(), 1 | 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(digits) {
        return Ok(None);
    }
    let short = |part: &str| part.parse::<i8>().ok().filter(|_| part.len() <= 2);
    match parts.as_slice() {
        [year, month, day] if year.len() == 4 => match (names::year(year), short(month), short(day)) {
            (Some(year), Some(month), Some(day)) => date(year, month, day).map(Some),
            _ => Ok(None),
        },
        [first, second, year] if year.len() == 4 => match (short(first), short(second), names::year(year)) {
            (Some(first), Some(second), Some(year)) => {
                day_or_month_first(word, first, second, year, notes).map(Some)
            }
            _ => Ok(None),
        },
        [_, _, _] => Err(Fault::new(
            format!("{word} does not say which number is the year."),
            "Write the year with four digits and first: 2027-03-05.",
        )),
        [year, month] if year.len() == 4 => match (names::year(year), short(month)) {
            (year, Some(month @ 1..=12)) => Err(only_a_month(month, year)),
            _ => Ok(None),
        },
        [_, _] if !word.contains('.') => Err(Fault::new(
            format!("{word} does not say which number is the day, nor which year."),
            "Write the whole date, year first: 2027-03-05.",
        )),
        _ => Ok(None),
    }
}

fn day_or_month_first(
    word: &str,
    first: i8,
    second: i8,
    year: i16,
    notes: &mut Vec<String>,
) -> Result<Date, Fault> {
    // With dots the day stands first, in every country that writes dates so.
    if word.contains('.') || first == second || (first > 12 && second <= 12) {
        let found = date(year, second, first)?;
        notes.push(format!("{word} is read as {}.", say::day(found)));
        return Ok(found);
    }
    if second > 12 {
        let found = date(year, first, second)?;
        notes.push(format!("{word} is read as {}.", say::day(found)));
        return Ok(found);
    }
    let (one, other) = (date(year, second, first)?, date(year, first, second)?);
    Err(Fault::new(
        format!("{word} can be {} or {}.", say::day(one), say::day(other)),
        format!("Write {one} or {other}."),
    ))
}
