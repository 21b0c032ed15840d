//! Wall clock that tests can stop.

use jiff::Timestamp;

/// Returns the current time: the system's, or one fixed by a test.
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
