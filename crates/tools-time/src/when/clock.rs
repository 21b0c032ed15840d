//! A time of day: `14:30`, `3pm`, `noon`, `half past 3 in the afternoon`. An hour that may be before or after
//! noon is refused with both readings.

use super::names;
use super::words::Words;
use crate::fault::Fault;
use jiff::SignedDuration;
use jiff::civil::{Time, time};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    Am,
    Pm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Nothing can change it any more.
    Settled,
    /// Written with minutes and without am or pm: the 24-hour clock, unless a part of the day is named.
    Colon,
    /// An hour from 1 to 12 in words, which needs am, pm or a part of the day.
    Spoken,
    Midnight,
}

/// A time of day as written; `settle` makes it one on the 24-hour clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    time: Time,
    style: Style,
    /// `quarter to`: counted from the hour once am or pm is settled.
    minutes: i64,
}

/// What the readers below give: the time, how it was written, and minutes to count from it.
type Found = (Time, Style, i64);

/// A part of a day, which decides between the halves but is no time by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Morning,
    Afternoon,
    Evening,
    Night,
}

pub fn part(word: &str) -> Option<Part> {
    Some(match word {
        "morning" => Part::Morning,
        "afternoon" => Part::Afternoon,
        "evening" => Part::Evening,
        "night" | "tonight" => Part::Night,
        _ => return None,
    })
}

/// Reads a time of day, if one stands here.
pub fn take(words: &mut Words) -> Result<Option<Clock>, Fault> {
    let mark = words.mark();
    if let Some(clock) = named(words) {
        return Ok(Some(clock));
    }
    let found = match with_colon(words)? {
        Some(time) => Some((time, Style::Colon, 0)),
        None => past_or_to(words).or_else(|| whole_hour(words)).or_else(|| without_colon(words)),
    };
    let Some((time, style, minutes)) = found else {
        words.back_to(mark);
        return Ok(None);
    };
    let clock = Clock { time, style, minutes };
    match words.take_map(half) {
        Some(half) => twelve(time, half).map(|time| Some(clock.settled_at(time))),
        None if style == Style::Spoken && !(1..=12).contains(&time.hour()) => {
            Ok(Some(clock.settled_at(time)))
        }
        None => Ok(Some(clock)),
    }
}

fn half(word: &str) -> Option<Half> {
    match word {
        "am" => Some(Half::Am),
        "pm" => Some(Half::Pm),
        _ => None,
    }
}

fn named(words: &mut Words) -> Option<Clock> {
    let before = usize::from(words.peek() == Some("12"));
    let clock = match words.ahead(before)? {
        "noon" | "midday" => Clock::settled(time(12, 0, 0, 0)),
        "midnight" => Clock::settled(Time::midnight()),
        _ => return None,
    };
    words.skip(before + 1);
    Some(clock)
}

/// `14:30`, `14:30:05`, `14:30:05.25`.
fn with_colon(words: &mut Words) -> Result<Option<Time>, Fault> {
    let Some(word) = words.peek().filter(|word| word.contains(':')) else {
        return Ok(None);
    };
    let word = word.to_owned();
    words.skip(1);
    numbers(&word).map(Some).ok_or_else(|| {
        let hint = if word.starts_with("24:00") {
            "The day ends at 23:59; its end is 00:00 of the next day."
        } else {
            "Hours go from 00 to 23, minutes and seconds from 00 to 59; write 09:05 or 9:05pm."
        };
        Fault::new(format!("{word} is not a time of day."), hint)
    })
}

