//! Converts local time to an instant. Where a zone changes its clocks, a local time can be ambiguous or nonexistent; it
//! is refused then, and the error lists the possible instants.

use crate::input_error::InputError;
use crate::time_format;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{SignedDuration, Zoned};

/// The instant of a local time in a zone.
pub fn resolve(reading: DateTime, tz: &TimeZone) -> Result<Zoned, InputError> {
    let found = tz.to_ambiguous_zoned(reading);
    match found.offset() {
        AmbiguousOffset::Unambiguous { .. } => found.compatible().map_err(|_| InputError::out_of_range()),
        AmbiguousOffset::Fold { before, after } => Err(ambiguous_time_error(reading, tz, before, after)),
        AmbiguousOffset::Gap { before, after } => Err(skipped_time_error(reading, tz, before, after)),
    }
}

/// The first instant of a day, which is not 00:00 if clocks skip midnight.
pub fn start_of_day(date: Date, tz: &TimeZone, notes: &mut Vec<String>) -> Result<Zoned, InputError> {
    let midnight = DateTime::from(date);
    let start = tz.to_ambiguous_zoned(midnight).compatible().map_err(|_| InputError::out_of_range())?;
    if start.datetime() != midnight {
        notes.push(format!(
            "Clocks in {} skip midnight on {date}: the day begins at {}.",
            time_format::zone_name(tz),
            start.time()
        ));
    }
    Ok(start)
}

/// The last second of a day.
pub fn end_of_day(date: Date, tz: &TimeZone) -> Result<Zoned, InputError> {
    let next = date.tomorrow().map_err(|_| InputError::out_of_range())?;
    let start = start_of_day(next, tz, &mut Vec::new())?;
    start.checked_sub(SignedDuration::from_secs(1)).map_err(|_| InputError::out_of_range())
}

fn ambiguous_time_error(reading: DateTime, tz: &TimeZone, before: Offset, after: Offset) -> InputError {
    InputError::new(
        format!(
            "{} happens twice in {}: the clocks go back then.",
            format_civil(reading),
            time_format::zone_name(tz)
        ),
        format!(
            "Write {} (the first) or {} (the second).",
            with_offset(reading, before),
            with_offset(reading, after)
        ),
    )
}

fn skipped_time_error(reading: DateTime, tz: &TimeZone, before: Offset, after: Offset) -> InputError {
    let format_choice = |offset: Offset| match offset.to_timestamp(reading) {
        Ok(instant) => time_format::iso(&instant.to_zoned(tz.clone())),
        Err(_) => with_offset(reading, offset),
    };
    InputError::new(
        format!(
            "{} does not exist in {}: the clocks jump{}.",
            format_civil(reading),
            time_format::zone_name(tz),
            describe_gap(reading, tz, after)
        ),
        format!("Write {} (before the jump) or {} (after it).", format_choice(after), format_choice(before)),
    )
}

/// ` from 2026-03-29 02:00 to 2026-03-29 03:00`, if the zone data contains the transition.
fn describe_gap(reading: DateTime, tz: &TimeZone, after: Offset) -> String {
    let Ok(early) = after.to_timestamp(reading) else {
        return String::new();
    };
    let Some(change) = tz.following(early).next() else {
        return String::new();
    };
    let before = tz.to_offset(early).to_datetime(change.timestamp());
    format!(
        " from {} to {}",
        format_civil(before),
        format_civil(change.offset().to_datetime(change.timestamp()))
    )
}

fn format_civil(reading: DateTime) -> String {
    let (date, time) = (reading.date(), reading.time());
    if time.second() == 0 && time.subsec_nanosecond() == 0 {
        format!("{date} {:02}:{:02}", time.hour(), time.minute())
    } else {
        format!("{date} {time}")
    }
}

fn with_offset(reading: DateTime, offset: Offset) -> String {
    format!("{reading}{}", time_format::offset(offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    #[test]
    fn folds_and_gaps() {
        let rows = [
            (
                "Europe/Berlin",
                "2026-10-25T02:30",
                "2026-10-25 02:30 happens twice in Europe/Berlin: the clocks go back then.",
                "Write 2026-10-25T02:30:00+02:00 (the first) or 2026-10-25T02:30:00+01:00 (the second).",
            ),
            (
                "Europe/Berlin",
                "2026-03-29T02:30",
                "2026-03-29 02:30 does not exist in Europe/Berlin: the clocks jump from 2026-03-29 02:00 to 2026-03-29 03:00.",
                "Write 2026-03-29T01:30:00+01:00 (before the jump) or 2026-03-29T03:30:00+02:00 (after it).",
            ),
            (
                "America/New_York",
                "2026-03-08T02:00:01",
                "2026-03-08 02:00:01 does not exist in America/New_York: the clocks jump from 2026-03-08 02:00 to 2026-03-08 03:00.",
                "Write 2026-03-08T01:00:01-05:00 (before the jump) or 2026-03-08T03:00:01-04:00 (after it).",
            ),
            (
                "Australia/Lord_Howe",
                "2026-10-04T02:15",
                "2026-10-04 02:15 does not exist in Australia/Lord_Howe: the clocks jump from 2026-10-04 02:00 to 2026-10-04 02:30.",
                "Write 2026-10-04T01:45:00+10:30 (before the jump) or 2026-10-04T02:45:00+11:00 (after it).",
            ),
            (
                "Pacific/Apia",
                "2011-12-30T12:00",
                "2011-12-30 12:00 does not exist in Pacific/Apia: the clocks jump from 2011-12-30 00:00 to 2011-12-31 00:00.",
                "Write 2011-12-29T12:00:00-10:00 (before the jump) or 2011-12-31T12:00:00+14:00 (after it).",
            ),
        ];
        for (name, reading, message, hint) in rows {
            let fault = resolve(reading.parse().unwrap(), &zone(name)).unwrap_err();
            assert_eq!((fault.message.as_str(), fault.hint.as_str()), (message, hint));
        }
    }

    #[test]
    fn edges_are_not_ambiguous() {
        for (name, reading, iso) in [
            ("Europe/Berlin", "2026-10-25T01:59:59", "2026-10-25T01:59:59+02:00"),
            ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T03:00:00+01:00"),
            ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T03:00:00+02:00"),
            ("UTC", "2026-03-29T02:30", "2026-03-29T02:30:00+00:00"),
        ] {
            assert_eq!(time_format::iso(&resolve(reading.parse().unwrap(), &zone(name)).unwrap()), iso);
        }
    }

    #[test]
    fn days_without_midnight() {
        let mut notes = Vec::new();
        let start = start_of_day(date(2018, 11, 4), &zone("America/Sao_Paulo"), &mut notes).unwrap();
        assert_eq!(time_format::iso(&start), "2018-11-04T01:00:00-02:00");
        assert_eq!(
            notes,
            ["Clocks in America/Sao_Paulo skip midnight on 2018-11-04: the day begins at 01:00:00."]
        );
        // Midnight occurred twice: the day before ended with the second 23:59:59.
        let end = end_of_day(date(2018, 2, 17), &zone("America/Sao_Paulo")).unwrap();
        assert_eq!(time_format::iso(&end), "2018-02-17T23:59:59-03:00");
    }

    #[test]
    fn the_edge_of_the_calendar() {
        assert!(end_of_day(Date::MAX, &TimeZone::UTC).is_err());
        assert!(resolve(DateTime::MAX, &zone("America/New_York")).is_err());
    }
}
