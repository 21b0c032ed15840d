//! Time zone abbreviations. Most are ambiguous; the error lists the choices then.

use super::{ResolvedZone, iana, utc_offset};
use crate::input_error::InputError;
use crate::time_format;

enum Meaning {
    /// One IANA zone, or one offset.
    Single(&'static str),
    /// Also an IANA name of a zone with daylight saving.
    IanaName,
    /// Alternatives, each with its region.
    Ambiguous(&'static [(&'static str, &'static str)]),
}
use Meaning::{Ambiguous, IanaName, Single};

const ABBREVIATIONS: &[(&str, Meaning)] = &[
    ("ACDT", Single("+10:30")),
    ("ACST", Single("+09:30")),
    ("ADT", Ambiguous(&[("America/Halifax", "Atlantic time"), ("+04:00", "Arabia daylight time")])),
    ("AEDT", Single("+11:00")),
    ("AEST", Single("+10:00")),
    ("AKDT", Single("-08:00")),
    ("AKST", Single("-09:00")),
    ("AMT", Ambiguous(&[("America/Manaus", "Amazon"), ("Asia/Yerevan", "Armenia")])),
    (
        "AST",
        Ambiguous(&[
            ("America/Halifax", "Atlantic time"),
            ("America/Puerto_Rico", "Caribbean"),
            ("Asia/Riyadh", "Arabia"),
        ]),
    ),
    ("AWST", Single("Australia/Perth")),
    ("BRT", Single("America/Sao_Paulo")),
    (
        "BST",
        Ambiguous(&[
            ("Europe/London", "Britain"),
            ("Asia/Dhaka", "Bangladesh"),
            ("Pacific/Bougainville", "Bougainville"),
        ]),
    ),
    ("CAT", Single("Africa/Maputo")),
    ("CDT", Ambiguous(&[("America/Chicago", "Central time"), ("America/Havana", "Cuba")])),
    ("CEST", Single("+02:00")),
    ("CET", IanaName),
    (
        "CST",
        Ambiguous(&[
            ("America/Chicago", "Central time"),
            ("Asia/Shanghai", "China"),
            ("America/Havana", "Cuba"),
        ]),
    ),
    ("CT", Single("America/Chicago")),
    ("EAT", Single("Africa/Nairobi")),
    ("ECT", Ambiguous(&[("America/Guayaquil", "Ecuador"), ("America/Puerto_Rico", "Eastern Caribbean")])),
    ("EDT", Single("-04:00")),
    ("EEST", Single("+03:00")),
    ("EET", IanaName),
    (
        "EST",
        Ambiguous(&[
            ("America/New_York", "Eastern time, with daylight saving"),
            ("-05:00", "Eastern standard time all year"),
            ("Australia/Sydney", "Eastern Australia"),
        ]),
    ),
    ("ET", Single("America/New_York")),
    ("GST", Ambiguous(&[("Asia/Dubai", "Gulf"), ("Atlantic/South_Georgia", "South Georgia")])),
    ("HKT", Single("Asia/Hong_Kong")),
    ("HST", Single("Pacific/Honolulu")),
    ("ICT", Single("Asia/Bangkok")),
    (
        "IST",
        Ambiguous(&[("Asia/Kolkata", "India"), ("Europe/Dublin", "Ireland"), ("Asia/Jerusalem", "Israel")]),
    ),
    ("JST", Single("Asia/Tokyo")),
    ("KST", Single("Asia/Seoul")),
    ("MDT", Single("-06:00")),
    ("MET", IanaName),
    ("MSK", Single("Europe/Moscow")),
    (
        "MST",
        Ambiguous(&[
            ("America/Denver", "Mountain time, with daylight saving"),
            ("America/Phoenix", "Mountain standard time all year"),
            ("Asia/Kuala_Lumpur", "Malaysia"),
        ]),
    ),
    ("MT", Single("America/Denver")),
    ("NDT", Single("-02:30")),
    ("NPT", Single("Asia/Kathmandu")),
    ("NST", Single("-03:30")),
    ("NZDT", Single("+13:00")),
    ("NZST", Single("+12:00")),
    ("PDT", Single("-07:00")),
    ("PKT", Single("Asia/Karachi")),
    (
        "PST",
        Ambiguous(&[
            ("America/Los_Angeles", "Pacific time, with daylight saving"),
            ("-08:00", "Pacific standard time all year"),
            ("Asia/Manila", "Philippines"),
        ]),
    ),
    ("PT", Single("America/Los_Angeles")),
    ("SAST", Single("Africa/Johannesburg")),
    ("SGT", Single("Asia/Singapore")),
    ("SST", Ambiguous(&[("Pacific/Pago_Pago", "Samoa"), ("Asia/Singapore", "Singapore")])),
    ("WAT", Single("Africa/Lagos")),
    ("WEST", Single("+01:00")),
    ("WET", IanaName),
    ("WIB", Single("Asia/Jakarta")),
    ("WST", Ambiguous(&[("Pacific/Apia", "West Samoa"), ("Australia/Perth", "Western Australia")])),
    ("EASTERN TIME", Single("America/New_York")),
    ("CENTRAL TIME", Single("America/Chicago")),
    ("MOUNTAIN TIME", Single("America/Denver")),
    ("PACIFIC TIME", Single("America/Los_Angeles")),
    ("CENTRAL EUROPEAN TIME", Single("CET")),
];

pub fn is_known(text: &str) -> bool {
    find(text).is_some()
}

fn find(text: &str) -> Option<&'static (&'static str, Meaning)> {
    ABBREVIATIONS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text))
}

/// Returns None if the text is not a known abbreviation.
pub fn resolve(text: &str) -> Option<Result<ResolvedZone, InputError>> {
    let (name, meaning) = find(text)?;
    Some(match meaning {
        Single(zone) => {
            Ok(ResolvedZone { note: Some(format!("{name} is read as {zone}.")), ..zone_or_offset(zone)? })
        }
        IanaName => Ok(ResolvedZone {
            note: Some(format!("{name} is read as the IANA zone {name}, with summer time.")),
            ..iana(name)?
        }),
        Ambiguous(choices) => {
            let listed: Vec<String> =
                choices.iter().map(|(zone, whose)| format!("{zone} ({whose})")).collect();
            Err(InputError::new(
                format!("{name} is ambiguous."),
                format!("Use {}.", time_format::join_or(&listed)),
            ))
        }
    })
}

fn zone_or_offset(zone: &str) -> Option<ResolvedZone> {
    match utc_offset::parse(zone) {
        Some(found) => Some(ResolvedZone { tz: found.ok()?.to_time_zone(), note: None }),
        None => iana(zone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_table_exists() {
        for (name, meaning) in ABBREVIATIONS {
            match meaning {
                Single(zone) => assert!(zone_or_offset(zone).is_some(), "{name}: {zone}"),
                IanaName => assert!(iana(name).is_some(), "{name}"),
                Ambiguous(choices) => {
                    assert!(choices.iter().all(|(zone, _)| zone_or_offset(zone).is_some()), "{name}");
                }
            }
        }
    }
}
