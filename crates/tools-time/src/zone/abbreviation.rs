//! Abbreviations. Most mean several zones, and then the answer is a choice, not a guess.

use super::{Zone, iana, offset};
use crate::fault::Fault;
use crate::say;

enum Meaning {
    /// One IANA zone, or one offset.
    One(&'static str),
    /// An IANA name of its own that changes its clocks.
    Itself,
    /// What to write instead, and whom that is for.
    Several(&'static [(&'static str, &'static str)]),
}
use Meaning::{Itself, One, Several};

const TABLE: &[(&str, Meaning)] = &[
    ("ACDT", One("+10:30")),
    ("ACST", One("+09:30")),
    ("ADT", Several(&[("America/Halifax", "Atlantic time"), ("+04:00", "Arabia daylight time")])),
    ("AEDT", One("+11:00")),
    ("AEST", One("+10:00")),
    ("AKDT", One("-08:00")),
    ("AKST", One("-09:00")),
    ("AMT", Several(&[("America/Manaus", "Amazon"), ("Asia/Yerevan", "Armenia")])),
    (
        "AST",
        Several(&[
            ("America/Halifax", "Atlantic time"),
            ("America/Puerto_Rico", "Caribbean"),
            ("Asia/Riyadh", "Arabia"),
        ]),
    ),
    ("AWST", One("Australia/Perth")),
    ("BRT", One("America/Sao_Paulo")),
    (
        "BST",
        Several(&[
            ("Europe/London", "Britain"),
            ("Asia/Dhaka", "Bangladesh"),
            ("Pacific/Bougainville", "Bougainville"),
        ]),
    ),
    ("CAT", One("Africa/Maputo")),
    ("CDT", Several(&[("America/Chicago", "Central time"), ("America/Havana", "Cuba")])),
    ("CEST", One("+02:00")),
    ("CET", Itself),
    (
        "CST",
        Several(&[
            ("America/Chicago", "Central time"),
            ("Asia/Shanghai", "China"),
            ("America/Havana", "Cuba"),
        ]),
    ),
    ("CT", One("America/Chicago")),
    ("EAT", One("Africa/Nairobi")),
    ("ECT", Several(&[("America/Guayaquil", "Ecuador"), ("America/Puerto_Rico", "Eastern Caribbean")])),
    ("EDT", One("-04:00")),
    ("EEST", One("+03:00")),
    ("EET", Itself),
    (
        "EST",
        Several(&[
            ("America/New_York", "Eastern time, with daylight saving"),
            ("-05:00", "Eastern standard time all year"),
            ("Australia/Sydney", "Eastern Australia"),
        ]),
    ),
    ("ET", One("America/New_York")),
    ("GST", Several(&[("Asia/Dubai", "Gulf"), ("Atlantic/South_Georgia", "South Georgia")])),
    ("HKT", One("Asia/Hong_Kong")),
    ("HST", One("Pacific/Honolulu")),
    ("ICT", One("Asia/Bangkok")),
    (
        "IST",
        Several(&[("Asia/Kolkata", "India"), ("Europe/Dublin", "Ireland"), ("Asia/Jerusalem", "Israel")]),
    ),
    ("JST", One("Asia/Tokyo")),
    ("KST", One("Asia/Seoul")),
    ("MDT", One("-06:00")),
    ("MET", Itself),
    ("MSK", One("Europe/Moscow")),
    (
        "MST",
        Several(&[
            ("America/Denver", "Mountain time, with daylight saving"),
            ("America/Phoenix", "Mountain standard time all year"),
            ("Asia/Kuala_Lumpur", "Malaysia"),
        ]),
    ),
    ("MT", One("America/Denver")),
    ("NDT", One("-02:30")),
    ("NPT", One("Asia/Kathmandu")),
    ("NST", One("-03:30")),
    ("NZDT", One("+13:00")),
    ("NZST", One("+12:00")),
    ("PDT", One("-07:00")),
    ("PKT", One("Asia/Karachi")),
    (
        "PST",
        Several(&[
            ("America/Los_Angeles", "Pacific time, with daylight saving"),
            ("-08:00", "Pacific standard time all year"),
            ("Asia/Manila", "Philippines"),
        ]),
    ),
    ("PT", One("America/Los_Angeles")),
    ("SAST", One("Africa/Johannesburg")),
    ("SGT", One("Asia/Singapore")),
    ("SST", Several(&[("Pacific/Pago_Pago", "Samoa"), ("Asia/Singapore", "Singapore")])),
    ("WAT", One("Africa/Lagos")),
    ("WEST", One("+01:00")),
    ("WET", Itself),
    ("WIB", One("Asia/Jakarta")),
    ("WST", Several(&[("Pacific/Apia", "West Samoa"), ("Australia/Perth", "Western Australia")])),
    ("EASTERN TIME", One("America/New_York")),
    ("CENTRAL TIME", One("America/Chicago")),
    ("MOUNTAIN TIME", One("America/Denver")),
    ("PACIFIC TIME", One("America/Los_Angeles")),
    ("CENTRAL EUROPEAN TIME", One("CET")),
];

pub fn is_known(text: &str) -> bool {
    find(text).is_some()
}

fn find(text: &str) -> Option<&'static (&'static str, Meaning)> {
    TABLE.iter().find(|(name, _)| name.eq_ignore_ascii_case(text))
}

/// Nothing when the text is no abbreviation that we know.
pub fn read(text: &str) -> Option<Result<Zone, Fault>> {
    let (name, meaning) = find(text)?;
    Some(match meaning {
        One(zone) => Ok(Zone { note: Some(format!("{name} is read as {zone}.")), ..named(zone)? }),
        Itself => Ok(Zone {
            note: Some(format!("{name} is read as the IANA zone {name}, with summer time.")),
            ..iana(name)?
        }),
        Several(choices) => {
            let listed: Vec<String> =
                choices.iter().map(|(zone, whose)| format!("{zone} ({whose})")).collect();
            Err(Fault::new(
                format!("{name} means several time zones."),
                format!("Use {}.", say::either(&listed)),
            ))
        }
    })
}

fn named(zone: &str) -> Option<Zone> {
    match offset::read(zone) {
        Some(found) => Some(Zone { tz: found.ok()?.to_time_zone(), note: None }),
        None => iana(zone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_in_the_table_exists() {
        for (name, meaning) in TABLE {
            match meaning {
                One(zone) => assert!(named(zone).is_some(), "{name}: {zone}"),
                Itself => assert!(iana(name).is_some(), "{name}"),
                Several(choices) => {
                    assert!(choices.iter().all(|(zone, _)| named(zone).is_some()), "{name}");
                }
            }
        }
    }
}
