//! The state directory.

use crate::app_error::AppError;
use std::path::PathBuf;

/// Returns the state directory.
pub fn state_dir(known: Option<&PathBuf>) -> Result<PathBuf, AppError> {
    known.cloned().ok_or_else(|| {
        AppError::invalid("state_dir: no home directory found to store data. Set OCTOPROX_STATE_DIR.")
    })
}
