//! Formatting of moments, offsets and zones in replies.

use jiff::Zoned;
use jiff::civil::{Date, Weekday};
use jiff::tz::{Offset, TimeZone};

/// RFC 3339 with a numeric offset: `2026-11-14T22:00:00+01:00`. Offsets of the nineteenth century keep their seconds,
/// because rounding would change the instant.
pub fn iso(at: &Zoned) -> String {
    format!("{}{}", at.datetime(), offset(at.offset()))
}

/// `+01:00`, with seconds only for historical offsets that have them.
pub fn offset(offset: Offset) -> String {
    seconds_as_offset(offset.seconds())
}

/// The same for a difference of offsets, which can exceed the range of an offset.
pub fn seconds_as_offset(seconds: i32) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if rest == 0 {
        format!("{sign}{hours:02}:{minutes:02}")
    } else {
        format!("{sign}{hours:02}:{minutes:02}:{rest:02}")
    }
}

/// IANA name, or the offset of a fixed-offset zone.
pub fn zone_name(tz: &TimeZone) -> String {
    match (tz.iana_name(), tz.to_fixed_offset()) {
        (Some(name), _) => name.to_owned(),
        (None, Ok(fixed)) => offset(fixed),
        (None, Err(_)) => "local".to_owned(),
    }
}

pub fn weekday_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

pub fn month_name(number: i8) -> &'static str {
    const NAMES: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    usize::try_from(number - 1).ok().and_then(|index| NAMES.get(index)).copied().unwrap_or("?")
}

/// `5 March 2027`.
pub fn long_date(date: Date) -> String {
    format!("{} {} {}", date.day(), month_name(date.month()), date.year())
}

/// `Saturday, 14 November 2026, 22:00:00 in Europe/Berlin (+01:00)`.
pub fn human(at: &Zoned) -> String {
    let name = zone_name(at.time_zone());
    let offset = offset(at.offset());
    let zone_label = if name == "UTC" {
        "UTC".to_owned()
    } else if name == offset {
        format!("at UTC{offset}")
    } else {
        format!("in {name} ({offset})")
    };
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    format!(
        "{}, {}, {hour:02}:{minute:02}:{second:02} {zone_label}",
        weekday_name(at.weekday()),
        long_date(at.date())
    )
}

/// `a, b or c`.
pub fn join_or(items: &[String]) -> String {
    match items.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets() {
        for (seconds, text) in
            [(0, "+00:00"), (3600, "+01:00"), (-12_600, "-03:30"), (20_700, "+05:45"), (-17_762, "-04:56:02")]
        {
            assert_eq!(offset(Offset::from_seconds(seconds).unwrap()), text);
        }
    }

    #[test]
    fn moments() {
        let at: Zoned = "2026-11-14T22:00:00[UTC]".parse().unwrap();
        for (zone, expected) in [
            ("UTC", "Saturday, 14 November 2026, 22:00:00 UTC"),
            ("Europe/Berlin", "Saturday, 14 November 2026, 23:00:00 in Europe/Berlin (+01:00)"),
            ("Asia/Tokyo", "Sunday, 15 November 2026, 07:00:00 in Asia/Tokyo (+09:00)"),
        ] {
            assert_eq!(human(&at.in_tz(zone).unwrap()), expected);
        }
        let fixed = at.with_time_zone(jiff::tz::offset(2).to_time_zone());
        assert_eq!(human(&fixed), "Sunday, 15 November 2026, 00:00:00 at UTC+02:00");
        assert_eq!(iso(&fixed), "2026-11-15T00:00:00+02:00");
    }

    #[test]
    fn lists() {
        let items = ["a", "b", "c"].map(String::from);
        assert_eq!(join_or(&items), "a, b or c");
        assert_eq!(join_or(&items[..1]), "a");
        assert_eq!(join_or(&[]), "");
    }
}
