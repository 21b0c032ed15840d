//! The parsed parts of a text, and the moment they result in.

use super::calendar_date;
use super::date_shift::{Direction, Shift};
use super::date_spec::DateSpec;
use super::relative_date::{self, add_days};
use super::time_of_day::{DayPart, TimeOfDay, format_short};
use crate::input_error::InputError;
use crate::{local_time, time_format};
use jiff::Zoned;
use jiff::civil::{Date, Time, Weekday};

#[derive(Debug, Default)]
pub struct PartialMoment {
    pub date_spec: Option<DateSpec>,
    pub weekday: Option<Weekday>,
    pub month_day: Option<(i8, i8)>,
    pub day: Option<i8>,
    pub year: Option<i16>,
    pub time_of_day: Option<TimeOfDay>,
    pub day_part: Option<DayPart>,
    /// `… plus 2 hours`.
    pub steps: Vec<(Shift, Direction)>,
}

/// Sets a part, which may occur only once.
pub fn set_once<T>(slot: &mut Option<T>, value: T, what: &str) -> Result<(), InputError> {
    if slot.is_some() {
        return Err(InputError::new(format!("The text names two {what}."), "Use one moment at a time."));
    }
    *slot = Some(value);
    Ok(())
}

impl PartialMoment {
    pub fn set_date_spec(&mut self, base: DateSpec) -> Result<(), InputError> {
        set_once(&mut self.date_spec, base, "days")
    }

    /// True if nothing was found yet that steps could be added to.
    pub fn has_no_start(&self) -> bool {
        self.date_spec.is_none()
            && self.weekday.is_none()
            && self.month_day.is_none()
            && self.day.is_none()
            && self.time_of_day.is_none()
    }

