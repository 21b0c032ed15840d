//! Resolves zone names. Ambiguous names are refused with the choices; assumptions are reported in a note.

mod abbreviation;
mod utc_offset;
mod zone_suggestions;

use crate::input_error::InputError;
use crate::time_format;
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

pub use abbreviation::is_known as is_abbreviation;
pub use zone_suggestions::closest_words;

const MAX_NAME_CHARS: usize = 100;

/// Bundled time zone data: the same on every machine, independent of the system's.
static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names: Vec<String> = DATABASE.available().map(|name| name.as_str().to_owned()).collect();
    names.retain(|name| name != "Factory");
    names.sort_unstable();
    names
});

/// A zone, and the assumption that was made to find it.
#[derive(Debug, Clone)]
pub struct ResolvedZone {
    pub tz: TimeZone,
    pub note: Option<String>,
}

impl ResolvedZone {
    fn without_note(tz: TimeZone) -> Self {
        Self { tz, note: None }
    }

    fn with_note(tz: TimeZone, note: String) -> Self {
        Self { tz, note: Some(note) }
    }
}

/// All IANA names, sorted.
pub fn names() -> &'static [String] {
    &NAMES
}

/// Resolves a zone name given by a person or a program.
pub fn resolve(text: &str) -> Result<ResolvedZone, InputError> {
    let text = text.trim();
    if text.is_empty() || text.chars().count() > MAX_NAME_CHARS {
        return Err(InputError::new("Invalid time zone name.", zone_hint()));
    }
    match resolve_exact(text) {
        Some(found) => found,
        None => Err(unknown_zone_error(text)),
    }
}

/// What `resolve` finds, or None if it would have to suggest names.
pub fn resolve_exact(text: &str) -> Option<Result<ResolvedZone, InputError>> {
    if matches!(text.to_ascii_lowercase().as_str(), "local" | "localtime" | "system") {
        return Some(Ok(system_zone()));
    }
    utc_offset::parse(text)
        .map(|found| found.map(|offset| ResolvedZone::without_note(offset.to_time_zone())))
        .or_else(|| abbreviation::resolve(text))
        .or_else(|| iana(text).map(Ok))
        .or_else(|| zone_of_city(text))
}

pub(in crate::zone) fn iana(text: &str) -> Option<ResolvedZone> {
    let tz = DATABASE.get(&text.replace(' ', "_")).ok().filter(|tz| !tz.is_unknown())?;
    let name = tz.iana_name().unwrap_or_default();
    let offset = tz.to_offset(Timestamp::UNIX_EPOCH);
    if !name.starts_with("Etc/GMT") || offset.is_zero() {
        return Some(ResolvedZone::without_note(tz));
    }
    let note =
        format!("{name} is UTC{}: names of this kind have the sign inverted.", time_format::offset(offset));
    Some(ResolvedZone::with_note(tz, note))
}

/// The machine's zone. jiff reads the setting; this moves to the Clock grant once that provides the zone.
fn system_zone() -> ResolvedZone {
    let tz = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    let tz = tz.iana_name().and_then(|name| DATABASE.get(name).ok()).unwrap_or(tz);
    let note = format!("local is the zone of the hub's machine: {}.", time_format::zone_name(&tz));
    ResolvedZone::with_note(tz, note)
}

/// `Berlin` for `Europe/Berlin`, if only one zone has this name.
fn zone_of_city(text: &str) -> Option<Result<ResolvedZone, InputError>> {
    let wanted = text.replace(' ', "_");
    let found: Vec<&String> = names()
        .iter()
        .filter(|name| last_segment(name).eq_ignore_ascii_case(&wanted) && name.contains('/'))
        .collect();
    let tz = DATABASE.get(found.first()?).ok()?;
    if let [only] = found.as_slice() {
        return Some(Ok(ResolvedZone::with_note(tz, format!("{text} is read as {only}."))));
    }
    let listed: Vec<String> = found.into_iter().cloned().collect();
    Some(Err(InputError::new(
        format!("Ambiguous time zone: {text}."),
        format!("Use {}.", time_format::join_or(&listed)),
    )))
}

