//! Ignore rules, by hand and against the walker of the `ignore` crate.

use super::{names, names_at, plant, tree};
use crate::fs::WalkOptions;
use ignore::WalkBuilder;
use proptest::prelude::*;
use std::path::Path;

type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "a folder's own negation beats its parent's rule",
        &[(".gitignore", "*.log\n"), ("a/.gitignore", "!keep.log\n"), ("a/keep.log", ""), ("a/x.log", "")],
        &["a/", "a/keep.log"],
    ),
    (
        "what is in an ignored folder cannot be asked back",
        &[(".gitignore", "out/\n!out/keep\n"), ("out/keep", "")],
        &[],
    ),
    (
        "but in a folder whose entries are ignored it can",
        &[(".gitignore", "out/*\n!out/keep\n"), ("out/keep", ""), ("out/x", "")],
        &["out/", "out/keep"],
    ),
    (
        "a leading slash binds to the folder of the file",
        &[(".gitignore", "/a\n"), ("a", ""), ("b/a", "")],
        &["b/", "b/a"],
    ),
    (
        "a trailing slash means folders only",
        &[(".gitignore", "a/\n"), ("a/x", ""), ("b/a", "")],
        &["b/", "b/a"],
    ),
    (
        "two stars cross folders",
        &[(".gitignore", "a/**/z\n"), ("a/z", ""), ("a/b/c/z", ""), ("z", "")],
        &["a/", "a/b/", "a/b/c/", "z"],
    ),
    (
        ".ignore weighs more than .gitignore, also from further up",
        &[(".ignore", "!x.log\n"), ("a/.gitignore", "*.log\n"), ("a/x.log", ""), ("a/y.log", "")],
        &["a/", "a/x.log"],
    ),
    (
        "the repository's own exclusions weigh least",
        &[
            (".git/info/exclude", "*.o\n*.p\n"),
            (".gitignore", "!b.o\n"),
            ("a.o", ""),
            ("b.o", ""),
            ("c.p", ""),
        ],
        &["b.o"],
    ),
    (
        "a repository inside is not ruled from outside",
        &[(".gitignore", "*.log\n"), ("sub/.git/HEAD", ""), ("sub/x.log", ""), ("y.log", "")],
        &["sub/", "sub/x.log"],
    ),
    ("a hidden file can be asked for", &[(".gitignore", "!.env\n"), (".env", ""), (".other", "")], &[".env"]),
    (
        "comments, blank lines, a byte order mark, line ends and broken lines",
        &[(".gitignore", "\u{feff}a\r\n# b\r\n\r\n\\#c\n[\n"), ("a", ""), ("b", ""), ("#c", "")],
        &["b"],
    ),
];

#[test]
fn rules_as_git_reads_them() {
    for (what, files, wanted) in CASES {
        assert_eq!(names(tree(files).path(), &WalkOptions::default()), *wanted, "{what}");
    }
}

#[test]
fn rules_above_the_start_count_also_through_dots_and_links() {
    let folder =
        tree(&[(".gitignore", "*.log\n/a/b/no\n"), ("a/b/x.log", ""), ("a/b/no", ""), ("a/b/yes", "")]);
    std::os::unix::fs::symlink("a/b", folder.path().join("link")).unwrap();
    for start in ["a/b", "a/../a/b", "a/b/", "./a/b", "link"] {
        assert_eq!(names_at(folder.path(), start, &WalkOptions::default()).0, ["yes"], "{start}");
    }
}

#[test]
fn a_linked_ignore_file_is_not_read() {
    let folder = tree(&[("rules", "a\n"), ("a", "")]);
    std::os::unix::fs::symlink("rules", folder.path().join(".gitignore")).unwrap();
    assert_eq!(names(folder.path(), &WalkOptions::default()), ["a", "rules"]);
}

/// The `ignore` crate's walker over the same tree.
fn oracle(folder: &Path, start: &str, hidden: bool, is_repository: bool) -> Vec<String> {
    let start = folder.join(start);
    let mut builder = WalkBuilder::new(&start);
    builder.hidden(!hidden).git_global(false).require_git(is_repository).parents(true);
    builder.filter_entry(|entry| entry.file_name() != ".git");
    let mut names: Vec<String> = builder
        .build()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.depth() > 0)
        .map(|entry| {
            let slash = if entry.file_type().unwrap().is_dir() { "/" } else { "" };
            format!("{}{slash}", entry.path().strip_prefix(&start).unwrap().display())
        })
        .collect();
    names.sort();
    names
}

fn rule() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c.log", "*.log", "?", "*", "[ab]", ".h", "d*", "a b"]);
    let path = prop_oneof![
        4 => name.clone().prop_map(str::to_owned),
        2 => (name.clone(), name.clone()).prop_map(|(a, b)| format!("{a}/{b}")),
        1 => (name.clone(), name.clone()).prop_map(|(a, b)| format!("{a}/**/{b}")),
        1 => name.clone().prop_map(|a| format!("**/{a}")),
        1 => name.prop_map(|a| format!("{a}/**")),
    ];
    (prop::bool::weighted(0.3), prop::bool::weighted(0.2), path, prop::bool::weighted(0.25)).prop_map(
        |(not, bound, path, folder)| {
            let (not, bound) = (if not { "!" } else { "" }, if bound { "/" } else { "" });
            format!("{not}{bound}{path}{}\n", if folder { "/" } else { "" })
        },
    )
}

fn place() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "d1", "d2", ".h", "a b"]);
    prop::collection::vec(name, 0..4).prop_map(|parts| parts.iter().map(|part| format!("{part}/")).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_are_walked_as_the_ignore_crate_walks_them(
        files in prop::collection::vec((place(), prop::sample::select(vec!["a", "b", "c.log", "e.log", ".h", "z"])), 1..25),
        rules in prop::collection::vec((place(), prop::bool::ANY, prop::collection::vec(rule(), 1..5)), 0..5),
        exclude in prop::collection::vec(rule(), 0..3),
        nested in prop::option::weighted(0.3, place()),
        start in place(),
        hidden in prop::bool::ANY,
        is_repository in prop::bool::ANY,
    ) {
        let folder = tempfile::tempdir().unwrap();
        if is_repository {
            plant(folder.path(), &[(".git/info/exclude", &exclude.concat())]);
            if let Some(nested) = nested {
                plant(folder.path(), &[(&format!("{nested}.git/"), "")]);
            }
        }
        for (at, own, lines) in &rules {
            let name = if *own { ".ignore" } else { ".gitignore" };
            let _ = std::fs::create_dir_all(folder.path().join(at));
            let _ = std::fs::write(folder.path().join(at).join(name), lines.concat());
        }
        for (at, name) in &files {
            // A name can be a file here and a directory there; the first one wins.
            if std::fs::create_dir_all(folder.path().join(at)).is_ok() {
                let _ = std::fs::OpenOptions::new().write(true).create_new(true).open(folder.path().join(at).join(name));
            }
        }
        let start = if folder.path().join(&start).is_dir() { format!("./{start}") } else { ".".to_owned() };
        let options = WalkOptions { hidden, ..Default::default() };
        let mine = names_at(folder.path(), &start, &options).0;
        prop_assert_eq!(mine, oracle(folder.path(), &start, hidden, is_repository));
    }
}
