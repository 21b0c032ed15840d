//! Tables of texts and the moments they mean, or why they are refused.

mod accepted_texts;
mod properties;
mod rejected_texts;

use super::{Moment, parse};
use crate::time_format;
use jiff::Zoned;

/// Saturday evening in Berlin.
const NOW: &str = "2026-11-14T22:00:00[Europe/Berlin]";

fn at(now: &str) -> Zoned {
    now.parse().expect(now)
}

#[track_caller]
fn parsed(text: &str, now: &str) -> Moment {
    parse(text, &at(now)).unwrap_or_else(|fault| panic!("{text}: {fault:?}"))
}

/// Each row is a text and the moment it means.
#[track_caller]
fn check(now: &str, rows: &[(&str, &str)]) {
    for (text, expected) in rows {
        assert_eq!(time_format::iso(&parsed(text, now).at), *expected, "{text}");
    }
}

#[test]
fn notes_say_the_reading() {
    let rows: &[(&str, &[&str])] = &[
        ("2026-11-14T22:00:00Z", &[]),
        ("tomorrow at 3pm", &[]),
        ("in 3 days", &[]),
        ("tomorrow", &["No time of day is given, so the start of the day is used."]),
        ("next friday 5pm", &["\"next friday\" is read as the first Friday after today: 2026-11-20."]),
        (
            "next sunday 5pm",
            &[
                "\"next sunday\" is read as the first Sunday after today: 2026-11-15; the one of next week is 2026-11-22.",
            ],
        ),
        ("friday 5pm", &["Friday is read as the coming Friday, today included: 2026-11-20."]),
        (
            "saturday 5pm",
            &[
                "Saturday is read as the coming Saturday, today included: 2026-11-14.",
                "That is already past; next Saturday is a week later.",
            ],
        ),
        ("noon", &["No day is given, so today is used, although that is already past: 2026-11-14."]),
        ("11pm", &["No day is given, so today is used: 2026-11-14."]),
        ("midnight", &["No day is given, so the coming midnight is used."]),
        ("end of month", &["The end is the last second of the day."]),
        ("next month", &["\"next month\" is read as one month from now."]),
        ("5 March 9:00", &["No year is given, so the coming 5 March is used: 2027-03-05."]),
        ("13/3/2027 9:00", &["13/3/2027 is read as 13 March 2027."]),
        ("1763157600000", &["The number is read as Unix milliseconds."]),
        ("9am in Tokyo tomorrow", &["tokyo is read as Asia/Tokyo."]),
        ("in 5 business days", &["Business days are Monday to Friday; public holidays are not considered."]),
        ("5m ago", &["m is read as minutes."]),
        ("Sat, 14 Nov 2026 22:00:00 EST", &["EST is -05:00 in RFC 2822."]),
        ("2016-12-31T23:59:60Z", &["Second 60 is read as second 59."]),
    ];
    for (text, notes) in rows {
        assert_eq!(parsed(text, NOW).notes, *notes, "{text}");
    }
    let clamped = parsed("in 1 month", "2027-01-31T12:00[UTC]");
    assert_eq!(clamped.notes, ["That month has no day 31, so its last day is used."]);
}

#[test]
fn texts_with_a_zone_of_their_own() {
    let rows = [
        ("2026-11-14T22:00", false, "Europe/Berlin"),
        ("1763157600", false, "Europe/Berlin"),
        ("tomorrow 9:00", false, "Europe/Berlin"),
        ("2026-11-14T22:00Z", true, "UTC"),
        ("2026-11-14T22:00+02:00", true, "+02:00"),
        ("2026-11-14T22:00[Asia/Tokyo]", true, "Asia/Tokyo"),
        ("tomorrow 9:00 america/new_york", true, "America/New_York"),
        ("tomorrow 9:00 UTC+2", true, "+02:00"),
    ];
    for (text, own, zone) in rows {
        let moment = parsed(text, NOW);
        assert_eq!(
            (moment.has_own_zone, time_format::zone_name(moment.at.time_zone()).as_str()),
            (own, zone),
            "{text}"
        );
    }
}