fn numbers(word: &str) -> Option<Time> {
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
fn past_or_to(words: &mut Words) -> Option<Found> {
    let mark = words.mark();
    words.take(&["a"]);
    let minutes = words.take_map(|word| match word {
        "half" => Some(30),
        "quarter" => Some(15),
        _ => names::count(word).filter(|minutes| (1..=59).contains(minutes)),
    });
    words.take(&["minutes", "minute", "mins", "min"]);
    let sign = words.take_map(|word| match word {
        "past" => Some(1),
        "to" => Some(-1),
        _ => None,
    });
    let hour = words.take_map(hour);
    let (Some(minutes), Some(sign), Some(hour)) = (minutes, sign, hour) else {
        words.back_to(mark);
        return None;
    };
    words.take(&["o'clock", "oclock"]);
    Some((whole(hour)?, Style::Spoken, sign * minutes))
}

fn whole(hour: i8) -> Option<Time> {
    Time::new(hour, 0, 0, 0).ok()
}

fn hour(word: &str) -> Option<i8> {
    names::count(word)
        .filter(|_| word != "a" && word != "an")
        .and_then(|hour| i8::try_from(hour).ok())
        .filter(|hour| *hour < 24)
}

/// `8.30pm`, `830pm`: without the colon only beside am or pm.
fn without_colon(words: &mut Words) -> Option<Found> {
    words.ahead(1).and_then(half)?;
    words.take_map(|word| {
        let digits = word.replacen('.', "", 1);
        let (hour, minute) = digits.split_at_checked(digits.len().checked_sub(2)?)?;
        numbers(&format!("{hour}:{minute}")).map(|time| (time, Style::Spoken, 0))
    })
}

/// `in the morning`, `this evening`, `tonight`.
fn part_follows(words: &Words) -> bool {
    match (words.peek(), words.ahead(1), words.ahead(2)) {
        (Some("in" | "at"), Some("the"), Some(word)) => part(word).is_some(),
        (Some("this" | "at"), Some(word), _) | (Some(word), _, _) => part(word).is_some(),
        _ => false,
    }
}

/// `3pm`, `3 o'clock`, `at 15`, `8 in the evening`.
fn whole_hour(words: &mut Words) -> Option<Found> {
    let mark = words.mark();
    let after_at = words.take(&["at"]);
    let found = words.take_map(hour).and_then(whole);
    let told =
        words.take(&["o'clock", "oclock"]) || words.peek().and_then(half).is_some() || part_follows(words);
    let next_is_more =
        words.peek().is_some_and(|word| names::unit(word).is_some() || names::month(word).is_some());
    match found {
        Some(time) if told || (after_at && !next_is_more) => Some((time, Style::Spoken, 0)),
        _ => {
            words.back_to(mark);
            None
        }
    }
}

fn twelve(time: Time, half: Half) -> Result<Time, Fault> {
    let hour = match (time.hour(), half) {
        (12, Half::Am) => 0,
        (12, Half::Pm) => 12,
        (hour @ 1..=11, Half::Am) => hour,
        (hour @ 1..=11, Half::Pm) => hour + 12,
        (hour, _) => {
            return Err(Fault::new(
                format!("With am or pm the hour goes from 1 to 12, not {hour}."),
                format!("Write {:02}:{:02}, or the hour on the 12-hour clock.", hour, time.minute()),
            ));
        }
    };
    with_hour(time, hour)
}

fn with_hour(time: Time, hour: i8) -> Result<Time, Fault> {
    time.with().hour(hour).build().map_err(|_| Fault::out_of_range())
}

impl Clock {
    /// `12am` is midnight in other words; `00:00` is a time of its day.
    fn settled(time: Time) -> Self {
        let style = if time == Time::midnight() { Style::Midnight } else { Style::Settled };
        Self { time, style, minutes: 0 }
    }

    fn settled_at(self, time: Time) -> Self {
        if self.minutes == 0 { Self::settled(time) } else { Self { time, style: Style::Settled, ..self } }
    }

    pub fn is_midnight(self) -> bool {
        self.style == Style::Midnight
    }

    /// The time on the 24-hour clock, with the part of the day that stood beside it.
    pub fn settle(self, part: Option<Part>) -> Result<Time, Fault> {
        let twelve_hour = (1..=12).contains(&self.time.hour());
        let time = match (self.style, part) {
            (Style::Settled | Style::Midnight, _) | (Style::Colon, None) => self.time,
            (Style::Spoken, None) => return Err(self.either_half()),
            (_, Some(part)) if twelve_hour => match part.half(self.time.hour()) {
                Some(half) => twelve(self.time, half)?,
                None => return Err(self.either_half()),
            },
            (_, Some(Part::Morning)) if self.time.hour() > 12 => {
                return Err(Fault::new(
                    format!("{} is not in the morning.", short(self.time)),
                    "Leave the part of the day out, or correct the hour.",
                ));
            }
            (_, Some(_)) => self.time,
        };
        Ok(self.counted_from(time))
    }

    fn counted_from(self, time: Time) -> Time {
        time.wrapping_add(SignedDuration::from_mins(self.minutes))
    }

    fn either_half(self) -> Fault {
        let morning =
            self.counted_from(self.time.with().hour(self.time.hour() % 12).build().unwrap_or(self.time));
        let evening = short(morning.wrapping_add(SignedDuration::from_hours(12)));
        let morning = short(morning);
        Fault::new(
            format!("{morning} and {evening} are both possible."),
            format!("Write {morning} or {evening}, or add am or pm."),
        )
    }
}

impl Part {
    fn half(self, hour: i8) -> Option<Half> {
        match self {
            Self::Morning => (hour != 12).then_some(Half::Am),
            Self::Afternoon => Some(Half::Pm),
            Self::Evening => (hour != 12).then_some(Half::Pm),
            Self::Night => (6..=11).contains(&hour).then_some(Half::Pm),
        }
    }
}

/// `14:30`, with seconds only when there are some.
pub fn short(time: Time) -> String {
    if time.second() == 0 && time.subsec_nanosecond() == 0 {
        format!("{:02}:{:02}", time.hour(), time.minute())
    } else {
        time.to_string()
    }
}
