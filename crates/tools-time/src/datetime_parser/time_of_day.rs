//! Times of day: `14:30`, `3pm`, `noon`, `half past 3 in the afternoon`. An hour that may be before or after noon is
//! refused with both readings.

use super::vocabulary;
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use jiff::SignedDuration;
use jiff::civil::{Time, time};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meridiem {
    Am,
    Pm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClockStyle {
    /// Final; nothing changes it.
    Resolved,
    /// Written with minutes and without am or pm: the 24-hour clock, unless a part of the day is given.
    Colon,
    /// An hour from 1 to 12 in words, which requires am, pm or a part of the day.
    Spoken,
    Midnight,
}

/// A time of day as written; `resolve` converts it to the 24-hour clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay {
    time: Time,
    style: ClockStyle,
    /// `quarter to`: counted from the hour once am or pm is known.
    minute_offset: i64,
}

/// Result of the parsers below: the time, how it was written, and minutes to add.
type ParsedClock = (Time, ClockStyle, i64);

/// A part of a day, which decides between am and pm but is not a time itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayPart {
    Morning,
    Afternoon,
    Evening,
    Night,
}

pub fn day_part(word: &str) -> Option<DayPart> {
    Some(match word {
        "morning" => DayPart::Morning,
        "afternoon" => DayPart::Afternoon,
        "evening" => DayPart::Evening,
        "night" | "tonight" => DayPart::Night,
        _ => return None,
    })
}

/// Takes a time of day, if there is one.
pub fn take(words: &mut WordCursor) -> Result<Option<TimeOfDay>, InputError> {
    let mark = words.mark();
    if let Some(clock) = named_time(words) {
        return Ok(Some(clock));
    }
    let found = match with_colon(words)? {
        Some(time) => Some((time, ClockStyle::Colon, 0)),
        None => past_or_to(words).or_else(|| whole_hour(words)).or_else(|| without_colon(words)),
    };
    let Some((time, style, minutes)) = found else {
        words.reset_to(mark);
        return Ok(None);
    };
    let clock = TimeOfDay { time, style, minute_offset: minutes };
    match words.take_map(parse_meridiem) {
        Some(half) => to_24_hour(time, half).map(|time| Some(clock.resolved_at(time))),
        None if style == ClockStyle::Spoken && !(1..=12).contains(&time.hour()) => {
            Ok(Some(clock.resolved_at(time)))
        }
        None => Ok(Some(clock)),
    }
}

fn parse_meridiem(word: &str) -> Option<Meridiem> {
    match word {
        "am" => Some(Meridiem::Am),
        "pm" => Some(Meridiem::Pm),
        _ => None,
    }
}

fn named_time(words: &mut WordCursor) -> Option<TimeOfDay> {
    let before = usize::from(words.peek() == Some("12"));
    let clock = match words.peek_at(before)? {
        "noon" | "midday" => TimeOfDay::resolved(time(12, 0, 0, 0)),
        "midnight" => TimeOfDay::resolved(Time::midnight()),
        _ => return None,
    };
    words.skip(before + 1);
    Some(clock)
}

/// `14:30`, `14:30:05`, `14:30:05.25`.
fn with_colon(words: &mut WordCursor) -> Result<Option<Time>, InputError> {
    let Some(word) = words.peek().filter(|word| word.contains(':')) else {
        return Ok(None);
    };
    let word = word.to_owned();
    words.skip(1);
    parse_hms(&word).map(Some).ok_or_else(|| {
        let hint = if word.starts_with("24:00") {
            "The day ends at 23:59; its end is 00:00 of the next day."
        } else {
            "Hours are 00 to 23, minutes and seconds 00 to 59; write 09:05 or 9:05pm."
        };
        InputError::new(format!("{word} is not a time of day."), hint)
    })
}

fn parse_hms(word: &str) -> Option<Time> {
    let (clock, fraction) = word.split_once('.').unwrap_or((word, ""));
    let parts: Vec<&str> = clock.split(':').collect();
    let two = |part: &str| -> Option<i8> {
        if part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()) {
            part.parse().ok()
        } else {
            None
        }
    };
    let (hour, minute, second) = match parts.as_slice() {
        [hour, minute] if fraction.is_empty() => (hour, two(minute)?, 0),
        [hour, minute, second] => (hour, two(minute)?, two(second)?),
        _ => return None,
    };
    let hour = if hour.len() == 1 { hour.parse().ok()? } else { two(hour)? };
    Time::new(hour, minute, second, nanoseconds(fraction)?).ok()
}

fn nanoseconds(fraction: &str) -> Option<i32> {
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<9}").parse().ok()
}

/// `half past 3`, `quarter to 5`, `20 past 8`.
fn past_or_to(words: &mut WordCursor) -> Option<ParsedClock> {
    let mark = words.mark();
    words.take(&["a"]);
    let minutes = words.take_map(|word| match word {
        "half" => Some(30),
        "quarter" => Some(15),
        _ => vocabulary::count(word).filter(|minutes| (1..=59).contains(minutes)),
    });
    words.take(&["minutes", "minute", "mins", "min"]);
    let sign = words.take_map(|word| match word {
        "past" => Some(1),
        "to" => Some(-1),
        _ => None,
    });
    let hour = words.take_map(hour);
    let (Some(minutes), Some(sign), Some(hour)) = (minutes, sign, hour) else {
        words.reset_to(mark);
        return None;
    };
    words.take(&["o'clock", "oclock"]);
    Some((full_hour(hour)?, ClockStyle::Spoken, sign * minutes))
}

fn full_hour(hour: i8) -> Option<Time> {
    Time::new(hour, 0, 0, 0).ok()
}