    pub fn resolve(self, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, InputError> {
        let time = match self.time_of_day {
            Some(clock) => Some(clock.resolve(self.day_part)?),
            None => None,
        };
        if let (None, Some(_)) = (time, self.day_part) {
            return Err(InputError::new(
                "A part of a day is not a moment.",
                "Add the hour: tomorrow at 9:00.",
            ));
        }
        let mut at = self.resolve_start(time, now, notes)?;
        for (shift, direction) in &self.steps {
            at = shift.apply(&at, *direction, notes)?;
        }
        Ok(at)
    }

    fn resolve_start(
        &self,
        time: Option<Time>,
        now: &Zoned,
        notes: &mut Vec<String>,
    ) -> Result<Zoned, InputError> {
        let tz = now.time_zone();
        let base = self.resolve_day(now, notes)?;
        match (base, time) {
            (None, None) => Err(InputError::new("The text names no moment.", super::FORMAT_HINT)),
            (None, Some(time)) => self.today_at(time, now, notes),
            (Some(DateSpec::Instant(at)), None) => Ok(at),
            (Some(DateSpec::Instant(_)), Some(time)) => Err(InputError::new(
                format!("The text names a moment and also the time {}.", format_short(time)),
                "Use one of them.",
            )),
            (Some(DateSpec::EndOf(date)), None) => {
                notes.push("The end is the last second of the day.".to_owned());
                local_time::end_of_day(date, tz)
            }
            (Some(DateSpec::KeepTime(reading) | DateSpec::Week(reading)), None) => {
                self.resolve_keeping_time(reading, now)
            }
            (Some(DateSpec::Day(date)), None) => {
                notes.push(super::START_OF_DAY_NOTE.to_owned());
                local_time::start_of_day(date, tz, notes)
            }
            (Some(DateSpec::StartOf(date)), None) => local_time::start_of_day(date, tz, notes),
            (Some(base), Some(time)) => self.at(base.date(), time, now, notes),
        }
    }

    /// A calendar shift that did not move stays the same instant, even where clocks change.
    fn resolve_keeping_time(&self, reading: jiff::civil::DateTime, now: &Zoned) -> Result<Zoned, InputError> {
        if reading == now.datetime() {
            Ok(now.clone())
        } else {
            local_time::resolve(reading, now.time_zone())
        }
    }

    fn at(&self, date: Date, time: Time, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, InputError> {
        if !self.time_of_day.is_some_and(TimeOfDay::is_midnight) {
            let at = local_time::resolve(date.to_datetime(time), now.time_zone())?;
            if self.weekday.is_some() && self.date_spec.is_none() && self.month_day.is_none() && &at < now {
                notes.push(format!(
                    "That is already past; next {} is a week later.",
                    time_format::weekday_name(date.weekday())
                ));
            }
            return Ok(at);
        }
        // Midnight of tonight is the end of today; midnight of a day is its start.
        let tonight = self.day_part == Some(DayPart::Night);
        let date = if tonight { add_days(date, 1)? } else { date };
        if !tonight {
            notes.push(format!(
                "Midnight is the start of the day; the day ends at {} 00:00.",
                add_days(date, 1)?
            ));
        }
        local_time::start_of_day(date, now.time_zone(), notes)
    }

    fn today_at(&self, time: Time, now: &Zoned, notes: &mut Vec<String>) -> Result<Zoned, InputError> {
        if self.time_of_day.is_some_and(TimeOfDay::is_midnight) {
            notes.push("No day is given, so the coming midnight is used.".to_owned());
            return local_time::start_of_day(add_days(now.date(), 1)?, now.time_zone(), notes);
        }
        let at = local_time::resolve(now.date().to_datetime(time), now.time_zone())?;
        let past = if &at < now { ", although that is already past" } else { "" };
        notes.push(format!("No day is given, so today is used{past}: {}.", at.date()));
        Ok(at)
    }

    fn resolve_day(&self, now: &Zoned, notes: &mut Vec<String>) -> Result<Option<DateSpec>, InputError> {
        let dated = self.resolve_date(now.date(), notes)?;
        let Some(weekday) = self.weekday else {
            return Ok(dated);
        };
        match dated {
            None => {
                let date = relative_date::next_weekday(weekday, now.date())?;
                let name = time_format::weekday_name(weekday);
                notes.push(format!("{name} is read as the coming {name}, today included: {date}."));
                Ok(Some(DateSpec::Day(date)))
            }
            Some(DateSpec::Week(reading)) => {
                let ahead =
                    weekday.to_monday_zero_offset() - reading.date().weekday().to_monday_zero_offset();
                let date = add_days(reading.date(), i64::from(ahead))?;
                notes.push(format!("Weeks begin on Monday: {date}."));
                Ok(Some(DateSpec::Day(date)))
            }
            Some(base) if base.date().weekday() == weekday => Ok(Some(base)),
            Some(base) => Err(InputError::new(
                format!(
                    "{} is a {}, not a {}.",
                    base.date(),
                    time_format::weekday_name(base.date().weekday()),
                    time_format::weekday_name(weekday)
                ),
                "Correct the weekday or the date, or omit the weekday.",
            )),
        }
    }

    fn resolve_date(&self, today: Date, notes: &mut Vec<String>) -> Result<Option<DateSpec>, InputError> {
        let found = [self.date_spec.is_some(), self.month_day.is_some(), self.day.is_some()];
        if found.iter().filter(|found| **found).count() > 1 {
            return Err(InputError::new("The text names two days.", "Use one moment at a time."));
        }
        let date = match (self.month_day, self.day, self.year) {
            (Some((month, day)), _, Some(year)) => calendar_date::checked_date(year, month, day)?,
            (Some((month, day)), _, None) => calendar_date::next_occurrence(month, day, today, notes)?,
            (None, Some(day), None) => calendar_date::next_day_of_month(day, today, notes)?,
            (None, _, Some(year)) => {
                return Err(InputError::new(
                    format!("{year} is a year, not a moment."),
                    format!("Write a date such as {year}-01-01; Unix seconds are written as @{year}."),
                ));
            }
            (None, None, None) => return Ok(self.date_spec.clone()),
        };
        Ok(Some(DateSpec::Day(date)))
    }
}
