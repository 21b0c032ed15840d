//! The grammar of dates as people write them. Parts may stand in any order: a day, a time of day, steps.

use super::base::Base;
use super::calendar::{self, Found};
use super::clock::{self, Part};
use super::draft::{Draft, put};
use super::names;
use super::period;
use super::relative;
use super::shift::{self, Direction, Shift};
use super::words::Words;
use crate::fault::Fault;
use crate::zone::nearest;
use jiff::Zoned;

const FILLERS: &[&str] = &["at", "on", "the", "of", "in", "by", "for", "-"];

/// The moment that the words mean.
pub fn read(words: &mut Words, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, Fault> {
    if let Some((shift, direction)) = anchored(words, notes)? {
        let from = read(words, now, notes)?;
        return shift.apply(&from, direction, notes);
    }
    let mut draft = Draft::default();
    while !words.is_done() {
        take_part(&mut draft, words, now, notes)?;
    }
    draft.resolve(now, notes)
}

/// `3 days after …`, `two hours before …`, `a week from …`; not `3 days from now` at the end of a text.
fn anchored(words: &mut Words, notes: &mut Vec<String>) -> Result<Option<(Shift, Direction)>, Fault> {
    // `5 minutes past 3` is a time of day.
    if clock::take(&mut words.clone())?.is_some() {
        return Ok(None);
    }
    let (mark, said) = (words.mark(), notes.len());
    let direction = match shift::take(words, notes)? {
        None => None,
        Some(_) if words.peek() == Some("from") && words.ahead(1) == Some("now") => None,
        Some(shift) => words.take_map(anchor).map(|direction| (shift, direction)),
    };
    if direction.is_none() {
        words.back_to(mark);
        notes.truncate(said);
    }
    Ok(direction)
}

fn anchor(word: &str) -> Option<Direction> {
    match word {
        "after" | "from" => Some(Direction::Ahead),
        "before" => Some(Direction::Back),
        _ => None,
    }
}

fn take_part(
    draft: &mut Draft,
    words: &mut Words,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<(), Fault> {
    if let Some(clock) = clock::take(words)? {
        return put(&mut draft.clock, clock, "times of day");
    }
    if take_steps(draft, words, now, notes)? || words.take_all(&["local", "time"]) {
        return Ok(());
    }
    if let Some((days, part)) = part_of_day(words) {
        put(&mut draft.part, part, "parts of the day")?;
        return match days {
            Some(days) => draft.put_base(Base::Day(relative::later(now.date(), days)?)),
            None => Ok(()),
        };
    }
    if let Some(base) = period::take(words, now, notes)? {
        return draft.put_base(base);
    }
    if let Some(base) = relative::take(words, now, notes)? {
        return draft.put_base(base);
    }
    take_date(draft, words, notes)
}

fn take_date(draft: &mut Draft, words: &mut Words, notes: &mut Vec<String>) -> Result<(), Fault> {
    if let Some(weekday) = words.take_map(names::weekday) {
        return put(&mut draft.weekday, weekday, "weekdays");
    }
    match calendar::take(words, notes)? {
        Some(Found::Full(date)) => draft.put_base(Base::Day(date)),
        Some(Found::MonthDay(month, day)) => put(&mut draft.month_day, (month, day), "days"),
        Some(Found::Day(day)) => put(&mut draft.day, day, "days"),
        Some(Found::Year(year)) => put(&mut draft.year, year, "years"),
        None if words.take(FILLERS) => Ok(()),
        None => Err(unknown(words)),
    }
}

/// `tonight`, `this morning`, `last night`; or only `evening`, which leaves the day open.
fn part_of_day(words: &mut Words) -> Option<(Option<i64>, Part)> {
    if words.take(&["tonight"]) {
        return Some((Some(0), Part::Night));
    }
    let days = match words.peek()? {
        "this" => Some(0),
        "last" => Some(-1),
        _ => None,
    };
    let part = words.ahead(usize::from(days.is_some())).and_then(clock::part)?;
    words.skip(1 + usize::from(days.is_some()));
    Some((days, part))
}

/// `in 3 days`, `2 weeks ago`, `3 days from now`; and `+ 2 hours` after something else.
fn take_steps(
    draft: &mut Draft,
    words: &mut Words,
    now: &Zoned,
    notes: &mut Vec<String>,
) -> Result<bool, Fault> {
    let (mark, said) = (words.mark(), notes.len());
    let sign = take_sign(words);
    let ahead = sign.is_none() && words.take(&["in"]);
    let Some(shift) = shift::take(words, notes)? else {
        words.back_to(mark);
        notes.truncate(said);
        return Ok(false);
    };
    let direction = match (sign, ahead) {
        (Some(direction), _) => direction,
        (None, true) => {
            words.take(&["time"]);
            words.take_all(&["from", "now"]);
            Direction::Ahead
        }
        (None, false) => take_direction(words).ok_or_else(|| no_direction(&words.since(mark)))?,
    };
    if sign.is_some() && !draft.has_no_point() {
        draft.steps.push((shift, direction));
        return Ok(true);
    }
    let base = if shift.is_by_calendar() {
        Base::Kept(shift.on_calendar(now.datetime(), direction, notes)?)
    } else {
        Base::Instant(shift.apply(now, direction, notes)?)
    };
    draft.put_base(base)?;
    Ok(true)
}

/// `+`, `plus`, `-`, `minus`, also before a number without a space.
fn take_sign(words: &mut Words) -> Option<Direction> {
    words.take_map(|word| match word {
        "+" | "plus" => Some(Direction::Ahead),
        "-" | "minus" => Some(Direction::Back),
        _ => None,
    })
}

fn take_direction(words: &mut Words) -> Option<Direction> {
    if words.take_all(&["from", "now"]) {
        return Some(Direction::Ahead);
    }
    words.take_map(|word| match word {
        "ago" | "earlier" | "back" => Some(Direction::Back),
        "later" | "hence" => Some(Direction::Ahead),
        _ => None,
    })
}

fn no_direction(said: &str) -> Fault {
    Fault::new(
        format!("\"{said}\" is a length of time, not a moment."),
        format!("Say in {said}, {said} ago, or {said} after something."),
    )
}

fn unknown(words: &Words) -> Fault {
    let first = words.peek().unwrap_or_default();
    let word = if matches!(first, "a" | "an") { words.ahead(1).unwrap_or(first) } else { first };
    let hint = match word {
        "every" | "each" | "daily" | "weekly" | "monthly" | "yearly" => {
            "A repetition is not one moment; give one of its days."
        }
        "to" | "until" | "till" | "between" | "through" | "since" | "during" => {
            "A stretch of time is not one moment; ask for its start and its end."
        }
        "few" | "several" | "some" | "soon" | "mid" | "weekend" | "week" | "month" | "year" => {
            "That is not exact enough; give a day or a number."
        }
        _ => "",
    };
    if !hint.is_empty() {
        return Fault::new(format!("\"{word}\" does not make one moment."), hint);
    }
    let close = nearest(word, names::KNOWN.iter().copied(), 1);
    let hint = match close.first() {
        Some(close) if word.len() > 2 && *close != word => format!("Did you mean {close}? {}", super::ADVICE),
        _ => super::ADVICE.to_owned(),
    };
    Fault::new(format!("\"{word}\" is not understood here."), hint)
}
