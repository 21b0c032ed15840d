//! The time toolbox: what time it is, what a text means, and how far apart two moments are.

mod convert;
mod diff;
mod fault;
mod given;
mod list_timezones;
mod local;
mod now;
mod parse;
mod say;
mod span;
mod when;
mod zone;

use octo_toolkit::Toolbox;

/// The tools of the domain `time`.
pub fn toolbox() -> Toolbox {
    Toolbox::new("time", "Current time, dates in words, time zones and differences.")
        .with(now::Now)
        .with(convert::Convert)
        .with(parse::Parse)
        .with(diff::Diff)
        .with(list_timezones::ListTimezones)
}

#[cfg(test)]
mod tests;
