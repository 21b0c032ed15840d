//! SEC-FS-03: random trees with links and random paths; an independent resolver that knows only the rules must agree.

use super::FsFixture;
use crate::fs::{EntryKind, Fs, WorkPath, WriteOptions};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq)]
enum Node {
    File(String),
    Folder(BTreeMap<&'static str, Node>),
    Link(String),
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A small seeded generator, so that a failing case can be repeated.
struct Rng(u64);

impl Rng {
    fn next(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % sides
    }

    /// A path as a caller writes it; a `.` in it means nothing, not even at the end.
    fn call(&mut self) -> String {
        let path = self.path();
        let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
    }

    /// A path as stored in a link.
    fn path(&mut self) -> String {
        let parts: Vec<&str> = (0..=self.next(4)).map(|_| self.part()).collect();
        let slash = if self.next(12) == 0 { "/" } else { "" };
        format!("{slash}{}", parts.join("/"))
    }

    fn part(&mut self) -> &'static str {
        match self.next(8) {
            0 | 1 => "..",
            2 => ".",
            _ => NAMES[self.next(NAMES.len())],
        }
    }

    fn folder(&mut self, depth: usize) -> Node {
        let mut entries = BTreeMap::new();
        for name in NAMES {
            let node = match self.next(6) {
                0 => continue,
                1 => Node::File(format!("{:x}", self.0)),
                2 | 3 => Node::Link(self.path()),
                _ if depth == 0 => continue,
                _ => self.folder(depth - 1),
            };
            entries.insert(name, node);
        }
        Node::Folder(entries)
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    File(String),
    Folder,
    Missing,
    NotAFolder,
    Leaves,
}

/// Resolves as the rules say: component by component, links expanded in place, and never above the root, not even
/// temporarily; an absolute link leaves the root.
fn oracle(root: &Node, path: &str) -> Answer {
    let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let mut here: Vec<&Node> = vec![root];
    let mut links = 0;
    while let Some(part) = left.pop() {
        let Some(Node::Folder(entries)) = here.last() else { return Answer::NotAFolder };
        match part.as_str() {
            "" | "." => {}
            ".." if here.len() == 1 => return Answer::Leaves,
            ".." => {
                here.pop();
            }
            name => match entries.get(name) {
                None => return Answer::Missing,
                Some(Node::Link(target)) => {
                    links += 1;
                    if links > 40 || target.starts_with('/') {
                        return Answer::Leaves;
                    }
                    left.extend(target.split('/').rev().map(str::to_owned));
                }
                Some(node) => here.push(node),
            },
        }
    }
    match here.last() {
        Some(Node::File(text)) => Answer::File(text.clone()),
        _ => Answer::Folder,
    }
}

fn build(node: &Node, at: &std::path::Path) {
    match node {
        Node::File(text) => std::fs::write(at, text).unwrap(),
        Node::Link(target) => std::os::unix::fs::symlink(target, at).unwrap(),
        Node::Folder(entries) => {
            std::fs::create_dir_all(at).unwrap();
            for (name, node) in entries {
                build(node, &at.join(name));
            }
        }
    }
}

fn ours<M: 'static>(fs: &Fs<M>, path: &str) -> Answer {
    let place = fs.place(&WorkPath::from(path)).unwrap();
    match fs.stat(&place) {
        Ok(stat) if stat.kind == EntryKind::Folder => Answer::Folder,
        Ok(_) => Answer::File(String::from_utf8(fs.read(&place, 100).unwrap().0).unwrap()),
        Err(error) => match error.kind.as_str() {
            "not_found" => Answer::Missing,
            "invalid" => Answer::NotAFolder,
            "denied" => Answer::Leaves,
            // The kernel cannot resolve `..` while any process of the machine renames files, as other tests do.
            "conflict" => ours(fs, path),
            other => panic!("{other}: {error}"),
        },
    }
}

#[test]
fn sec_fs_03_our_answer_is_the_oracles() {
    let mut dice = Rng(0x9e37_79b9_7f4a_7c15);
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for round in 0..60 {
        let kit = FsFixture::new();
        let tree = dice.folder(3);
        build(&tree, &kit.raw("."));
        // The same names exist above the root, so that an escape would find something.
        build(&Node::Folder(NAMES.map(|name| (name, Node::File("SECRET".into()))).into()), kit.folder.path());
        for _ in 0..100 {
            let path = dice.call();
            let expected = oracle(&tree, &path);
            assert_eq!(ours(&kit.fs, &path), expected, "round {round}, {path:?} in {tree:#?}");
            *seen
                .entry(match expected {
                    Answer::File(_) => "file",
                    Answer::Folder => "folder",
                    Answer::Missing => "missing",
                    Answer::NotAFolder => "not a folder",
                    Answer::Leaves => "leaves",
                })
                .or_default() += 1;
        }
        for _ in 0..5 {
            write_lands_where_the_oracle_says(&kit, &tree, &dice.call());
        }
        for name in NAMES {
            assert_eq!(std::fs::read(kit.folder.path().join(name)).unwrap(), b"SECRET");
        }
    }
    assert!(seen.len() == 5 && seen.values().all(|count| *count > 100), "{seen:?}");
}

/// A write either changes the file that the path leads to, creates a missing one, or changes nothing.
fn write_lands_where_the_oracle_says(kit: &FsFixture, tree: &Node, path: &str) {
    let before = oracle(tree, path);
    let result = kit.fs.write(&kit.at(path), b"written", &WriteOptions::default());
    match (before, result) {
        (Answer::File(_), Ok(written)) => {
            assert!(!written.created);
            assert_eq!(ours(&kit.fs, path), Answer::File("written".into()), "{path}");
            // Restores the tree for the next path.
            kit.fs.undo(&kit.at(path)).unwrap();
        }
        (Answer::Missing, Ok(written)) => {
            assert!(written.created);
            assert_eq!(ours(&kit.fs, path), Answer::File("written".into()), "{path}");
            kit.fs.remove(&kit.at(path)).unwrap();
        }
        (Answer::File(_), Err(error)) => {
            // A path may end in a dot or two and not name a file; those are refused for writing.
            panic!("{path}: {error}");
        }
        (_, Ok(_)) => panic!("{path} was written"),
        (_, Err(_)) => {}
    }
}
