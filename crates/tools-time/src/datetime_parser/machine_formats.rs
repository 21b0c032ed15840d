//! Machine formats: ISO 8601, RFC 3339, RFC 9557 with `[Zone]`, RFC 2822, Unix time.

use super::{Moment, START_OF_DAY_NOTE, local_moment, numeric_moment};
use crate::input_error::InputError;
use crate::{local_time, time_format, zone};
use jiff::civil::{DateTime, ISOWeekDate};
use jiff::fmt::rfc2822;
use jiff::fmt::temporal::{Pieces, PiecesOffset, TimeZoneAnnotationKind};
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// Returns None if the text has none of these formats; it may be words then.
pub fn parse(text: &str, now: &Zoned) -> Option<Result<Moment, InputError>> {
    if let Some(found) = numeric_moment::parse(text, now) {
        return Some(found);
    }
    if let Ok(pieces) = Pieces::parse(text) {
        return Some(from_pieces(&pieces, text, now));
    }
    if let Ok(week) = text.parse::<ISOWeekDate>() {
        return Some(local_moment(week.date(), None, now, format!("The week date is {}.", week.date())));
    }
    parse_rfc2822(text).map(Ok)
}

/// RFC 2822, recognized by its weekday and comma; other orders of the same words are left to the grammar.
fn parse_rfc2822(text: &str) -> Option<Moment> {
    let (weekday, _) = text.split_once(',')?;
    if weekday.len() != 3 {
        return None;
    }
    let at = rfc2822::parse(text).ok()?;
    let zone = text.split_whitespace().next_back().unwrap_or_default();
    let named = zone.chars().all(char::is_alphabetic)
        && !["GMT", "UT", "UTC", "Z"].iter().any(|utc| zone.eq_ignore_ascii_case(utc));
    let notes = if named {
        vec![format!("{zone} is {} in RFC 2822.", time_format::offset(at.offset()))]
    } else {
        Vec::new()
    };
    Some(Moment { at, notes, has_own_zone: true })
}

fn from_pieces(pieces: &Pieces<'_>, text: &str, now: &Zoned) -> Result<Moment, InputError> {
    let (named, mut notes) = annotation(pieces)?;
    if text.contains(":60") {
        notes.push("Second 60 is read as second 59.".to_owned());
    }
    let reading = pieces.date().to_datetime(pieces.time().unwrap_or_default());
    let at = match (pieces.offset(), named) {
        (None, None) => {
            let moment = local_moment(pieces.date(), pieces.time(), now, String::new())?;
            return Ok(Moment { notes: [notes, moment.notes].concat(), ..moment });
        }
        (None, Some(tz)) if pieces.time().is_none() => {
            notes.push(START_OF_DAY_NOTE.to_owned());
            local_time::start_of_day(pieces.date(), &tz, &mut notes)?
        }
        (None, Some(tz)) => local_time::resolve(reading, &tz)?,
        (Some(offset), None) => instant(reading, offset)?.to_zoned(offset.to_numeric_offset().to_time_zone()),
        (Some(PiecesOffset::Zulu), Some(tz)) => instant(reading, PiecesOffset::Zulu)?.to_zoned(tz),
        (Some(offset), Some(tz)) => check_offset_matches_zone(reading, offset, tz)?,
    };
    Ok(Moment { at, notes, has_own_zone: true })
}

fn annotation(pieces: &Pieces<'_>) -> Result<(Option<TimeZone>, Vec<String>), InputError> {
    let Some(annotation) = pieces.time_zone_annotation() else {
        return Ok((None, Vec::new()));
    };
    match annotation.kind() {
        TimeZoneAnnotationKind::Offset(offset) => Ok((Some(offset.to_time_zone()), Vec::new())),
        TimeZoneAnnotationKind::Named(name) => {
            let zone = zone::resolve(name.as_str())?;
            Ok((Some(zone.tz), zone.note.into_iter().collect()))
        }
        _ => Err(InputError::new(
            "The zone in brackets is not valid.",
            "Use an IANA name such as [Europe/Berlin].",
        )),
    }
}

fn instant(reading: DateTime, offset: PiecesOffset) -> Result<Timestamp, InputError> {
    offset.to_numeric_offset().to_timestamp(reading).map_err(|_| InputError::out_of_range())
}

/// Checks that offset and zone agree.
fn check_offset_matches_zone(
    reading: DateTime,
    offset: PiecesOffset,
    tz: TimeZone,
) -> Result<Zoned, InputError> {
    let stated: Offset = offset.to_numeric_offset();
    let at = instant(reading, offset)?.to_zoned(tz);
    if at.offset() == stated {
        return Ok(at);
    }
    let name = time_format::zone_name(at.time_zone());
    Err(InputError::new(
        format!(
            "The offset of {name} is not {} at that time, but {}.",
            time_format::offset(stated),
            time_format::offset(at.offset())
        ),
        format!(
            "Omit the zone ({reading}{}) or the offset ({reading}[{name}]), or correct one.",
            time_format::offset(stated)
        ),
    ))
}
