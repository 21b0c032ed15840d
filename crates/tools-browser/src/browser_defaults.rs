//! Parameter defaults, as far as the contract names them, and limits.

use octo_toolkit::CallContext;
use std::time::Duration;

pub fn default_true() -> bool {
    true
}

pub fn default_action_timeout_ms() -> u64 {
    5_000
}

pub fn default_wait_timeout_ms() -> u64 {
    10_000
}

pub fn default_navigation_timeout_ms() -> u64 {
    30_000
}

/// Tokens of a snapshot.
pub fn default_snapshot_tokens() -> u64 {
    1_000
}

/// Tokens of a page's content.
pub fn default_content_tokens() -> u64 {
    1_000
}

/// Maximum time that a tool waits for a page.
const MAX_WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout that leaves the call time to report what happened.
pub fn clamp_timeout(ms: u64, cx: &CallContext) -> Duration {
    Duration::from_millis(ms)
        .min(MAX_WAIT_TIMEOUT)
        .min(cx.time_left().saturating_sub(Duration::from_millis(500)))
}

/// Token budget, limited to what one reply may cost.
pub fn clamp_tokens(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX).clamp(100, 20_000)
}

/// Tokens of a page that is read.
pub fn default_reading_tokens() -> u64 {
    2_000
}