fn hour(word: &str) -> Option<i8> {
    vocabulary::count(word)
        .filter(|_| word != "a" && word != "an")
        .and_then(|hour| i8::try_from(hour).ok())
        .filter(|hour| *hour < 24)
}

/// `8.30pm`, `830pm`: without the colon only before am or pm.
fn without_colon(words: &mut WordCursor) -> Option<ParsedClock> {
    words.peek_at(1).and_then(parse_meridiem)?;
    words.take_map(|word| {
        let digits = word.replacen('.', "", 1);
        let (hour, minute) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
        parse_hms(&format!("{hour}:{minute}")).map(|time| (time, ClockStyle::Spoken, 0))
    })
}

/// `in the morning`, `this evening`, `tonight`.
fn day_part_follows(words: &WordCursor) -> bool {
    match (words.peek(), words.peek_at(1), words.peek_at(2)) {
        (Some("in" | "at"), Some("the"), Some(word)) => day_part(word).is_some(),
        (Some("this" | "at"), Some(word), _) | (Some(word), _, _) => day_part(word).is_some(),
        _ => false,
    }
}

/// `3pm`, `3 o'clock`, `at 15`, `8 in the evening`.
fn whole_hour(words: &mut WordCursor) -> Option<ParsedClock> {
    let mark = words.mark();
    let after_at = words.take(&["at"]);
    let found = words.take_map(hour).and_then(full_hour);
    let is_marked = words.take(&["o'clock", "oclock"])
        || words.peek().and_then(parse_meridiem).is_some()
        || day_part_follows(words);
    let next_is_more = words
        .peek()
        .is_some_and(|word| vocabulary::unit(word).is_some() || vocabulary::month(word).is_some());
    match found {
        Some(time) if is_marked || (after_at && !next_is_more) => Some((time, ClockStyle::Spoken, 0)),
        _ => {
            words.reset_to(mark);
            None
        }
    }
}

fn to_24_hour(time: Time, half: Meridiem) -> Result<Time, InputError> {
    let hour = match (time.hour(), half) {
        (12, Meridiem::Am) => 0,
        (12, Meridiem::Pm) => 12,
        (hour @ 1..=11, Meridiem::Am) => hour,
        (hour @ 1..=11, Meridiem::Pm) => hour + 12,
        (hour, _) => {
            return Err(InputError::new(
                format!("With am or pm the hour must be 1 to 12, not {hour}."),
                format!("Write {:02}:{:02}, or the hour on the 12-hour clock.", hour, time.minute()),
            ));
        }
    };
    with_hour(time, hour)
}

fn with_hour(time: Time, hour: i8) -> Result<Time, InputError> {
    time.with().hour(hour).build().map_err(|_| InputError::out_of_range())
}

impl TimeOfDay {
    /// `12am` is midnight; `00:00` is a time of its day.
    fn resolved(time: Time) -> Self {
        let style = if time == Time::midnight() { ClockStyle::Midnight } else { ClockStyle::Resolved };
        Self { time, style, minute_offset: 0 }
    }

    fn resolved_at(self, time: Time) -> Self {
        if self.minute_offset == 0 {
            Self::resolved(time)
        } else {
            Self { time, style: ClockStyle::Resolved, ..self }
        }
    }

    pub fn is_midnight(self) -> bool {
        self.style == ClockStyle::Midnight
    }

    /// The time on the 24-hour clock, with the part of the day from the text.
    pub fn resolve(self, part: Option<DayPart>) -> Result<Time, InputError> {
        let twelve_hour = (1..=12).contains(&self.time.hour());
        let time = match (self.style, part) {
            (ClockStyle::Resolved | ClockStyle::Midnight, _) | (ClockStyle::Colon, None) => self.time,
            (ClockStyle::Spoken, None) => return Err(self.ambiguous_meridiem_error()),
            (_, Some(part)) if twelve_hour => match part.meridiem(self.time.hour()) {
                Some(half) => to_24_hour(self.time, half)?,
                None => return Err(self.ambiguous_meridiem_error()),
            },
            (_, Some(DayPart::Morning)) if self.time.hour() > 12 => {
                return Err(InputError::new(
                    format!("{} is not in the morning.", format_short(self.time)),
                    "Omit the part of the day, or correct the hour.",
                ));
            }
            (_, Some(_)) => self.time,
        };
        Ok(self.add_minutes_to(time))
    }

    fn add_minutes_to(self, time: Time) -> Time {
        time.wrapping_add(SignedDuration::from_mins(self.minute_offset))
    }

    fn ambiguous_meridiem_error(self) -> InputError {
        let morning =
            self.add_minutes_to(self.time.with().hour(self.time.hour() % 12).build().unwrap_or(self.time));
        let evening = format_short(morning.wrapping_add(SignedDuration::from_hours(12)));
        let morning = format_short(morning);
        InputError::new(
            format!("{morning} and {evening} are both possible."),
            format!("Write {morning} or {evening}, or add am or pm."),
        )
    }
}

impl DayPart {
    fn meridiem(self, hour: i8) -> Option<Meridiem> {
        match self {
            Self::Morning => (hour != 12).then_some(Meridiem::Am),
            Self::Afternoon => Some(Meridiem::Pm),
            Self::Evening => (hour != 12).then_some(Meridiem::Pm),
            Self::Night => (6..=11).contains(&hour).then_some(Meridiem::Pm),
        }
    }
}

/// `14:30`, with seconds only if they are not zero.
pub fn format_short(time: Time) -> String {
    if time.second() == 0 && time.subsec_nanosecond() == 0 {
        format!("{:02}:{:02}", time.hour(), time.minute())
    } else {
        time.to_string()
    }
}
