//! The date part of a text, before the time of day is applied.

use jiff::Zoned;
use jiff::civil::{Date, DateTime};

#[derive(Debug, Clone, PartialEq)]
pub enum DateSpec {
    /// A day; alone it means its first instant.
    Day(Date),
    /// A day counted from now; alone it keeps the time of day.
    KeepTime(DateTime),
    /// A week counted from now; a weekday selects the day.
    Week(DateTime),
    /// The first instant of a day.
    StartOf(Date),
    /// The last second of a day.
    EndOf(Date),
    /// An instant; a time of day would contradict it.
    Instant(Zoned),
}

impl DateSpec {
    pub fn date(&self) -> Date {
        match self {
            Self::Day(date) | Self::StartOf(date) | Self::EndOf(date) => *date,
            Self::KeepTime(reading) | Self::Week(reading) => reading.date(),
            Self::Instant(at) => at.date(),
        }
    }
}
