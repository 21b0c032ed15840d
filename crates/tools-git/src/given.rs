//! What several tools take: the repository, and defaults.

use octo_toolkit::WorkPath;

pub fn here() -> WorkPath {
    WorkPath::here()
}

pub fn head() -> String {
    "HEAD".to_owned()
}

pub fn origin() -> String {
    "origin".to_owned()
}

pub const fn yes() -> bool {
    true
}
