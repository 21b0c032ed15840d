//! Time toolbox: current time, date parsing, time zone conversion and differences.

mod convert;
mod datetime_parser;
mod elapsed;
mod input_error;
mod list_timezones;
mod local_time;
mod now;
mod time_diff;
mod time_format;
mod time_input;
mod time_parse;
mod zone;

use octo_toolkit::Toolbox;

/// Toolbox `time`.
pub fn toolbox() -> Toolbox {
    Toolbox::new("time", "Current time, dates in words, time zones and differences.")
        .with(now::Now)
        .with(convert::Convert)
        .with(time_parse::Parse)
        .with(time_diff::Diff)
        .with(list_timezones::ListTimezones)
}

#[cfg(test)]
mod tests;
