//! Suggestions for a path that does not exist.

use crate::fs::open_beneath::reopen;
use crate::fs::resolve::split;
use crate::fs::{RootedPath, read_files};
use octo_model::{ToolError, edit_distance};
use rustix::fs::OFlags;
use std::path::Path;

/// Larger directories are not searched, because the hint must stay cheap.
const MAX_ENTRIES: usize = 2_000;
const MAX_SUGGESTIONS: usize = 3;

pub(in crate::fs) fn not_found(place: &RootedPath) -> ToolError {
    let error = ToolError::not_found(format!("`{}` does not exist.", place.display()));
    let near = suggestions(place);
    if near.is_empty() {
        return error.hint("List the directory.");
    }
    error.hint(format!("Did you mean {}?", near.join(" or ")))
}

/// The closest names in the deepest existing directory of the path.
fn suggestions(place: &RootedPath) -> Vec<String> {
    let mut place = place.clone();
    loop {
        let Ok((parent, leaf)) = split(&place) else { return Vec::new() };
        let (folder, leaf) = (place.at(parent), leaf.to_string_lossy().into_owned());
        if let Ok(fd) = folder.lookup(OFlags::PATH | OFlags::DIRECTORY) {
            let fd = reopen(fd, OFlags::DIRECTORY).ok();
            let names = fd.and_then(|fd| read_files::entries(fd, MAX_ENTRIES).ok()).unwrap_or_default();
            let names = names.iter().filter_map(|entry| entry.name.to_str());
            let here = parent == Path::new(".");
            let full = |name: &str| {
                if here { place.at(Path::new(name)).display() } else { folder.join(name).display() }
            };
            return closest_names(&leaf, names).into_iter().map(|name| format!("`{}`", full(name))).collect();
        }
        place = folder;
    }
}

fn closest_names<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let most = 1 + wanted.chars().count() / 3;
    let ranked = names.filter(|name| !name.starts_with(".octoprox-")).filter_map(|name| {
        let low = name.to_lowercase();
        let stem = |text: &str| text.split('.').find(|part| !part.is_empty()).map(str::to_owned);
        let distance = edit_distance(&wanted, &low);
        (distance <= most)
            .then_some(distance)
            .or_else(|| (stem(&wanted) == stem(&low)).then_some(most + 1))
            .map(|rank| (rank, name))
    });
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_unstable();
    ranked.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use crate::fs::tests::FsFixture;

    #[test]
    fn a_missing_file_is_answered_with_the_nearest_names() {
        let kit = FsFixture::new();
        for path in ["src/main.rs", "src/maid.rs", "README.md", "other/zebra"] {
            kit.put(path, "x");
        }
        for (path, hint) in [
            ("src/mian.rs", "Did you mean `src/main.rs` or `src/maid.rs`?"),
            ("src/mair.rs", "Did you mean `src/maid.rs` or `src/main.rs`?"),
            ("readme.md", "Did you mean `README.md`?"),
            ("README", "Did you mean `README.md`?"),
            ("scr/main.rs", "Did you mean `src`?"),
            ("other/nothing-like-it", "List the directory."),
        ] {
            let error = kit.fs.stat(&kit.at(path)).unwrap_err();
            assert_eq!(error.hint.as_deref(), Some(hint), "{path}");
        }
    }
}
