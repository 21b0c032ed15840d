//! Fixed offsets: `+02:00`, `-0330`, `+5`, `UTC+2`, `GMT-5`, `Z`.

use crate::input_error::InputError;
use jiff::tz::Offset;

/// Returns None if the text is not an offset, an error if it is an invalid one.
pub fn parse(text: &str) -> Option<Result<Offset, InputError>> {
    let text = text.to_ascii_lowercase().replace('\u{2212}', "-");
    if matches!(text.as_str(), "z" | "zulu" | "utc" | "ut") {
        return Some(Ok(Offset::UTC));
    }
    let rest = ["utc", "gmt", "ut"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix))
        .unwrap_or(&text)
        .trim_start();
    let (sign, digits) = match rest.strip_prefix('+') {
        Some(digits) => (1, digits),
        None => (-1, rest.strip_prefix('-')?),
    };
    let (hours, minutes) = hours_and_minutes(digits)?;
    Some(checked_offset(sign, hours, minutes))
}

/// Hours and minutes of `2`, `02`, `0230`, `2:30`, `02:30`.
fn hours_and_minutes(digits: &str) -> Option<(i32, i32)> {
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) if minutes.len() == 2 => (hours, minutes),
        Some(_) => return None,
        None if digits.len() == 4 => digits.split_at_checked(2)?,
        None => (digits, "00"),
    };
    let plain = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(hours) || !plain(minutes) {
        return None;
    }
    Some((hours.parse().ok()?, minutes.parse().ok()?))
}

fn checked_offset(sign: i32, hours: i32, minutes: i32) -> Result<Offset, InputError> {
    let seconds = sign * (hours * 3600 + minutes * 60);
    if minutes > 59 {
        return Err(InputError::new("The minutes of an offset are at most 59.", "Write it like +05:45."));
    }
    Offset::from_seconds(seconds)
        .ok()
        .filter(|offset| (-12 * 3600..=14 * 3600).contains(&offset.seconds()))
        .ok_or_else(|| {
            InputError::new("The UTC offset is out of range.", "Use an offset from -12:00 to +14:00.")
        })
}
