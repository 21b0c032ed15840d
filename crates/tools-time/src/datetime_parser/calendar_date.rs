//! Calendar dates: `March 5, 2027`, `5 March`, `2027-03-05`, `the 15th`. An ambiguous date such as 5/3/2027 is refused
//! with both readings.

use super::period::month_alone_error;
use super::vocabulary;
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use crate::time_format;
use jiff::civil::Date;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarDate {
    YearMonthDay(Date),
    /// Month and day; the year may be elsewhere in the text.
    MonthDay(i8, i8),
    Day(i8),
    Year(i16),
}

/// Takes a date, if there is one.
pub fn take(words: &mut WordCursor, notes: &mut Vec<String>) -> Result<Option<CalendarDate>, InputError> {
    if let Some(word) = words.peek().filter(|word| word.contains(['/', '-', '.'])) {
        let found = parse_numeric(word, notes)?;
        words.skip(usize::from(found.is_some()));
        return Ok(found.map(CalendarDate::YearMonthDay));
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
    if let Some(year) = words.take_map(vocabulary::year) {
        return Ok(Some(CalendarDate::Year(year)));
    }
    if let Some(day) = numbered_day(words) {
        return Ok(Some(CalendarDate::Day(day)));
    }
    let ordinal =
        |word: &str| vocabulary::ordinal(word).filter(|_| word.starts_with(|c: char| c.is_ascii_digit()));
    Ok(words.take_map(ordinal).map(CalendarDate::Day))
}

/// `the 27`, if no month follows.
fn numbered_day(words: &mut WordCursor) -> Option<i8> {
    let follows = words.peek_at(2).unwrap_or_default();
    let is_other =
        follows == "of" || vocabulary::month(follows).is_some() || vocabulary::unit(follows).is_some();
    let day = words
        .peek_at(1)
        .and_then(vocabulary::day_of_month)
        .filter(|_| words.peek() == Some("the") && !is_other)?;
    words.skip(2);
    Some(day)
}

/// `2027 march 5`.
fn year_first(words: &mut WordCursor) -> Result<Option<CalendarDate>, InputError> {
    let mark = words.mark();
    let found = words
        .take_map(vocabulary::year)
        .zip(words.take_map(vocabulary::month))
        .zip(words.take_map(vocabulary::day_of_month));
    let Some(((year, month), day)) = found else {
        words.reset_to(mark);
        return Ok(None);
    };
    checked_date(year, month, day).map(|date| Some(CalendarDate::YearMonthDay(date)))
}

/// `march 5 2027`, `march the 5th`, `march 5`.
fn month_first(words: &mut WordCursor) -> Result<Option<CalendarDate>, InputError> {
    let Some(month) = words.take_map(vocabulary::month) else {
        return Ok(None);
    };
    words.take(&["the"]);
    let is_hour = matches!(words.peek_at(1), Some("am" | "pm" | "o'clock" | "oclock"));
    let day = if is_hour { None } else { words.take_map(vocabulary::day_of_month) };
    match day {
        Some(day) => with_year(month, day, words).map(Some),
        None => Err(month_alone_error(month, words.take_map(vocabulary::year))),
    }
}

/// `5 march 2027`, `5th of march`.
fn day_first(words: &mut WordCursor) -> Result<Option<CalendarDate>, InputError> {
    let mark = words.mark();
    let day = words.take_map(vocabulary::day_of_month);
    words.take(&["of"]);
    match day.zip(words.take_map(vocabulary::month)) {
        Some((day, month)) => with_year(month, day, words).map(Some),
        None => {
            words.reset_to(mark);
            Ok(None)
        }
    }
}

fn with_year(month: i8, day: i8, words: &mut WordCursor) -> Result<CalendarDate, InputError> {
    words.take(&["of"]);
    match words.take_map(vocabulary::year) {
        Some(year) => checked_date(year, month, day).map(CalendarDate::YearMonthDay),
        None => Ok(CalendarDate::MonthDay(month, day)),
    }
}

pub fn checked_date(year: i16, month: i8, day: i8) -> Result<Date, InputError> {
    if !(1..=12).contains(&month) {
        return Err(InputError::new(
            format!("There is no month {month}."),
            "Months are 1 to 12; write 2027-03-05.",
        ));
    }
    Date::new(year, month, day).map_err(|_| {
        let last = Date::new(year, month, 1).map(|first| first.days_in_month()).unwrap_or(31);
        InputError::new(
            format!("There is no {day} {} {year}.", time_format::month_name(month)),
            format!("{} {year} has {last} days.", time_format::month_name(month)),
        )
    })
}

/// The next occurrence of a month and day, including today.
pub fn next_occurrence(month: i8, day: i8, today: Date, notes: &mut Vec<String>) -> Result<Date, InputError> {
    // The rarest date, 29 February, recurs within eight years.
    let years = (0..=8).map(|ahead| today.year().saturating_add(ahead));
    let found = years.filter_map(|year| Date::new(year, month, day).ok()).find(|date| *date >= today);
    let found = found.map_or_else(|| checked_date(today.year(), month, day), Ok)?;
    notes.push(format!(
        "No year is given, so the coming {day} {} is used: {found}.",
        time_format::month_name(month)
    ));
    Ok(found)
}

/// The next day with this number in its month, including today.
pub fn next_day_of_month(day: i8, today: Date, notes: &mut Vec<String>) -> Result<Date, InputError> {
    let mut month = today.first_of_month();
    for _ in 0..3 {
        if let Ok(found) = Date::new(month.year(), month.month(), day)
            && found >= today
        {
            notes.push(format!("No month is given, so the coming day {day} is used: {found}."));
            return Ok(found);
        }
        month = month.last_of_month().tomorrow().map_err(|_| InputError::out_of_range())?;
    }
    Err(InputError::out_of_range())
}

fn parse_numeric(word: &str, notes: &mut Vec<String>) -> Result<Option<Date>, InputError> {
    let parts: Vec<&str> = word.split(['/', '-', '.']).collect();
    let digits =
        |part: &&str| matches!(part.len(), 1 | 2 | 4) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !parts.iter().all(digits) {
        return Ok(None);
    }
    let short = |part: &str| part.parse::<i8>().ok().filter(|_| part.len() <= 2);
    match parts.as_slice() {
        [year, month, day] if year.len() == 4 => match (vocabulary::year(year), short(month), short(day)) {
            (Some(year), Some(month), Some(day)) => checked_date(year, month, day).map(Some),
            _ => Ok(None),
        },
        [first, second, year] if year.len() == 4 => {
            match (short(first), short(second), vocabulary::year(year)) {
                (Some(first), Some(second), Some(year)) => {
                    day_or_month_first(word, first, second, year, notes).map(Some)
                }
                _ => Ok(None),
            }
        }
        [_, _, _] => Err(InputError::new(
            format!("In {word} it is unclear which number is the year."),
            "Write the year with four digits and first: 2027-03-05.",
        )),
        [year, month] if year.len() == 4 => match (vocabulary::year(year), short(month)) {
            (year, Some(month @ 1..=12)) => Err(month_alone_error(month, year)),
            _ => Ok(None),
        },
        [_, _] if !word.contains('.') => Err(InputError::new(
            format!("In {word} it is unclear which number is the day, and the year is missing."),
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
) -> Result<Date, InputError> {
    // With dots the day comes first, in every country that uses this format.
    if word.contains('.') || first == second || (first > 12 && second <= 12) {
        let found = checked_date(year, second, first)?;
        notes.push(format!("{word} is read as {}.", time_format::long_date(found)));
        return Ok(found);
    }
    if second > 12 {
        let found = checked_date(year, first, second)?;
        notes.push(format!("{word} is read as {}.", time_format::long_date(found)));
        return Ok(found);
    }
    let (one, other) = (checked_date(year, second, first)?, checked_date(year, first, second)?);
    Err(InputError::new(
        format!("{word} can be {} or {}.", time_format::long_date(one), time_format::long_date(other)),
        format!("Write {one} or {other}."),
    ))
}
