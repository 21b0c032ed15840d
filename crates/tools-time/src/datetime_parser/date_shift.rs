//! Shifts from one moment to another: `3 days`, `1 day 2 hours`, `an hour and a half`, `5 business days`.
//!
//! Years, months, weeks and days are calendar units and keep the time of day; hours and smaller units are elapsed
//! time.

use super::vocabulary::{self, Unit};
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use crate::local_time;
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Span, ToSpan, Zoned};

const BILLION: i64 = 1_000_000_000;
const MAX_AMOUNT: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Ahead,
    Back,
}

/// Calendar units and the elapsed rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shift {
    months: i64,
    days: i64,
    business_days: i64,
    nanoseconds: i128,
}

/// A number with its fraction in billionths.
#[derive(Debug, Clone, Copy)]
struct Amount {
    whole: i64,
    billionths: i64,
}

impl Amount {
    const HALF: Self = Self { whole: 0, billionths: BILLION / 2 };

    fn times(self, factor: i64) -> i128 {
        (i128::from(self.whole) * i128::from(BILLION) + i128::from(self.billionths)) * i128::from(factor)
    }
}

/// Takes `3 days`, `1 day and 2 hours`, …, if there is one.
pub fn take(words: &mut WordCursor, notes: &mut Vec<String>) -> Result<Option<Shift>, InputError> {
    let mut shift = Shift::default();
    let mut found = false;
    loop {
        let mark = words.mark();
        if found {
            words.take(&["and"]);
        }
        if !take_one(words, &mut shift, notes)? {
            words.reset_to(mark);
            return Ok(found.then_some(shift));
        }
        found = true;
    }
}

fn take_one(words: &mut WordCursor, shift: &mut Shift, notes: &mut Vec<String>) -> Result<bool, InputError> {
    let mark = words.mark();
    let Some(amount) = take_amount(words) else {
        return Ok(false);
    };
    if words.take(&["business", "working"]) && words.take(&["day", "days"]) {
        shift.add_business_days(amount, notes)?;
        return Ok(true);
    }
    let short_minute = words.peek() == Some("m");
    let Some(unit) = words.take_map(vocabulary::unit) else {
        words.reset_to(mark);
        return Ok(false);
    };
    if short_minute && *shift == Shift::default() {
        notes.push("m is read as minutes.".to_owned());
    }
    shift.add(amount, unit)?;
    if words.take_all(&["and", "a", "half"]) {
        shift.add(Amount::HALF, unit)?;
    }
    Ok(true)
}

/// `3`, `1.5`, `three`, `a`, `half a`, `a couple of`, `two and a half`.
fn take_amount(words: &mut WordCursor) -> Option<Amount> {
    let mark = words.mark();
    if words.take(&["half"]) {
        words.take(&["a", "an"]);
        return Some(Amount::HALF);
    }
    words.take_all(&["a", "couple"]);
    if words.mark() > mark || words.take(&["couple"]) {
        words.take(&["of"]);
        return Some(Amount { whole: 2, billionths: 0 });
    }
    let mut amount = words.take_map(decimal)?;
    if words.take_all(&["and", "a", "half"]) {
        amount.billionths += Amount::HALF.billionths;
    }
    Some(amount)
}

