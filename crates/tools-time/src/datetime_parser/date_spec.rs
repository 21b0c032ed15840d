//! What the date part of a text comes down to, before a time of day is put on it.

use jiff::Zoned;
use jiff::civil::{Date, DateTime};

#[derive(Debug, Clone, PartialEq)]
pub enum DateSpec {
    /// A day; alone it means its first instant.
    Day(Date),
    /// A day reached by counting from now; alone it keeps the time of day.
    KeepTime(DateTime),
    /// A week reached by counting; a weekday beside it picks the day.
    Week(DateTime),
    /// A day whose first instant was asked for.
    StartOf(Date),
    /// A day whose end was asked for: its last second.
    EndOf(Date),
    /// An instant; a time of day beside it would contradict it.
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
