//! Log levels, in order.

const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Severity of a log message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(u8);

impl Level {
    pub fn parse(text: &str) -> Option<Self> {
        LEVELS.iter().position(|level| *level == text).and_then(|at| u8::try_from(at).ok()).map(Self)
    }

    pub fn as_str(self) -> &'static str {
        LEVELS.get(usize::from(self.0)).copied().unwrap_or("emergency")
    }
}
