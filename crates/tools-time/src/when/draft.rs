//! The parts of a text as they are found, and the moment that they make together.

use super::base::Base;
use super::calendar;
use super::clock::{Clock, Part, short};
use super::relative::{self, later};
use super::shift::{Direction, Shift};
use crate::fault::Fault;
use crate::{local, say};
use jiff::Zoned;
use jiff::civil::{Date, Time, Weekday};

#[derive(Debug, Default)]
pub struct Draft {
    pub base: Option<Base>,
    pub weekday: Option<Weekday>,
    pub month_day: Option<(i8, i8)>,
    pub day: Option<i8>,
    pub year: Option<i16>,
    pub clock: Option<Clock>,
    pub part: Option<Part>,
    /// `… plus 2 hours`.
    pub steps: Vec<(Shift, Direction)>,
}

/// Fills a place once.
pub fn put<T>(place: &mut Option<T>, value: T, what: &str) -> Result<(), Fault> {
    if place.is_some() {
        return Err(Fault::new(format!("The text names two {what}."), "Ask for one moment at a time."));
    }
    *place = Some(value);
    Ok(())
}

impl Draft {
    pub fn put_base(&mut self, base: Base) -> Result<(), Fault> {
        put(&mut self.base, base, "days")
    }

    /// True when nothing was found yet that steps could be added to.
    pub fn has_no_point(&self) -> bool {
        self.base.is_none()
            && self.weekday.is_none()
            && self.month_day.is_none()
            && self.day.is_none()
            && self.clock.is_none()
    }

    pub fn resolve(self, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, Fault> {
        let time = match self.clock {
            Some(clock) => Some(clock.settle(self.part)?),
            None => None,
        };
        if let (None, Some(_)) = (time, self.part) {
            return Err(Fault::new("A part of a day is not a moment.", "Add the hour: tomorrow at 9:00."));
        }
        let mut at = self.point(time, now, notes)?;
        for (shift, direction) in &self.steps {
            at = shift.apply(&at, *direction, notes)?;
        }
        Ok(at)
    }

    fn point(&self, time: Option<Time>, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, Fault> {
        let tz = now.time_zone();
        let base = self.day_meant(now, notes)?;
        match (base, time) {
            (None, None) => Err(Fault::new("The text names no moment.", super::ADVICE)),
            (None, Some(time)) => self.today_at(time, now, notes),
            (Some(Base::Instant(at)), None) => Ok(at),
            (Some(Base::Instant(_)), Some(time)) => Err(Fault::new(
                format!("The text names a moment and the time {} beside it.", short(time)),
                "Give one of them.",
            )),
            (Some(Base::EndOf(date)), None) => {
                notes.push("The end is the last second of the day.".to_owned());
                local::end_of_day(date, tz)
            }
            (Some(Base::Kept(reading) | Base::Week(reading)), None) => self.kept(reading, now),
            (Some(Base::Day(date)), None) => {
                notes.push(super::START_TAKEN.to_owned());
                local::start_of_day(date, tz, notes)
            }
            (Some(Base::StartOf(date)), None) => local::start_of_day(date, tz, notes),
            (Some(base), Some(time)) => self.at(base.date(), time, now, notes),
        }
    }

    /// Counting on the calendar that did not move at all stays the same instant, even where clocks change.
    fn kept(&self, reading: jiff::civil::DateTime, now: &Zoned) -> Result<Zoned, Fault> {
        if reading == now.datetime() { Ok(now.clone()) } else { local::resolve(reading, now.time_zone()) }
    }

    fn at(&self, date: Date, time: Time, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, Fault> {
        if !self.clock.is_some_and(Clock::is_midnight) {
            let at = local::resolve(date.to_datetime(time), now.time_zone())?;
            if self.weekday.is_some() && self.base.is_none() && self.month_day.is_none() && &at < now {
                notes.push(format!(
                    "That is already past; next {} is a week later.",
                    say::weekday(date.weekday())
                ));
            }
            return Ok(at);
        }
        // Midnight of tonight is where tonight ends; of a day, where the day begins.
        let tonight = self.part == Some(Part::Night);
        let date = if tonight { later(date, 1)? } else { date };
        if !tonight {
            notes.push(format!(
                "Midnight is the start of the day; the day ends at {} 00:00.",
                later(date, 1)?
            ));
        }
        local::start_of_day(date, now.time_zone(), notes)
    }

    fn today_at(&self, time: Time, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, Fault> {
        if self.clock.is_some_and(Clock::is_midnight) {
            notes.push("No day is given, so the coming midnight is taken.".to_owned());
            return local::start_of_day(later(now.date(), 1)?, now.time_zone(), notes);
        }
        let at = local::resolve(now.date().to_datetime(time), now.time_zone())?;
        let past = if &at < now { ", although that is already past" } else { "" };
        notes.push(format!("No day is given, so today is taken{past}: {}.", at.date()));
        Ok(at)
    }

    fn day_meant(&self, now: &Zoned, notes: &mut Vec<String>) -> Result<Option<Base>, Fault> {
        let dated = self.dated(now.date(), notes)?;
        let Some(weekday) = self.weekday else {
            return Ok(dated);
        };
        match dated {
            None => {
                let date = relative::coming(weekday, now.date())?;
                let name = say::weekday(weekday);
                notes.push(format!("{name} is read as the coming {name}, today included: {date}."));
                Ok(Some(Base::Day(date)))
            }
            Some(Base::Week(reading)) => {
                let ahead =
                    weekday.to_monday_zero_offset() - reading.date().weekday().to_monday_zero_offset();
                let date = later(reading.date(), i64::from(ahead))?;
                notes.push(format!("Weeks begin on Monday: {date}."));
                Ok(Some(Base::Day(date)))
            }
            Some(base) if base.date().weekday() == weekday => Ok(Some(base)),
            Some(base) => Err(Fault::new(
                format!(
                    "{} is a {}, not a {}.",
                    base.date(),
                    say::weekday(base.date().weekday()),
                    say::weekday(weekday)
                ),
                "Correct the weekday or the date, or leave the weekday out.",
            )),
        }
    }

    fn dated(&self, today: Date, notes: &mut Vec<String>) -> Result<Option<Base>, Fault> {
        let found = [self.base.is_some(), self.month_day.is_some(), self.day.is_some()];
        if found.iter().filter(|found| **found).count() > 1 {
            return Err(Fault::new("The text names two days.", "Ask for one moment at a time."));
        }
        let date = match (self.month_day, self.day, self.year) {
            (Some((month, day)), _, Some(year)) => calendar::date(year, month, day)?,
            (Some((month, day)), _, None) => calendar::coming(month, day, today, notes)?,
            (None, Some(day), None) => calendar::coming_day(day, today, notes)?,
            (None, _, Some(year)) => {
                return Err(Fault::new(
                    format!("{year} is a year, not a moment."),
                    format!("Write a date such as {year}-01-01; Unix seconds are written as @{year}."),
                ));
            }
            (None, None, None) => return Ok(self.base.clone()),
        };
        Ok(Some(Base::Day(date)))
    }
}
