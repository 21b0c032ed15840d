//! The time of day, so that tests can stop it.

use jiff::Timestamp;

/// Tells the time: the machine's, or one that a test has fixed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock {
    fixed: Option<Timestamp>,
}

impl Clock {
    pub fn system() -> Self {
        Self::default()
    }

    pub fn fixed(at: Timestamp) -> Self {
        Self { fixed: Some(at) }
    }

    pub fn now(&self) -> Timestamp {
        self.fixed.unwrap_or_else(Timestamp::now)
    }
}
