//! Defaults of parameters, where the contract names them, and their limits.

use octo_toolkit::CallContext;
use std::time::Duration;

pub fn yes() -> bool {
    true
}

pub fn five_seconds() -> u64 {
    5_000
}

pub fn ten_seconds() -> u64 {
    10_000
}

pub fn half_a_minute() -> u64 {
    30_000
}

/// Tokens of a snapshot.
pub fn snapshot() -> u64 {
    1_000
}

/// Tokens of a page's content.
pub fn content() -> u64 {
    1_000
}

/// The longest that a tool waits for a page, whatever it is told.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A time limit that leaves the call room to say what happened.
pub fn within(ms: u64, cx: &CallContext) -> Duration {
    Duration::from_millis(ms).min(MAX_WAIT).min(cx.time_left().saturating_sub(Duration::from_millis(500)))
}

/// A budget that no caller can raise past what one answer may cost.
pub fn budget(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX).clamp(100, 20_000)
}

/// Tokens of a page that is read.
pub fn reading() -> u64 {
    2_000
}
