//! Moments written as one number: Unix time, and dates without separators.

use super::calendar_date;
use super::time_of_day::format_short;
use super::{Moment, local_moment};
use crate::input_error::InputError;
use jiff::civil::{Date, Time};
use jiff::{Timestamp, Zoned};

/// Returns None if the text is not a single number.
pub fn parse(text: &str, now: &Zoned) -> Option<Result<Moment, InputError>> {
    let (marked, rest) = match text.strip_prefix('@') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (signed, digits) = match rest.strip_prefix(['-', '\u{2212}']) {
        Some(digits) => (true, digits),
        None => (false, rest),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let sign = if signed { -1 } else { 1 };
    let whole_number = !digits.contains('.');
    Some(match whole.len() {
        _ if marked || signed || whole == "0" => from_unix_seconds(sign, whole, fraction, now),
        9..=11 => from_unix_seconds(sign, whole, fraction, now),
        13 if whole_number => from_unix_scaled(whole, 1_000_000, "milliseconds", now),
        16 if whole_number => from_unix_scaled(whole, 1000, "microseconds", now),
        19 if whole_number => from_unix_scaled(whole, 1, "nanoseconds", now),
        8 | 14 if whole_number => from_packed_digits(whole, now),
        _ => Err(ambiguous_number_error(text)),
    })
}

fn ambiguous_number_error(text: &str) -> InputError {
    InputError::new(
        format!("{text} can be a year, a date or a number of seconds."),
        format!("Write a date as 2027-03-05, and Unix seconds as @{text}."),
    )
}

fn from_unix_seconds(sign: i64, whole: &str, fraction: &str, now: &Zoned) -> Result<Moment, InputError> {
    let nanoseconds: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let parsed = whole.parse::<i64>().ok().zip(nanoseconds.parse::<i32>().ok());
    let (seconds, nanoseconds) = parsed.ok_or_else(InputError::out_of_range)?;
    let negative = if sign < 0 { -1 } else { 1 };
    let at = Timestamp::new(sign.saturating_mul(seconds), negative * nanoseconds)
        .map_err(|_| InputError::out_of_range())?;
    Ok(moment(at, "seconds", now))
}

fn from_unix_scaled(whole: &str, nanoseconds: i128, unit: &str, now: &Zoned) -> Result<Moment, InputError> {
    let count = whole.parse::<i128>().map_err(|_| InputError::out_of_range())?;
    let at = Timestamp::from_nanosecond(count.saturating_mul(nanoseconds))
        .map_err(|_| InputError::out_of_range())?;
    Ok(moment(at, unit, now))
}

fn moment(at: Timestamp, unit: &str, now: &Zoned) -> Moment {
    let notes = vec![format!("The number is read as Unix {unit}.")];
    Moment { at: at.to_zoned(now.time_zone().clone()), notes, has_own_zone: false }
}

/// `20270305` and `20270305143000`.
fn from_packed_digits(whole: &str, now: &Zoned) -> Result<Moment, InputError> {
    let number = |from: usize, to: usize| whole.get(from..to).and_then(|part| part.parse::<i16>().ok());
    let small =
        |from: usize| number(from, from + 2).and_then(|part| i8::try_from(part).ok()).unwrap_or_default();
    let date: Date = calendar_date::checked_date(number(0, 4).unwrap_or_default(), small(4), small(6))
        .map_err(|_| ambiguous_number_error(whole))?;
    if whole.len() == 8 {
        return local_moment(date, None, now, format!("The number is read as the date {date}."));
    }
    let time = Time::new(small(8), small(10), small(12), 0).map_err(|_| ambiguous_number_error(whole))?;
    local_moment(date, Some(time), now, format!("The number is read as {date} {}.", format_short(time)))
}
