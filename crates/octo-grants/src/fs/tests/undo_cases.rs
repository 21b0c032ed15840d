//! Undo of one step, only if the file has not changed since.

use super::{FsFixture, error_kind};
use crate::fs::{Change, Fs, Write, WriteOptions};
use octo_model::Caller;
use std::os::unix::fs::PermissionsExt;

#[test]
fn the_last_change_of_a_file_is_taken_back_once() {
    let kit = FsFixture::new();
    kit.put("file", "old");
    std::fs::set_permissions(kit.raw("file"), std::fs::Permissions::from_mode(0o751)).unwrap();
    let (place, options) = (kit.at("file"), WriteOptions::default());
    kit.fs.write(&place, b"first", &options).unwrap();
    kit.fs.append(&place, b" second", &options).unwrap();
    assert!(!kit.fs.undo(&place).unwrap().removed);
    assert_eq!(kit.get("file"), "first");
    assert_eq!(error_kind(&kit.fs.undo(&place).unwrap_err()), "not_found");
    kit.fs.remove(&place).unwrap();
    assert!(!kit.raw("file").exists());
    kit.fs.undo(&place).unwrap();
    assert_eq!(kit.get("file"), "first");
    assert_eq!(std::fs::metadata(kit.raw("file")).unwrap().permissions().mode() & 0o777, 0o751);
}

#[test]
fn a_file_that_was_new_is_removed() {
    let kit = FsFixture::new();
    kit.fs.write(&kit.at("new"), b"x", &WriteOptions::default()).unwrap();
    assert!(kit.fs.undo(&kit.at("new")).unwrap().removed);
    assert!(!kit.raw("new").exists());
}

#[test]
fn a_change_is_taken_back_by_whoever_made_it() {
    let kit = FsFixture::new();
    kit.put("file", "old");
    let of = |name: &str| Fs::<Write>::new(kit.fs.workspace().clone().for_caller(&Caller::named(name)));
    let (alice, bob, place) = (of("alice"), of("bob"), kit.at("file"));
    alice.write(&place, b"by alice", &WriteOptions::default()).unwrap();
    for other in [&bob, &kit.fs, &of("local\0alice"), &of("alice2")] {
        assert_eq!(error_kind(&other.undo(&place).unwrap_err()), "not_found");
    }
    bob.write(&place, b"by bob", &WriteOptions::default()).unwrap();
    assert_eq!(error_kind(&alice.undo(&place).unwrap_err()), "conflict");
    bob.undo(&place).unwrap();
    assert_eq!(kit.get("file"), "by alice");
    alice.undo(&place).unwrap();
    assert_eq!(kit.get("file"), "old");
    // Without callers there is one: the local user.
    of("local").write(&place, b"new", &WriteOptions::default()).unwrap();
    kit.fs.undo(&place).unwrap();
}

#[test]
fn every_file_of_a_change_can_be_taken_back() {
    let kit = FsFixture::new();
    kit.put("a", "old");
    kit.put("b", "old");
    let options = WriteOptions::default();
    let put = Change::Put { place: kit.at("a"), bytes: b"new".into(), mode: Some(0o755), options };
    let written = kit.fs.change(vec![put, Change::Remove { place: kit.at("b"), if_hash: None }]).unwrap();
    assert!(written.iter().all(|one| one.undo));
    kit.fs.undo(&kit.at("a")).unwrap();
    kit.fs.undo(&kit.at("b")).unwrap();
    assert_eq!((kit.get("a"), kit.get("b")), ("old".into(), "old".into()));
}

#[test]
fn what_somebody_else_has_changed_since_is_not_taken_back() {
    let kit = FsFixture::new();
    let options = WriteOptions::default();
    for path in ["written", "created", "removed"] {
        kit.put(path, "old");
    }
    kit.fs.write(&kit.at("written"), b"new", &options).unwrap();
    kit.put("written", "theirs");
    kit.fs.remove(&kit.at("removed")).unwrap();
    kit.put("removed", "theirs");
    kit.fs.write(&kit.at("gone"), b"new", &options).unwrap();
    std::fs::remove_file(kit.raw("gone")).unwrap();
    for path in ["written", "removed", "gone"] {
        assert_eq!(error_kind(&kit.fs.undo(&kit.at(path)).unwrap_err()), "conflict", "{path}");
    }
    assert_eq!((kit.get("written"), kit.get("removed")), ("theirs".into(), "theirs".into()));
}

#[test]
fn large_files_and_old_changes_are_not_kept() {
    let kit = FsFixture::new();
    let options = WriteOptions::default();
    let file = std::fs::File::create(kit.raw("large")).unwrap();
    file.set_len((16 << 20) + 1).unwrap();
    assert!(!kit.fs.write(&kit.at("large"), b"small", &options).unwrap().undo);
    assert!(kit.fs.write(&kit.at("large"), b"smaller", &options).unwrap().undo);
    kit.fs.undo(&kit.at("large")).unwrap();
    assert_eq!(kit.get("large"), "small");
    let undo = kit.folder.path().join("state/fs/undo");
    for at in 0..1_000 {
        std::fs::write(undo.join(format!("{at:064}")), "x").unwrap();
    }
    let kit = FsFixture {
        fs: super::Fs::new(super::Workspace::open(super::spec(kit.folder.path())).unwrap()),
        ..kit
    };
    assert!(kit.fs.write(&kit.at("last"), b"x", &options).unwrap().undo);
    let count = std::fs::read_dir(&undo).unwrap().count();
    assert!(count <= 1_000, "{count}");
    kit.fs.undo(&kit.at("last")).unwrap();
}

