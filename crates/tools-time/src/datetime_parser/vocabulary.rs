//! Vocabulary: numbers, units, weekdays and months in words.

use jiff::civil::Weekday;

pub fn weekday(word: &str) -> Option<Weekday> {
    Some(match word {
        "monday" | "mon" => Weekday::Monday,
        "tuesday" | "tue" | "tues" => Weekday::Tuesday,
        "wednesday" | "wed" | "weds" => Weekday::Wednesday,
        "thursday" | "thu" | "thur" | "thurs" => Weekday::Thursday,
        "friday" | "fri" => Weekday::Friday,
        "saturday" | "sat" => Weekday::Saturday,
        "sunday" | "sun" => Weekday::Sunday,
        _ => return None,
    })
}

pub fn month(word: &str) -> Option<i8> {
    Some(match word {
        "january" | "jan" => 1,
        "february" | "feb" => 2,
        "march" | "mar" => 3,
        "april" | "apr" => 4,
        "may" => 5,
        "june" | "jun" => 6,
        "july" | "jul" => 7,
        "august" | "aug" => 8,
        "september" | "sep" | "sept" => 9,
        "october" | "oct" => 10,
        "november" | "nov" => 11,
        "december" | "dec" => 12,
        _ => return None,
    })
}

/// `3`, `three`, `a`.
pub fn count(word: &str) -> Option<i64> {
    if !word.is_empty() && word.len() <= 18 && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().ok();
    }
    Some(match word {
        "a" | "an" | "one" => 1,
        "two" => 2,
        "three" => 3,
        "four" => 4,
        "five" => 5,
        "six" => 6,
        "seven" => 7,
        "eight" => 8,
        "nine" => 9,
        "ten" => 10,
        "eleven" => 11,
        "twelve" => 12,
        "fifteen" => 15,
        "twenty" => 20,
        "thirty" => 30,
        "forty" => 40,
        "fifty" => 50,
        "sixty" => 60,
        "ninety" => 90,
        _ => return None,
    })
}

/// `3rd`, `third`.
pub fn ordinal(word: &str) -> Option<i8> {
    let number = ["st", "nd", "rd", "th"].iter().find_map(|suffix| word.strip_suffix(suffix));
    if let Some(number) = number.filter(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
        return number.parse().ok().filter(|number| (1..=31).contains(number));
    }
    const WORDS: [&str; 12] = [
        "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
        "eleventh", "twelfth",
    ];
    let index = WORDS.iter().position(|known| *known == word)?;
    i8::try_from(index + 1).ok()
}

/// `5`, `05`, `5th`, `fifth`: a day of a month.
pub fn day_of_month(word: &str) -> Option<i8> {
    let digits = (1..=2).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit());
    let day = if digits { word.parse().ok() } else { ordinal(word) };
    day.filter(|day| (1..=31).contains(day))
}

/// Four digits.
pub fn year(word: &str) -> Option<i16> {
    let digits = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    if digits { word.parse().ok() } else { None }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Year,
    Quarter,
    Month,
    Fortnight,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

pub fn unit(word: &str) -> Option<Unit> {
    Some(match word {
        "year" | "years" | "yr" | "yrs" | "y" => Unit::Year,
        "quarter" | "quarters" => Unit::Quarter,
        "month" | "months" | "mo" | "mos" | "mth" | "mths" => Unit::Month,
        "fortnight" | "fortnights" => Unit::Fortnight,
        "week" | "weeks" | "wk" | "wks" | "w" => Unit::Week,
        "day" | "days" | "d" => Unit::Day,
        "hour" | "hours" | "hr" | "hrs" | "h" => Unit::Hour,
        "minute" | "minutes" | "min" | "mins" | "m" => Unit::Minute,
        "second" | "seconds" | "sec" | "secs" | "s" => Unit::Second,
        "millisecond" | "milliseconds" | "ms" => Unit::Millisecond,
        _ => return None,
    })
}

/// Words of the grammar, for spelling suggestions.
pub const GRAMMAR_WORDS: &[&str] = &[
    "after",
    "afternoon",
    "ago",
    "april",
    "august",
    "before",
    "beginning",
    "day",
    "days",
    "december",
    "end",
    "evening",
    "february",
    "first",
    "fortnight",
    "friday",
    "from",
    "hour",
    "hours",
    "january",
    "july",
    "june",
    "last",
    "later",
    "march",
    "midnight",
    "minute",
    "minutes",
    "monday",
    "month",
    "months",
    "morning",
    "next",
    "noon",
    "november",
    "now",
    "october",
    "quarter",
    "saturday",
    "second",
    "seconds",
    "september",
    "start",
    "sunday",
    "third",
    "this",
    "thursday",
    "today",
    "tomorrow",
    "tonight",
    "tuesday",
    "wednesday",
    "week",
    "weeks",
    "year",
    "years",
    "yesterday",
];
