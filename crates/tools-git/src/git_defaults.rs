//! Shared parameters: the repository, and defaults.

use octo_toolkit::WorkPath;

pub fn current_dir() -> WorkPath {
    WorkPath::here()
}

pub fn head_ref() -> String {
    "HEAD".to_owned()
}

pub fn origin_remote() -> String {
    "origin".to_owned()
}

pub const fn enabled() -> bool {
    true
}
