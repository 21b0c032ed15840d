//! Links, races, and unreadable directories.

use super::{names_at, open, plant, shown, tree, walk};
use crate::fs::{EntryKind, Fs, RootSpec, Step, WalkOptions, Workspace, WorkspaceSpec};
use rustix::thread::CapabilitySet;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const EVERYTHING: WalkOptions =
    WalkOptions { hidden: true, ignored: true, tell_ignored: false, max_depth: None, threads: 4 };

#[test]
fn links_are_seen_and_never_followed() {
    let outside = tree(&[("secret/key", "outside")]);
    let inside = tree(&[("a/x", "inside"), ("target", "inside")]);
    symlink(outside.path().join("secret"), inside.path().join("a/folder")).unwrap();
    symlink(outside.path().join("secret/key"), inside.path().join("a/file")).unwrap();
    symlink("../target", inside.path().join("a/near")).unwrap();
    symlink("loop", inside.path().join("loop")).unwrap();
    walk(&open(inside.path()), ".", &EVERYTHING, &|entry| {
        if entry.kind == EntryKind::Symlink {
            assert!(entry.open().is_err(), "{}", entry.path.display());
            assert_eq!(entry.stat().unwrap().kind, EntryKind::Symlink);
            assert!(!entry.link_target().unwrap().is_empty());
        }
        Step::Continue
    })
    .unwrap();
    let (seen, _) = names_at(inside.path(), ".", &EVERYTHING);
    assert_eq!(seen, ["a/", "a/file", "a/folder", "a/near", "a/x", "loop", "target"]);
}

#[test]
fn a_walk_does_not_begin_outside() {
    let outside = tree(&[("secret/key", "outside")]);
    let inside = tree(&[("a/x", "")]);
    symlink(outside.path().join("secret"), inside.path().join("out")).unwrap();
    symlink("/proc/self/root", inside.path().join("magic")).unwrap();
    let starts = ["out", "out/key", "..", "a/../..", "magic", "/etc", "a/../../x"];
    for start in starts {
        let walked =
            walk(&open(inside.path()), start, &EVERYTHING, &|entry| panic!("{start}: {}", shown(entry)));
        assert!(walked.is_err(), "{start}");
    }
}

#[test]
fn what_is_no_file_is_not_opened_and_nobody_waits_for_it() {
    let folder = tree(&[("a", "")]);
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).unwrap();
    let began = Instant::now();
    let others = AtomicUsize::new(0);
    walk(&open(folder.path()), ".", &EVERYTHING, &|entry| {
        if entry.kind == EntryKind::Other {
            assert!(entry.open().is_err());
            others.fetch_add(1, Ordering::Relaxed);
        }
        Step::Continue
    })
    .unwrap();
    assert_eq!(others.into_inner(), 2);
    assert!(began.elapsed() < Duration::from_secs(1));
}

/// Drops root's capability to read everything, for this thread and those that it starts.
fn become_ordinary() {
    let mut own = rustix::thread::capabilities(None).unwrap();
    own.effective -= CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH;
    rustix::thread::set_capabilities(None, own).unwrap();
}

#[test]
fn a_folder_that_cannot_be_read_is_named() {
    let folder = tree(&[("open/x", ""), ("shut/y", "")]);
    let shut = folder.path().join("shut");
    std::fs::set_permissions(&shut, PermissionsExt::from_mode(0o000)).unwrap();
    let path = folder.path().to_owned();
    let walk = std::thread::spawn(move || {
        become_ordinary();
        names_at(&path, ".", &EVERYTHING)
    });
    let (seen, walked) = walk.join().unwrap();
    std::fs::set_permissions(&shut, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(seen, ["open/", "open/x", "shut/"]);
    assert_eq!((walked.unread, walked.unread_paths), (1, vec!["shut".into()]));
}

#[test]
fn names_that_are_not_utf8_are_visited() {
    let folder = tree(&[]);
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9");
    std::fs::create_dir(folder.path().join(name)).unwrap();
    std::fs::write(folder.path().join(name).join("x"), "").unwrap();
    let (seen, _) = names_at(folder.path(), ".", &EVERYTHING);
    assert_eq!(seen, ["caf\u{fffd}/", "caf\u{fffd}/x"]);
}

/// A directory and a link to the outside are swapped continuously while several walks read all they can.
#[test]
fn a_folder_that_is_swapped_for_a_link_shows_nothing_of_the_outside() {
    let outside = tree(&[("leak-name", "leak-text"), ("deep/leak-name", "leak-text")]);
    let inside = tree(&[("box/a/deep/x", "fine"), ("box/a/y", "fine"), ("box/b/z", "fine")]);
    plant(inside.path(), &[(".gitignore", "nothing\n")]);
    symlink(outside.path(), inside.path().join("box/link")).unwrap();
    let (over, visited, swaps) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let leaks = Mutex::new(Vec::new());
    let folder = std::fs::File::open(inside.path().join("box")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let swap = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(&folder, "a", &folder, "link", swap).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
            }
        });
        for start in [".", "box", "box/a", "box/a/deep"] {
            let (over, visited, leaks) = (&over, &visited, &leaks);
            let fs = open(inside.path());
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let _ = walk(&fs, start, &EVERYTHING, &|entry| {
                        visited.fetch_add(1, Ordering::Relaxed);
                        let mut text = String::new();
                        if let Ok((mut file, _)) = entry.open() {
                            let _ = file.read_to_string(&mut text);
                        }
                        if shown(entry).contains("leak") || text.contains("leak") {
                            leaks.lock().unwrap().push(shown(entry));
                        }
                        Step::Continue
                    });
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(leaks.into_inner().unwrap(), Vec::<String>::new());
    let (visited, swaps) = (visited.into_inner(), swaps.into_inner());
    assert!(visited > 1000 && swaps > 1000, "{visited} entries, {swaps} swaps");
}

#[test]
fn the_hubs_own_data_within_a_root_are_not_seen() {
    let folder = tree(&[("a.txt", "x"), (".hub/octoprox.db", "secret"), ("deep/.hub/kept.txt", "x")]);
    let path = folder.path().canonicalize().unwrap();
    let root = RootSpec { name: "ws".to_owned(), path: path.clone(), alias_path: None, writable: false };
    let spec = WorkspaceSpec { roots: vec![root], state: Some(path.join(".hub")), ..Default::default() };
    let fs = Fs::new(Workspace::open(spec).unwrap());
    let options = WalkOptions { hidden: true, ignored: true, ..Default::default() };
    let seen = Mutex::new(Vec::new());
    walk(&fs, ".", &options, &|entry| {
        seen.lock().unwrap().push(shown(entry));
        Step::Continue
    })
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort();
    assert_eq!(seen, ["a.txt", "deep/", "deep/.hub/", "deep/.hub/kept.txt"]);
    assert!(walk(&fs, ".hub", &options, &|_| Step::Continue).is_err());
}
