//! Log level requested from a legacy server.

use octo_model::JsonObject;
use octo_wire::{Level, meta};
use std::sync::{Mutex, PoisonError};

/// The lowest level requested on this connection.
#[derive(Default)]
pub(crate) struct RequestedLogLevel(Mutex<Option<Level>>);

impl RequestedLogLevel {
    /// Returns the level to request, if it is lower than the one requested so far.
    pub(crate) fn raise_for(&self, params: &JsonObject) -> Option<Level> {
        let level = Level::parse(&params.inner_text("_meta", meta::LOG_LEVEL)?)?;
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.is_some_and(|heard| heard <= level) {
            return None;
        }
        *heard = Some(level);
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_more_is_asked_for() {
        let heard = RequestedLogLevel::default();
        let wants = |level: &str| {
            let about = JsonObject::new().with(meta::LOG_LEVEL, level);
            heard.raise_for(&JsonObject::new().with("_meta", about)).map(Level::as_str)
        };
        assert_eq!(heard.raise_for(&JsonObject::new()), None);
        assert_eq!(wants("warning"), Some("warning"));
        assert_eq!(wants("error"), None);
        assert_eq!(wants("debug"), Some("debug"));
        assert_eq!(wants("debug"), None);
        assert_eq!(wants("loud"), None);
    }
}
