//! Patterns of names.

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Compiles several patterns into one set.
pub fn glob_set(patterns: &[String]) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(Glob::new(pattern)?);
    }
    set.build()
}
