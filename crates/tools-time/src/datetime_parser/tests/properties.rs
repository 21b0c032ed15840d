//! Properties that hold for every text.

use super::{NOW, at};
use crate::{datetime_parser, time_format, zone};
use proptest::prelude::*;

const WORDS: &[&str] = &[
    "now",
    "today",
    "tomorrow",
    "next",
    "last",
    "this",
    "friday",
    "mon",
    "march",
    "5",
    "5th",
    "31",
    "2027",
    "0",
    "14:30",
    "3",
    "pm",
    "am",
    "at",
    "on",
    "the",
    "of",
    "in",
    "end",
    "start",
    "first",
    "second",
    "month",
    "week",
    "days",
    "hours",
    "year",
    "ago",
    "from",
    "before",
    "after",
    "and",
    "a",
    "half",
    "quarter",
    "past",
    "to",
    "noon",
    "midnight",
    "morning",
    "tonight",
    "+2",
    "-3",
    "+",
    "-",
    "UTC",
    "UTC+2",
    "Europe/Berlin",
    "EST",
    "Tokyo",
    "time",
    "1.5",
    "99999999999999999",
    "5/3/2027",
    "2026-02-30",
    "q",
    "eom",
    "business",
    "couple",
    "couple of",
    "'",
    ",",
    "9999",
    "o'clock",
    "25:00",
    "é",
];

fn some_words() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(WORDS), 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        let _ = datetime_parser::parse(&text, &at(NOW));
        let _ = zone::resolve(&text);
    }

    #[test]
    fn any_words_are_read_or_refused(text in some_words()) {
        if let Err(fault) = datetime_parser::parse(&text, &at(NOW)) {
            prop_assert!(!fault.message.is_empty() && !fault.hint.is_empty());
        }
    }

    #[test]
    fn any_words_at_the_edge_of_the_calendar(text in some_words()) {
        let _ = datetime_parser::parse(&text, &at("9999-12-30T21:59:59[UTC]"));
        let _ = datetime_parser::parse(&text, &at("-009999-01-03T00:00:00[UTC]"));
    }

    /// A moment in a reply can be parsed again with the same result.
    #[test]
    fn answers_can_be_read_again(seconds in -60_000_000_000_i64..200_000_000_000, zone in prop::sample::select(zone::names())) {
        let Ok(zone) = zone::resolve(&zone) else { return Ok(()) };
        let at = jiff::Timestamp::from_second(seconds).unwrap().to_zoned(zone.tz);
        let again = datetime_parser::parse(&time_format::iso(&at), &super::at(NOW)).map_err(|fault| TestCaseError::fail(fault.message))?;
        prop_assert_eq!(again.at.timestamp(), at.timestamp());
    }

    /// An independent parser agrees where both accept the same texts.
    #[test]
    fn steps_agree_with_parse_datetime(
        count in 0_i64..500,
        unit in prop::sample::select(&["second", "minute", "hour", "day", "week", "month", "year"][..]),
    ) {
        let now = at("2026-11-14T22:00:00[UTC]");
        let text = format!("{count} {unit}s ago");
        let ours = datetime_parser::parse(&text, &now).map_err(|fault| TestCaseError::fail(fault.message))?;
        let theirs = parse_datetime::parse_datetime_at_date(now, text).unwrap();
        prop_assert_eq!(Some(&ours.at), theirs.as_zoned());
    }

    #[test]
    fn dates_agree_with_parse_datetime(day in 1_i8..=28, month in 1_i8..=12, year in 1970_i16..2100, hour in 0_i8..24) {
        let now = at("2026-11-14T22:00:00[UTC]");
        let text = format!("{day} {} {year} {hour:02}:30", time_format::month_name(month));
        let ours = datetime_parser::parse(&text, &now).map_err(|fault| TestCaseError::fail(fault.message))?;
        let theirs = parse_datetime::parse_datetime_at_date(now, text).unwrap();
        prop_assert_eq!(Some(&ours.at), theirs.as_zoned());
    }
}