#[test]
fn a_huge_file_is_removed_without_being_read() {
    let kit = FsFixture::new();
    let huge = std::fs::File::create(kit.raw("huge")).unwrap();
    huge.set_len(64 << 30).unwrap();
    let began = std::time::Instant::now();
    let gone = kit.fs.change(vec![Change::Remove { place: kit.at("huge"), if_hash: None }]).unwrap();
    assert!(!gone[0].undo && !kit.raw("huge").exists());
    assert!(began.elapsed() < std::time::Duration::from_secs(2), "{:?}", began.elapsed());
}

#[test]
fn both_names_of_a_renaming_are_taken_back() {
    let groups = || vec![vec![0, 1]];
    for by in ["old", "new"] {
        let kit = FsFixture::new();
        kit.put("old", "content");
        let options = WriteOptions { create_new: true, ..WriteOptions::default() };
        let put = Change::Put { place: kit.at("new"), bytes: b"changed".into(), mode: None, options };
        let remove = Change::Remove { place: kit.at("old"), if_hash: None };
        kit.fs.change_linked(vec![remove, put], groups()).unwrap();
        let undone = kit.fs.undo(&kit.at(by)).unwrap();
        assert_eq!((undone.removed, undone.others.len()), (by == "new", 1), "{by}");
        assert_eq!((kit.get("old"), kit.raw("new").exists()), ("content".into(), false), "{by}");
        for name in ["old", "new"] {
            assert_eq!(error_kind(&kit.fs.undo(&kit.at(name)).unwrap_err()), "not_found", "{by} {name}");
        }
    }
    // A newer change of one of them is not overwritten.
    let kit = FsFixture::new();
    kit.put("old", "content");
    let put = Change::Put {
        place: kit.at("new"),
        bytes: b"x".into(),
        mode: None,
        options: WriteOptions::default(),
    };
    kit.fs
        .change_linked(vec![Change::Remove { place: kit.at("old"), if_hash: None }, put], groups())
        .unwrap();
    kit.fs.write(&kit.at("old"), b"newer", &WriteOptions::default()).unwrap();
    assert_eq!(error_kind(&kit.fs.undo(&kit.at("new")).unwrap_err()), "conflict");
    assert_eq!((kit.get("old"), kit.get("new")), ("newer".into(), "x".into()));
}

#[test]
fn a_move_is_taken_back_with_what_it_replaced() {
    for by in ["from", "to"] {
        let kit = FsFixture::new();
        kit.put("from", "moved");
        kit.put("to", "replaced");
        std::fs::set_permissions(kit.raw("to"), std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(kit.fs.rename(&kit.at("from"), &kit.at("to"), true).unwrap());
        let undone = kit.fs.undo(&kit.at(by)).unwrap();
        assert!(!undone.removed && !undone.others[0].removed, "{by}");
        assert_eq!((kit.get("from"), kit.get("to")), ("moved".into(), "replaced".into()), "{by}");
        assert_eq!(std::fs::metadata(kit.raw("to")).unwrap().permissions().mode() & 0o777, 0o640);
        for name in ["from", "to"] {
            assert_eq!(error_kind(&kit.fs.undo(&kit.at(name)).unwrap_err()), "not_found", "{by} {name}");
        }
    }
    let kit = FsFixture::new();
    kit.put("folder/inner/file", "x");
    std::os::unix::fs::symlink("folder", kit.raw("link")).unwrap();
    for (from, to) in [("folder", "elsewhere"), ("link", "moved")] {
        assert!(kit.fs.rename(&kit.at(from), &kit.at(to), false).unwrap());
        assert!(kit.fs.undo(&kit.at(to)).unwrap().removed, "{to}");
        assert!(
            kit.raw(from).symlink_metadata().is_ok() && kit.raw(to).symlink_metadata().is_err(),
            "{from}"
        );
    }
    assert_eq!(kit.get("folder/inner/file"), "x");
    // One of the names has been taken in the meantime.
    for (name, other) in [("a", "b"), ("b", "a")] {
        let kit = FsFixture::new();
        kit.put("a", "content");
        kit.fs.rename(&kit.at("a"), &kit.at("b"), false).unwrap();
        let _ = std::fs::remove_file(kit.raw(name));
        kit.put(name, "theirs");
        for asked in [name, other] {
            assert_eq!(error_kind(&kit.fs.undo(&kit.at(asked)).unwrap_err()), "conflict", "{name} {asked}");
        }
        assert_eq!(kit.get(name), "theirs");
    }
}
