//! Folders stay small, and a file can be found by its name.

use super::Report;
use super::rust_sources::Source;
use std::collections::BTreeMap;

const MAX_FILES_PER_FOLDER: usize = 25;
const MAX_USES_OF_NAME: usize = 3;
/// Names that say where a file stands and not what it holds.
const COMMON_NAMES: [&str; 5] = ["mod", "lib", "main", "tests", "error"];

pub fn check(sources: &[Source]) -> Report {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources {
        let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
        *folders.entry(folder).or_default() += 1;
        names.entry(file.trim_end_matches(".rs")).or_default().push(&source.path);
    }
    let full =
        folders.into_iter().filter(|(_, count)| *count > MAX_FILES_PER_FOLDER).map(|(folder, count)| {
            format!(
                "{folder} has {count} files, the limit is {MAX_FILES_PER_FOLDER}: make folders by subject"
            )
        });
    let is_common = |name: &str| COMMON_NAMES.contains(&name);
    let repeated =
        names.into_iter().filter(|(name, paths)| !is_common(name) && paths.len() > MAX_USES_OF_NAME);
    let repeated = repeated.map(|(name, paths)| {
        let count = paths.len();
        format!("{count} files are called {name}.rs, the limit is {MAX_USES_OF_NAME}: {}", paths.join(", "))
    });
    Report { problems: full.chain(repeated).collect(), notes: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(paths: impl IntoIterator<Item = String>) -> Vec<String> {
        check(&paths.into_iter().map(|path| Source::new(&path, "")).collect::<Vec<_>>()).problems
    }

    #[test]
    fn a_folder_with_too_many_files_is_a_problem() {
        let files = |count: usize| (0..count).map(|n| format!("a/src/f{n}.rs"));
        assert!(problems(files(25)).is_empty());
        assert_eq!(problems(files(26)).len(), 1);
    }

    #[test]
    fn a_name_that_is_used_too_often_is_a_problem() {
        let named = |name: &str, count: usize| -> Vec<String> {
            (0..count).map(|n| format!("crate{n}/src/{name}.rs")).collect()
        };
        for (name, count, found) in [("call", 3, 0), ("call", 4, 1), ("mod", 9, 0), ("tests", 9, 0)] {
            assert_eq!(problems(named(name, count)).len(), found, "{name} {count}");
        }
    }
}
