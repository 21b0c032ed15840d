//! Trees on a real disk.

mod hostile_trees;
mod ignore_rule_cases;

use super::{Step, WalkEntry, WalkOptions, Walked};
use crate::fs::{Fs, Read, RootSpec, WorkPath, Workspace, WorkspaceSpec};
use octo_model::ToolError;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use tempfile::TempDir;

fn open(folder: &Path) -> Fs<Read> {
    let root = RootSpec { name: "ws".to_owned(), path: folder.to_owned(), alias_path: None, writable: false };
    Fs::new(Workspace::open(WorkspaceSpec { roots: vec![root], ..Default::default() }).unwrap())
}

fn walk(
    fs: &Fs<Read>,
    start: &str,
    options: &WalkOptions,
    visit: &(dyn Fn(&WalkEntry<'_>) -> Step + Sync),
) -> Result<Walked, ToolError> {
    fs.walk(&fs.place(&WorkPath::from(start))?, options, visit)
}

/// Creates files with these contents; a path that ends with a slash is an empty directory.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    plant(folder.path(), files);
    folder
}

fn plant(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        if path.to_str().unwrap().ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

fn shown(entry: &WalkEntry<'_>) -> String {
    let slash = if entry.kind == crate::fs::EntryKind::Folder { "/" } else { "" };
    let mark = if entry.ignored { " ignored" } else { "" };
    format!("{}{slash}{mark}", entry.path.display())
}

fn names_at(folder: &Path, start: &str, options: &WalkOptions) -> (Vec<String>, Walked) {
    let seen = Mutex::new(Vec::new());
    let walked = walk(&open(folder), start, options, &|entry| {
        seen.lock().unwrap().push(shown(entry));
        Step::Continue
    })
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    (seen, walked)
}

fn names(folder: &Path, options: &WalkOptions) -> Vec<String> {
    names_at(folder, ".", options).0
}

#[test]
fn a_walk_visits_every_entry_once_with_its_kind_and_depth() {
    let folder = tree(&[("a/b/c.txt", ""), ("a/d.txt", ""), ("e.txt", ""), ("f/", ""), (".h/i", "")]);
    let seen = Mutex::new(Vec::new());
    walk(&open(folder.path()), ".", &WalkOptions::default(), &|entry| {
        seen.lock().unwrap().push((entry.depth, shown(entry)));
        Step::Continue
    })
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    let wanted = [(1, "a/"), (1, "e.txt"), (1, "f/"), (2, "a/b/"), (2, "a/d.txt"), (3, "a/b/c.txt")];
    assert_eq!(seen, wanted.map(|(depth, path)| (depth, path.to_owned())));
}

#[test]
fn options_decide_what_is_visited() {
    let files = [
        (".git/config", ""),
        (".gitignore", "out/\n*.log\n"),
        (".hid/x", ""),
        ("out/y", ""),
        ("a/z.log", ""),
        ("a/w", ""),
        (".octoprox-0123456789abcdef.tmp", ""),
    ];
    let folder = tree(&files);
    let table: [(WalkOptions, &[&str]); 6] = [
        (WalkOptions::default(), &["a/", "a/w"]),
        (WalkOptions { max_depth: Some(1), ..Default::default() }, &["a/"]),
        (WalkOptions { max_depth: Some(0), ..Default::default() }, &[]),
        (WalkOptions { hidden: true, ..Default::default() }, &[".gitignore", ".hid/", ".hid/x", "a/", "a/w"]),
        (WalkOptions { ignored: true, ..Default::default() }, &["a/", "a/w", "a/z.log", "out/", "out/y"]),
        (
            WalkOptions { tell_ignored: true, hidden: true, ..Default::default() },
            &[
                ".git/ ignored",
                ".gitignore",
                ".hid/",
                ".hid/x",
                "a/",
                "a/w",
                "a/z.log ignored",
                "out/ ignored",
            ],
        ),
    ];
    for (options, wanted) in table {
        assert_eq!(names(folder.path(), &options), wanted, "{options:?}");
    }
    let everything = WalkOptions { hidden: true, ignored: true, ..Default::default() };
    assert!(names(folder.path(), &everything).contains(&".git/config".to_owned()));
}

#[test]
fn a_file_is_its_own_only_entry() {
    let folder = tree(&[("a/b.txt", "hello")]);
    let seen = Mutex::new(Vec::new());
    walk(&open(folder.path()), "a/b.txt", &WalkOptions::default(), &|entry| {
        let (mut file, stat) = entry.open().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut file, &mut text).unwrap();
        assert_eq!(entry.stat().unwrap(), stat);
        seen.lock().unwrap().push((entry.path.to_owned(), entry.depth, stat.size, text));
        Step::Continue
    })
    .unwrap();
    assert_eq!(seen.into_inner().unwrap(), [("".into(), 0, 5, "hello".to_owned())]);
}

#[test]
fn a_wide_folder_and_a_deep_one_are_walked_by_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    let mut deep = folder.path().join("deep");
    for _ in 0..300 {
        fs::create_dir_all(deep.join("side")).unwrap();
        deep.push("d");
    }
    for number in 0..2000 {
        fs::write(folder.path().join(format!("f{number}")), "").unwrap();
    }
    let wanted = 2000 + 1 + 300 + 299;
    for threads in [0, 1, 2, 8] {
        let options = WalkOptions { threads, ..Default::default() };
        assert_eq!(names(folder.path(), &options).len(), wanted, "{threads} threads");
    }
}

#[test]
fn the_visitor_skips_folders_and_stops_the_walk() {
    let folder = tree(&[("a/b/c", ""), ("d/e", "")]);
    let seen = Mutex::new(Vec::new());
    walk(&open(folder.path()), ".", &WalkOptions::default(), &|entry| {
        seen.lock().unwrap().push(shown(entry));
        if entry.path == Path::new("a") { Step::Skip } else { Step::Continue }
    })
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    assert_eq!(seen, ["a/", "d/", "d/e"]);

    let count = std::sync::atomic::AtomicUsize::new(0);
    let options = WalkOptions { threads: 1, ..Default::default() };
    walk(&open(folder.path()), ".", &options, &|_| {
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Step::Stop
    })
    .unwrap();
    assert_eq!(count.into_inner(), 1);
}

#[test]
fn a_visitor_that_panics_ends_the_walk_instead_of_hanging_it() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..200 {
        fs::create_dir_all(folder.path().join(format!("d{number}/e"))).unwrap();
    }
    let fs = open(folder.path());
    let options = WalkOptions { threads: 4, ..Default::default() };
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        walk(&fs, ".", &options, &|entry| {
            assert!(entry.depth < 2, "on purpose");
            Step::Continue
        })
    }));
    assert!(result.is_err());
}
