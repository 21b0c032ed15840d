//! Texts that are refused, with a part of the error.

use super::{NOW, at};
use crate::datetime_parser::parse;

#[track_caller]
fn refuse(now: &str, rows: &[(&str, &str)]) {
    for (text, part) in rows {
        let Err(fault) = parse(text, &at(now)) else { panic!("{text:?} is not refused") };
        let said = format!("{} {}", fault.message, fault.hint);
        assert!(said.contains(part), "{text:?}: {said}");
    }
}

#[test]
fn two_readings() {
    refuse(
        NOW,
        &[
            ("5/3/2027", "5/3/2027 can be 5 March 2027 or 3 May 2027. Write 2027-03-05 or 2027-05-03."),
            ("05-03-2027 9:00", "can be 5 March 2027 or 3 May 2027"),
            ("5/3/27", "which number is the year"),
            ("5/3", "which number is the day"),
            ("tomorrow at 3", "03:00 and 15:00 are both possible. Write 03:00 or 15:00, or add am or pm."),
            ("3 o'clock", "03:00 and 15:00"),
            ("half past 3", "03:30 and 15:30"),
            ("quarter to 1", "00:45 and 12:45"),
            ("quarter to 12", "23:45 and 11:45"),
            ("12 at night", "both possible"),
            ("3 days", "Write in 3 days, 3 days ago"),
            ("tomorrow 9:00 EST", "America/New_York (Eastern time"),
            ("tomorrow 9:00 IST", "Asia/Kolkata (India)"),
            ("2026", "can be a year, a date or a number of seconds"),
            ("202611142200", "can be a year, a date or a number of seconds"),
            ("tomorrow 9:00 UTC Europe/Berlin", "two time zones"),
            ("3pm 4pm", "two times of day"),
            ("tomorrow yesterday", "two days"),
            ("friday to sunday", "its start and its end"),
        ],
    );
}

#[test]
fn clocks_that_change() {
    let twice = "2026-10-25T02:30:00+02:00 (the first) or 2026-10-25T02:30:00+01:00 (the second)";
    let never = "2026-03-29T01:30:00+01:00 (before the jump) or 2026-03-29T03:30:00+02:00 (after it)";
    refuse(
        NOW,
        &[
            ("2026-10-25T02:30", twice),
            ("25 October 2026 at 2:30am", twice),
            ("2026-10-25T02:30[Europe/Berlin]", twice),
            ("2026-03-29T02:30", never),
            ("29 March 2026 2:30", never),
            ("2026-11-01 01:30 America/New_York", "2026-11-01T01:30:00-04:00 (the first)"),
        ],
    );
    refuse("2026-10-24T02:30[Europe/Berlin]", &[("in 1 day", twice), ("tomorrow 2:30", twice)]);
    refuse("2026-03-28T02:30[Europe/Berlin]", &[("in 1 day", never)]);
}

#[test]
fn what_does_not_exist() {
    refuse(
        NOW,
        &[
            ("2026-02-30", "There is no 30 February 2026. February 2026 has 28 days."),
            ("29 feb 2027", "There is no 29 February 2027."),
            ("2026-13-01", "There is no month 13."),
            ("13/13/2027", "There is no month 13."),
            ("2026-11-14T25:00", "25:00 is not a time of day."),
            ("24:00", "00:00 of the next day"),
            ("9:5", "9:5 is not a time of day."),
            ("13pm", "the hour must be 1 to 12, not 13"),
            ("14:30 in the morning", "not in the morning"),
            ("Friday 14 November 2026", "2026-11-14 is a Saturday, not a Friday."),
            ("Fri, 14 Nov 2026 22:00:00 GMT", "2026-11-14 is a Saturday, not a Friday."),
            ("fifth friday of november", "There is no fifth friday of november"),
            ("tomorrow 9:00 Europe/Berln", "Did you mean Europe/Berlin"),
            ("2026-11-14T22:00[Mars/Olympus]", "Unknown time zone: Mars/Olympus."),
            (
                "2026-11-14T22:00+01:00[America/New_York]",
                "The offset of America/New_York is not +01:00 at that time, but -05:00.",
            ),
            ("in 99999999 years", "outside the calendar"),
            ("in 100000000000000000 days", "outside the calendar"),
            ("99999999999999999999", "a number of seconds"),
            ("@99999999999999", "outside the calendar"),
        ],
    );
}

#[test]
fn what_is_no_moment() {
    refuse(
        NOW,
        &[
            ("", "empty"),
            ("   ", "empty"),
            ("at the", "names no moment"),
            ("tomorrow morning", "Add the hour"),
            ("this month", "start of this month, end of this month"),
            ("March 2027", "March 2027 is a month, not a moment."),
            ("2027-03", "March 2027 is a month, not a moment."),
            ("may", "May is a month"),
            ("in 1.5 months", "Months have no fixed length"),
            ("every monday", "A repetition is not one moment"),
            ("in a few days", "not exact enough"),
            ("soon", "not exact enough"),
            ("weekend", "not exact enough"),
            ("tommorow", "Did you mean tomorrow?"),
            ("now at 5pm", "Use one of them."),
            ("in 2 hours at 5pm", "Use one of them."),
            ("end of", "period is missing"),
            ("5 March 27", "\"27\" is not recognized here."),
            ("three quarters past 9pm", "duration"),
            ("the quick brown fox", "\"quick\" is not recognized here."),
            ("'; DROP TABLE t; --", "not recognized"),
            ("../../etc/passwd", "Unknown time zone"),
        ],
    );
    refuse(NOW, &[(&"9".repeat(201), "longer than 200"), (&"tomorrow ".repeat(30), "longer than 200")]);
}