fn decimal(word: &str) -> Option<Amount> {
    if let Some(whole) = vocabulary::count(word) {
        return Some(Amount { whole, billionths: 0 });
    }
    let (whole, fraction) = word.split_once('.')?;
    let digits = |part: &str, max_len: usize| {
        (1..=max_len).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !digits(whole, 9) || !digits(fraction, 9) {
        return None;
    }
    Some(Amount { whole: whole.parse().ok()?, billionths: format!("{fraction:0<9}").parse().ok()? })
}

impl Shift {
    /// One unit: `next month`, `last week`.
    pub fn one_unit(unit: Unit) -> Self {
        let mut shift = Self::default();
        // One whole unit is never too large and never a fraction.
        let _ = shift.add(Amount { whole: 1, billionths: 0 }, unit);
        shift
    }

    fn add(&mut self, amount: Amount, unit: Unit) -> Result<(), InputError> {
        if amount.whole > MAX_AMOUNT {
            return Err(InputError::out_of_range());
        }
        match unit {
            Unit::Year => self.add_months(amount, 12),
            Unit::Quarter => self.add_months(amount, 3),
            Unit::Month => self.add_months(amount, 1),
            Unit::Fortnight => self.add_days(amount, 14),
            Unit::Week => self.add_days(amount, 7),
            Unit::Day => self.add_days(amount, 1),
            Unit::Hour => self.add_seconds(amount, 3600),
            Unit::Minute => self.add_seconds(amount, 60),
            Unit::Second => self.add_seconds(amount, 1),
            Unit::Millisecond => {
                self.nanoseconds += amount.times(1) / 1000;
                Ok(())
            }
        }
    }

    fn add_months(&mut self, amount: Amount, factor: i64) -> Result<(), InputError> {
        let total = amount.times(factor);
        if total % i128::from(BILLION) != 0 {
            return Err(InputError::new(
                "Months have no fixed length, so fractions are not supported.",
                "Use days or weeks.",
            ));
        }
        self.months += i64::try_from(total / i128::from(BILLION)).map_err(|_| InputError::out_of_range())?;
        Ok(())
    }

    /// Adds whole calendar days; half a day is twelve hours.
    fn add_days(&mut self, amount: Amount, factor: i64) -> Result<(), InputError> {
        let total = amount.times(factor);
        self.days += i64::try_from(total / i128::from(BILLION)).map_err(|_| InputError::out_of_range())?;
        self.nanoseconds += total % i128::from(BILLION) * 86_400;
        Ok(())
    }

    fn add_seconds(&mut self, amount: Amount, factor: i64) -> Result<(), InputError> {
        self.nanoseconds += amount.times(factor);
        Ok(())
    }

    fn add_business_days(&mut self, amount: Amount, notes: &mut Vec<String>) -> Result<(), InputError> {
        if amount.billionths != 0 || amount.whole > 100_000 {
            return Err(InputError::new(
                "The number of business days is out of range.",
                "Use a whole number up to 100000.",
            ));
        }
        self.business_days += amount.whole;
        notes.push("Business days are Monday to Friday; public holidays are not considered.".to_owned());
        Ok(())
    }

    /// True if only calendar units are involved, so that a time of day may be added.
    pub fn is_calendar_only(&self) -> bool {
        self.nanoseconds == 0
    }

    /// Local time after the calendar shift.
    pub fn apply_calendar(
        &self,
        from: DateTime,
        direction: Direction,
        notes: &mut Vec<String>,
    ) -> Result<DateTime, InputError> {
        let moved = shift_date_time(from, self.months, 0, direction)?;
        if moved.day() != from.day() {
            notes.push(format!("That month has no day {}, so its last day is used.", from.day()));
        }
        let moved = self.skip_business_days(moved, direction)?;
        self::shift_date_time(moved, 0, self.days, direction)
    }

    fn skip_business_days(&self, from: DateTime, direction: Direction) -> Result<DateTime, InputError> {
        let (mut date, mut left) = (from.date(), self.business_days);
        while left > 0 {
            let next = if direction == Direction::Ahead { date.tomorrow() } else { date.yesterday() };
            date = next.map_err(|_| InputError::out_of_range())?;
            left -= i64::from(is_business_day(date));
        }
        Ok(date.to_datetime(from.time()))
    }

    /// The moment shifted by this amount.
    pub fn apply(
        &self,
        from: &Zoned,
        direction: Direction,
        notes: &mut Vec<String>,
    ) -> Result<Zoned, InputError> {
        let reading = self.apply_calendar(from.datetime(), direction, notes)?;
        let base = if reading == from.datetime() {
            from.clone()
        } else {
            local_time::resolve(reading, from.time_zone())?
        };
        let seconds =
            i64::try_from(self.nanoseconds / i128::from(BILLION)).map_err(|_| InputError::out_of_range())?;
        let rest = i32::try_from(self.nanoseconds % i128::from(BILLION)).unwrap_or_default();
        let elapsed = SignedDuration::new(seconds, rest);
        let moved = match direction {
            Direction::Ahead => base.checked_add(elapsed),
            Direction::Back => base.checked_sub(elapsed),
        };
        moved.map_err(|_| InputError::out_of_range())
    }
}

fn is_business_day(date: Date) -> bool {
    date.weekday().to_monday_zero_offset() < 5
}

fn shift_date_time(
    from: DateTime,
    months: i64,
    days: i64,
    direction: Direction,
) -> Result<DateTime, InputError> {
    let span: Span = 0
        .days()
        .try_months(months)
        .and_then(|span| span.try_days(days))
        .map_err(|_| InputError::out_of_range())?;
    let moved = match direction {
        Direction::Ahead => from.checked_add(span),
        Direction::Back => from.checked_sub(span),
    };
    moved.map_err(|_| InputError::out_of_range())
}
