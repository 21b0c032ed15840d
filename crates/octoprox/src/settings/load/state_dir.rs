//! The state directory.

use crate::app_error::AppError;
use std::path::PathBuf;

/// The folder of the hub's own data.
pub fn state_dir(known: Option<&PathBuf>) -> Result<PathBuf, AppError> {
    known.cloned().ok_or_else(|| {
        AppError::invalid("state_dir: there is no home folder to keep data in. Set OCTOPROX_STATE_DIR.")
    })
}