fn last_segment(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn unknown_zone_error(text: &str) -> InputError {
    let close = closest_words(text, names().iter().map(String::as_str), 5);
    let hint = if close.is_empty() {
        zone_hint()
    } else {
        let close: Vec<String> = close.into_iter().map(str::to_owned).collect();
        format!("Did you mean {}? time_list_timezones lists all names.", time_format::join_or(&close))
    };
    InputError::new(format!("Unknown time zone: {text}."), hint)
}

fn zone_hint() -> String {
    "Use an IANA name such as Europe/Berlin, UTC, or an offset such as +02:00; time_list_timezones lists all names.".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_resolve() {
        let rows = [
            ("UTC", "UTC", ""),
            ("utc", "UTC", ""),
            ("Z", "UTC", ""),
            ("Zulu", "UTC", ""),
            ("Etc/UTC", "Etc/UTC", ""),
            ("GMT", "GMT", ""),
            ("Europe/Berlin", "Europe/Berlin", ""),
            ("europe/berlin", "Europe/Berlin", ""),
            (" EUROPE/BERLIN ", "Europe/Berlin", ""),
            ("america/new york", "America/New_York", ""),
            ("America/Argentina/Buenos_Aires", "America/Argentina/Buenos_Aires", ""),
            ("Japan", "Japan", ""),
            ("+02:00", "+02:00", ""),
            ("-0330", "-03:30", ""),
            ("+5", "+05:00", ""),
            ("UTC+2", "+02:00", ""),
            ("utc +2", "+02:00", ""),
            ("GMT-5", "-05:00", ""),
            ("UTC+05:30", "+05:30", ""),
            ("UTC−3", "-03:00", ""),
            ("+00:00", "UTC", ""),
            ("Etc/GMT+5", "Etc/GMT+5", "Etc/GMT+5 is UTC-05:00: names of this kind have the sign inverted."),
            ("Berlin", "Europe/Berlin", "Berlin is read as Europe/Berlin."),
            ("new york", "America/New_York", "new york is read as America/New_York."),
            ("JST", "Asia/Tokyo", "JST is read as Asia/Tokyo."),
            ("CEST", "+02:00", "CEST is read as +02:00."),
            ("cet", "CET", "CET is read as the IANA zone CET, with summer time."),
            ("PT", "America/Los_Angeles", "PT is read as America/Los_Angeles."),
        ];
        for (text, name, note) in rows {
            let zone = resolve(text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            assert_eq!(
                (time_format::zone_name(&zone.tz).as_str(), zone.note.as_deref().unwrap_or_default()),
                (name, note),
                "{text}"
            );
        }
    }

    #[test]
    fn names_that_are_refused() {
        let rows = [
            ("", "Invalid time zone name."),
            ("IST", "Asia/Kolkata (India), Europe/Dublin (Ireland) or Asia/Jerusalem (Israel)"),
            ("cst", "America/Chicago (Central time), Asia/Shanghai (China) or America/Havana (Cuba)"),
            (
                "EST",
                "America/New_York (Eastern time, with daylight saving), -05:00 (Eastern standard time all year)",
            ),
            ("BST", "Europe/London"),
            ("Europe/Berln", "Did you mean Europe/Berlin"),
            ("Amerca/New_York", "America/New_York"),
            ("Tokio", "Asia/Tokyo"),
            ("Louisville", "America/Kentucky/Louisville or America/Louisville"),
            ("+15:00", "from -12:00 to +14:00"),
            ("UTC+25", "from -12:00 to +14:00"),
            ("+05:75", "minutes"),
            ("UTC+", "Unknown time zone"),
            ("Etc/Unknown", "Unknown time zone"),
            ("Mars/Olympus_Mons", "Unknown time zone: Mars/Olympus_Mons."),
            ("../../etc/passwd", "Unknown time zone"),
            ("xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "Use an IANA name such as Europe/Berlin"),
        ];
        for (text, part) in rows {
            let fault = resolve(text).expect_err(text);
            assert!(format!("{} {}", fault.message, fault.hint).contains(part), "{text}: {fault:?}");
        }
        assert!(resolve(&"x".repeat(MAX_NAME_CHARS + 1)).is_err());
    }

    #[test]
    fn local_is_said() {
        assert!(
            resolve("local").unwrap().note.unwrap().starts_with("local is the zone of the hub's machine")
        );
    }

    #[test]
    fn every_listed_name_resolves_or_is_explained() {
        assert!(names().len() > 500);
        for name in names() {
            assert!(resolve(name).is_ok() || is_abbreviation(name), "{name}");
        }
    }
}
