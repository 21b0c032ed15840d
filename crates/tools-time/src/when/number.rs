//! Moments that are one number: Unix time, and dates without any sign between the digits.

use super::calendar;
use super::clock::short;
use super::{Moment, local_moment};
use crate::fault::Fault;
use jiff::civil::{Date, Time};
use jiff::{Timestamp, Zoned};

/// Nothing when the text is not one number.
pub fn read(text: &str, now: &Zoned) -> Option<Result<Moment, Fault>> {
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
        _ if marked || signed || whole == "0" => unix(sign, whole, fraction, now),
        9..=11 => unix(sign, whole, fraction, now),
        13 if whole_number => scaled(whole, 1_000_000, "milliseconds", now),
        16 if whole_number => scaled(whole, 1000, "microseconds", now),
        19 if whole_number => scaled(whole, 1, "nanoseconds", now),
        8 | 14 if whole_number => packed(whole, now),
        _ => Err(unclear(text)),
    })
}

fn unclear(text: &str) -> Fault {
    Fault::new(
        format!("{text} can be a year, a date or a number of seconds."),
        format!("Write a date as 2027-03-05, and Unix seconds as @{text}."),
    )
}

fn unix(sign: i64, whole: &str, fraction: &str, now: &Zoned) -> Result<Moment, Fault> {
    let nanoseconds: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let parsed = whole.parse::<i64>().ok().zip(nanoseconds.parse::<i32>().ok());
    let (seconds, nanoseconds) = parsed.ok_or_else(Fault::out_of_range)?;
    let negative = if sign < 0 { -1 } else { 1 };
    let at = Timestamp::new(sign.saturating_mul(seconds), negative * nanoseconds)
        .map_err(|_| Fault::out_of_range())?;
    Ok(moment(at, "seconds", now))
}

fn scaled(whole: &str, nanoseconds: i128, unit: &str, now: &Zoned) -> Result<Moment, Fault> {
    let count = whole.parse::<i128>().map_err(|_| Fault::out_of_range())?;
    let at =
        Timestamp::from_nanosecond(count.saturating_mul(nanoseconds)).map_err(|_| Fault::out_of_range())?;
    Ok(moment(at, unit, now))
}

fn moment(at: Timestamp, unit: &str, now: &Zoned) -> Moment {
    let notes = vec![format!("The number is read as Unix {unit}.")];
    Moment { at: at.to_zoned(now.time_zone().clone()), notes, own_zone: false }
}

/// `20270305` and `20270305143000`.
fn packed(whole: &str, now: &Zoned) -> Result<Moment, Fault> {
    let number = |from: usize, to: usize| whole.get(from..to).and_then(|part| part.parse::<i16>().ok());
    let small =
        |from: usize| number(from, from + 2).and_then(|part| i8::try_from(part).ok()).unwrap_or_default();
    let date: Date =
        calendar::date(number(0, 4).unwrap_or_default(), small(4), small(6)).map_err(|_| unclear(whole))?;
    if whole.len() == 8 {
        return local_moment(date, None, now, format!("The number is read as the date {date}."));
    }
    let time = Time::new(small(8), small(10), small(12), 0).map_err(|_| unclear(whole))?;
    local_moment(date, Some(time), now, format!("The number is read as {date} {}.", short(time)))
}
