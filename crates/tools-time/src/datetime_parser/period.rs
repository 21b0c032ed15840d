//! Boundaries and days of a period: `end of month`, `start of next week`, `first monday of march 2027`, `eoy`.
//!
//! Weeks run from Monday to Sunday. A start is the first instant, an end the last second.

use super::date_spec::DateSpec;
use super::relative_date::{RelativeWord, add_days, next_weekday, relative_word};
use super::vocabulary::{self, Unit};
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use crate::time_format;
use jiff::civil::{Date, Weekday};
use jiff::{ToSpan, Zoned};

/// Whole days, including first and last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Period {
    first: Date,
    last: Date,
}

/// Unit counted in a period.
#[derive(Debug, Clone, Copy)]
enum DayKind {
    Day,
    BusinessDay,
    Weekday(Weekday),
}

/// Takes a boundary or a counted day, if there is one.
pub fn take(
    words: &mut WordCursor,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<Option<DateSpec>, InputError> {
    if let Some(unit) = words.take_map(abbreviated_end) {
        return period(unit, 0, now.date()).map(|period| Some(DateSpec::EndOf(period.last)));
    }
    let mark = words.mark();
    let found = match take_edge(words, now)? {
        Some(base) => Some(base),
        None => {
            words.reset_to(mark);
            take_nth(words, now, notes)?
        }
    };
    if found.is_none() {
        words.reset_to(mark);
    }
    Ok(found)
}

fn abbreviated_end(word: &str) -> Option<Unit> {
    Some(match word {
        "eod" => Unit::Day,
        "eow" => Unit::Week,
        "eom" => Unit::Month,
        "eoq" => Unit::Quarter,
        "eoy" => Unit::Year,
        _ => return None,
    })
}

fn take_edge(words: &mut WordCursor, now: &Zoned) -> Result<Option<DateSpec>, InputError> {
    let at_start = words.take(&["start", "beginning"]);
    if !at_start && !words.take(&["end"]) {
        return Ok(None);
    }
    words.take(&["of"]);
    match take_period(words, now.date())? {
        Some(period) if at_start => Ok(Some(DateSpec::StartOf(period.first))),
        Some(period) => Ok(Some(DateSpec::EndOf(period.last))),
        None => Err(InputError::new(
            "The period is missing.",
            "Write end of month, end of next week, start of 2027, end of Q3.",
        )),
    }
}

/// `first monday of next month`, `the last day of february 2028`, `15th of next month`.
fn take_nth(
    words: &mut WordCursor,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<Option<DateSpec>, InputError> {
    words.take(&["the"]);
    let mark = words.mark();
    let number = words
        .take_map(|word| if word == "last" { Some(-1) } else { vocabulary::ordinal(word).map(i64::from) });
    let Some(number) = number else { return Ok(None) };
    let kind = take_kind(words, number, notes);
    let (Some(kind), true) = (kind, words.take(&["of", "in"])) else {
        return Ok(None);
    };
    let Some(period) = take_period(words, now.date())? else {
        return Ok(None);
    };
    match period.find(kind, number)? {
        Some(date) => Ok(Some(DateSpec::Day(date))),
        None => Err(InputError::new(
            format!(
                "There is no {}: the period is {} to {}.",
                words.text_since(mark),
                period.first,
                period.last
            ),
            "Count fewer, or count from the end with last.",
        )),
    }
}

fn take_kind(words: &mut WordCursor, number: i64, notes: &mut Vec<String>) -> Option<DayKind> {
    if let Some(weekday) = words.take_map(vocabulary::weekday) {
        return Some(DayKind::Weekday(weekday));
    }
    if words.take_all(&["business", "day"]) || words.take_all(&["working", "day"]) {
        notes.push("Business days are Monday to Friday; public holidays are not considered.".to_owned());
        return Some(DayKind::BusinessDay);
    }
    // `15th of next month` has no word for the day; `last of next month` is not accepted.
    (words.take(&["day"]) || number > 0).then_some(DayKind::Day)
}

fn take_period(words: &mut WordCursor, today: Date) -> Result<Option<Period>, InputError> {
    words.take(&["the"]);
    take_day(words, today)
        .or_else(|| take_named(words, today))
        .or_else(|| take_counted(words, today))
        .transpose()
}

/// `today`, `friday`.
fn take_day(words: &mut WordCursor, today: Date) -> Option<Result<Period, InputError>> {
    if let Some(weekday) = words.take_map(vocabulary::weekday) {
        return Some(next_weekday(weekday, today).and_then(|day| period(Unit::Day, 0, day)));
    }
    let days = words.take_map(|word| match word {
        "today" => Some(0),
        "tomorrow" => Some(1),
        "yesterday" => Some(-1),
        _ => None,
    })?;
    Some(period(Unit::Day, days, today))
}

/// `march`, `march 2027`, `q3`, `2027`.
fn take_named(words: &mut WordCursor, today: Date) -> Option<Result<Period, InputError>> {
    if let Some(month) = words.take_map(vocabulary::month) {
        words.take(&["of"]);
        return Some(named_month(month, words.take_map(vocabulary::year), today));
    }
    if let Some(number) = take_quarter(words) {
        return Some(named_quarter(number, words.take_map(vocabulary::year), today));
    }
    words.take_map(vocabulary::year).map(named_year)
}

/// `next month`, `week`.
fn take_counted(words: &mut WordCursor, today: Date) -> Option<Result<Period, InputError>> {
    let steps = match words.take_map(relative_word) {
        None | Some(RelativeWord::This) => 0,
        Some(RelativeWord::Next) => 1,
        Some(RelativeWord::Last) => -1,
    };
    let whole = [Unit::Day, Unit::Week, Unit::Month, Unit::Quarter, Unit::Year];
    let unit = words.take_map(|word| vocabulary::unit(word).filter(|unit| whole.contains(unit)))?;
    Some(period(unit, steps, today))
}

fn period(unit: Unit, steps: i64, today: Date) -> Result<Period, InputError> {
    let (first, months) = match unit {
        Unit::Week => {
            let monday = add_days(today, steps * 7 - i64::from(today.weekday().to_monday_zero_offset()))?;
            return Ok(Period { first: monday, last: add_days(monday, 6)? });
        }
        Unit::Month => (today.first_of_month(), 1),
        Unit::Quarter => (first_of_quarter(today)?, 3),
        Unit::Year => (today.first_of_year(), 12),
        _ => {
            let day = add_days(today, steps)?;
            return Ok(Period { first: day, last: day });
        }
    };
    let first = plus_months(first, steps * months)?;
    Ok(Period { first, last: plus_months(first, months - 1)?.last_of_month() })
}

fn first_of_quarter(date: Date) -> Result<Date, InputError> {
    Date::new(date.year(), (date.month() - 1) / 3 * 3 + 1, 1).map_err(|_| InputError::out_of_range())
}

fn plus_months(date: Date, months: i64) -> Result<Date, InputError> {
    let span = 0.days().try_months(months).map_err(|_| InputError::out_of_range())?;
    date.checked_add(span).map_err(|_| InputError::out_of_range())
}

/// Without a year: the current or next occurrence of the month.
fn named_month(month: i8, year: Option<i16>, today: Date) -> Result<Period, InputError> {
    let next = i16::from(month < today.month());
    let year = year.unwrap_or(today.year().saturating_add(next));
    let first = Date::new(year, month, 1).map_err(|_| InputError::out_of_range())?;
    Ok(Period { first, last: first.last_of_month() })
}

/// `q3`, which is split into the words `q` and `3`.
fn take_quarter(words: &mut WordCursor) -> Option<i8> {
    let number =
        words.peek_at(1).and_then(|word| word.parse().ok()).filter(|number| (1..=4).contains(number));
    let number = number.filter(|_| words.peek() == Some("q"))?;
    words.skip(2);
    Some(number)
}

/// Without a year: the current or next occurrence of the quarter.
fn named_quarter(number: i8, year: Option<i16>, today: Date) -> Result<Period, InputError> {
    let last_month = number * 3;
    let next = i16::from(last_month < today.month());
    let year = year.unwrap_or(today.year().saturating_add(next));
    let first = Date::new(year, last_month - 2, 1).map_err(|_| InputError::out_of_range())?;
    Ok(Period { first, last: plus_months(first, 2)?.last_of_month() })
}

fn named_year(year: i16) -> Result<Period, InputError> {
    let first = Date::new(year, 1, 1).map_err(|_| InputError::out_of_range())?;
    Ok(Period { first, last: first.last_of_year() })
}

impl Period {
    /// The day with this number; -1 counts from the end. None if the period is too short.
    fn find(&self, kind: DayKind, number: i64) -> Result<Option<Date>, InputError> {
        let from_end = number < 0;
        let start = if from_end { self.last } else { self.first };
        let mut day = start;
        let mut left = number.abs();
        while self.contains(day) {
            left -= i64::from(kind.matches(day));
            if left == 0 {
                return Ok(Some(day));
            }
            day = add_days(day, if from_end { -1 } else { 1 })?;
        }
        Ok(None)
    }

    fn contains(&self, day: Date) -> bool {
        self.first <= day && day <= self.last
    }
}

impl DayKind {
    fn matches(self, day: Date) -> bool {
        match self {
            Self::Day => true,
            Self::BusinessDay => day.weekday().to_monday_zero_offset() < 5,
            Self::Weekday(weekday) => day.weekday() == weekday,
        }
    }
}

/// Error for a month or year where a day is required.
pub fn month_alone_error(month: i8, year: Option<i16>) -> InputError {
    let name = match year {
        Some(year) => format!("{} {year}", time_format::month_name(month)),
        None => time_format::month_name(month).to_owned(),
    };
    InputError::new(
        format!("{name} is a month, not a moment."),
        format!("Add the day, or write start of {name} or end of {name}."),
    )
}
