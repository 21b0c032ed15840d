//! What a write retains, refuses and leaves behind.

use super::{FsFixture, error_kind, spec};
use crate::fs::{
    Change, Fs, RootSpec, WalkOptions, WorkPath, Workspace, WorkspaceSpec, Write, WriteOptions, temp_names,
};
use std::os::unix::fs::PermissionsExt;

fn mode(kit: &FsFixture, path: &str) -> u32 {
    std::fs::metadata(kit.raw(path)).unwrap().permissions().mode() & 0o7777
}

fn set_mode(kit: &FsFixture, path: &str, mode: u32) {
    std::fs::set_permissions(kit.raw(path), std::fs::Permissions::from_mode(mode)).unwrap();
}

fn put(kit: &FsFixture, path: &str, text: &str) -> Change {
    Change::Put { place: kit.at(path), bytes: text.into(), mode: None, options: WriteOptions::default() }
}

/// Runs once normally, and once as on a file system without `RENAME_EXCHANGE` and `RENAME_NOREPLACE`.
fn on_both_kinds_of_file_system(test: impl Fn()) {
    test();
    temp_names::FORCE_PLAIN_RENAME.set(true);
    test();
    temp_names::FORCE_PLAIN_RENAME.set(false);
}

#[test]
fn a_write_creates_and_replaces_and_keeps_the_mode() {
    on_both_kinds_of_file_system(|| {
        let kit = FsFixture::new();
        let options = WriteOptions::default();
        let written = kit.fs.write(&kit.at("file"), b"one", &options).unwrap();
        assert!(written.created && written.undo && written.stat.size == 3);
        assert_eq!(written.hash, "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
        for bits in [0o755, 0o600, 0o444, 0o640] {
            set_mode(&kit, "file", bits);
            let written = kit.fs.write(&kit.at("file"), b"two", &options).unwrap();
            assert!(!written.created);
            assert_eq!((mode(&kit, "file"), written.stat.mode), (bits, bits));
        }
        kit.fs.append(&kit.at("file"), b" three", &options).unwrap();
        assert_eq!((kit.get("file").as_str(), mode(&kit, "file")), ("two three", 0o640));
        kit.fs.append(&kit.at("other"), b"new", &options).unwrap();
        assert_eq!(kit.get("other"), "new");
        assert!(kit.leftovers().is_empty());
    });
}

#[test]
fn a_new_file_gets_what_the_process_gives_to_new_files() {
    let kit = FsFixture::new();
    kit.fs.write(&kit.at("ours"), b"", &WriteOptions::default()).unwrap();
    kit.put("theirs", "");
    assert_eq!(mode(&kit, "ours"), mode(&kit, "theirs"));
    let script = Change::Put {
        place: kit.at("script"),
        bytes: b"#!".into(),
        mode: Some(0o4755),
        options: WriteOptions::default(),
    };
    kit.fs.change(vec![script]).unwrap();
    assert_eq!(mode(&kit, "script"), 0o755);
}

#[test]
fn a_write_goes_through_a_link_that_stays_inside() {
    let kit = FsFixture::new();
    kit.put("real/file", "old");
    kit.link("link", "real/file");
    kit.link("folder", "real");
    kit.fs.write(&kit.at("link"), b"new", &WriteOptions::default()).unwrap();
    assert_eq!(kit.get("real/file"), "new");
    assert!(kit.raw("link").is_symlink());
    kit.fs.write(&kit.at("folder/more"), b"new", &WriteOptions::default()).unwrap();
    assert_eq!(kit.get("real/more"), "new");
    assert_eq!(kit.fs.open_file(&kit.at("folder/more")).unwrap().real.display(), "real/more");
}

#[test]
fn names_that_look_like_the_kernels_remarks_are_names() {
    let kit = FsFixture::new();
    kit.put("x (deleted)", "old");
    kit.put("folder (deleted)/x", "old");
    kit.link("link", "x (deleted)");
    for path in ["x (deleted)", "folder (deleted)/x", "link"] {
        kit.fs.write(&kit.at(path), b"new", &WriteOptions::default()).unwrap();
        assert_eq!(kit.fs.read(&kit.at(path), 10).unwrap().0, b"new");
    }
}

#[test]
fn what_cannot_be_written_says_why() {
    let kit = FsFixture::new();
    kit.put("file", "x");
    kit.put("dir/x", "x");
    let fixed = kit.folder.path().join("fixed/new");
    let options = |if_hash: Option<&str>, create_new| WriteOptions {
        if_hash: if_hash.map(str::to_owned),
        create_new,
        mkdirs: false,
    };
    for (path, options, expected) in [
        (fixed.to_str().unwrap(), options(None, false), "denied"),
        ("file", options(None, true), "conflict"),
        ("file", options(Some("0123456789abcdef"), false), "conflict"),
        ("missing", options(Some("0123456789abcdef"), false), "conflict"),
        ("file", options(Some("0123456789abcde"), false), "invalid"),
        ("file", options(Some("0123456789abcdex"), false), "invalid"),
        ("dir", options(None, false), "invalid"),
        (".", options(None, false), "invalid"),
        ("dir/..", options(None, false), "invalid"),
        ("file/x", options(None, false), "invalid"),
        ("no/such/folder", options(None, false), "not_found"),
    ] {
        let error = kit.fs.write(&kit.at(path), b"y", &options).unwrap_err();
        assert_eq!(error_kind(&error), expected, "{path} {error}");
        assert!(error.hint.is_some(), "{path}");
    }
    assert_eq!(kit.get("file"), "x");
    assert!(kit.leftovers().is_empty());
}

#[test]
fn a_read_only_root_refuses_every_change() {
    let kit = FsFixture::new();
    let fixed = kit.folder.path().join("fixed");
    std::fs::create_dir(fixed.join("dir")).unwrap();
    std::fs::write(fixed.join("file"), "x").unwrap();
    kit.put("mine", "x");
    let at = |path: &str| kit.at(fixed.join(path).to_str().unwrap());
    let options = WriteOptions { mkdirs: true, ..Default::default() };
    for result in [
        kit.fs.write(&at("file"), b"y", &options).map(|_| ()),
        kit.fs.write(&at("a/b/c"), b"y", &options).map(|_| ()),
        kit.fs.append(&at("file"), b"y", &options).map(|_| ()),
        kit.fs.change(vec![Change::Remove { place: at("file"), if_hash: None }]).map(|_| ()),
        kit.fs.make_folder(&at("new/deep"), true).map(|_| ()),
        kit.fs.remove(&at("file")),
        kit.fs.remove_tree(&at("dir")).map(|_| ()),
        kit.fs.rename(&at("file"), &kit.at("got"), false).map(drop),
        kit.fs.rename(&kit.at("mine"), &at("got"), false).map(drop),
        kit.fs.copy(&kit.at("mine"), &at("got"), false),
        kit.fs.undo(&at("file")).map(|_| ()),
    ] {
        assert_eq!(error_kind(&result.unwrap_err()), "denied");
    }
    kit.fs.copy(&at("file"), &kit.at("copy"), false).unwrap();
    assert_eq!(std::fs::read_dir(&fixed).unwrap().count(), 2);
}

#[test]
fn protected_paths_are_refused_also_through_linked_folders() {
    let kit = FsFixture::new();
    for path in [".git/config", ".env", "sub/.git/hooks/x", ".docker/config.json", "plain"] {
        kit.put(path, "kept");
    }
    kit.link("way", ".git");
    kit.link("config", ".git/config");
    kit.link("sub/up", "..");
    let options = WriteOptions { mkdirs: true, ..Default::default() };
    for path in
        [".git/config", "way/config", "config", "sub/up/.env", ".git/new/deep", "way/new", "way/a/b", ".ENV"]
    {
        for result in [
            kit.fs.write(&kit.at(path), b"y", &options).map(|_| ()),
            kit.fs.append(&kit.at(path), b"y", &options).map(|_| ()),
            kit.fs.change(vec![put(&kit, "plain2", "x"), put(&kit, path, "x")]).map(|_| ()),
            kit.fs.copy(&kit.at("plain"), &kit.at(path), true),
        ] {
            let error = result.unwrap_err();
            assert!(matches!(error_kind(&error), "denied" | "not_found"), "{path} {error}");
        }
    }
    for result in [
        kit.fs.remove(&kit.at("way/config")),
        kit.fs.remove_tree(&kit.at(".git")).map(|_| ()),
        kit.fs.remove_tree(&kit.at("sub")).map(|_| ()),
        kit.fs.rename(&kit.at(".git"), &kit.at("git"), false).map(drop),
        kit.fs.rename(&kit.at(".docker"), &kit.at("docker"), false).map(drop),
        kit.fs.rename(&kit.at("plain"), &kit.at("way/plain"), false).map(drop),
        kit.fs.make_folder(&kit.at("way/new"), false).map(|_| ()),
        kit.fs.make_folder(&kit.at("node_modules/a/b"), true).map(|_| ()),
        kit.fs.undo(&kit.at("config")).map(|_| ()),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error_kind(&error), "denied", "{error}");
        assert!(error.hint.unwrap().contains("files.protected"));
    }
    // A directory may move with its protected contents, because they stay protected.
    kit.fs.rename(&kit.at("sub"), &kit.at("moved"), false).unwrap();
    assert_eq!(kit.get("moved/.git/hooks/x"), "kept");
    assert_eq!(kit.get(".git/config"), "kept");
    assert!(!kit.raw("plain2").exists() && !kit.raw("node_modules").exists() && kit.leftovers().is_empty());
}

#[test]
fn the_hubs_own_folder_is_neither_written_nor_read_when_it_is_inside() {
    let kit = FsFixture::with(|spec| {
        spec.protected = vec!["!**".into()];
        spec.state = Some(spec.roots[0].path.join("own"));
    });
    assert_eq!(
        error_kind(&kit.fs.write(&kit.at("own/fs/x"), b"", &WriteOptions::default()).unwrap_err()),
        "denied"
    );
    assert_eq!(error_kind(&kit.fs.remove_tree(&kit.at("own")).unwrap_err()), "denied");
    kit.link("way", "own/fs");
    assert_eq!(error_kind(&kit.fs.read(&kit.at("way/lock"), 10).unwrap_err()), "denied");
    assert_eq!(error_kind(&kit.fs.open_folder(&kit.at("way")).err().unwrap()), "denied");
    assert_eq!(error_kind(&kit.fs.copy(&kit.at("own"), &kit.at("mine"), false).unwrap_err()), "denied");
    for path in ["own/fs/lock", "way/lock", "own", "way"] {
        let walked = kit.fs.walk(&kit.at(path), &WalkOptions::default(), &|entry| panic!("{:?}", entry.path));
        assert_eq!(walked.map_err(|error| error_kind(&error)), Err("denied"), "{path}");
    }
}

#[test]
fn a_read_only_root_within_another_is_read_only_by_every_name() {
    let kit = FsFixture::with(|spec| {
        let inner = spec.roots[0].path.join("deep/inner");
        std::fs::create_dir_all(&inner).unwrap();
        spec.roots[1].path = inner;
    });
    kit.put("deep/inner/file", "kept");
    kit.put("deep/other", "x");
    kit.link("way", "deep/inner");
    let options = WriteOptions { mkdirs: true, ..Default::default() };
    for path in ["deep/inner/file", "way/file", "deep/inner/new/file", "deep/../deep/inner/file"] {
        let error = kit.fs.write(&kit.at(path), b"new", &options).unwrap_err();
        assert_eq!(error_kind(&error), "denied", "{path}");
        assert!(error.message.contains("`fixed` is read-only"), "{error}");
    }
    for denied in [
        kit.fs.rename(&kit.at("deep"), &kit.at("moved"), false).map(drop),
        kit.fs.rename(&kit.at("deep/inner/file"), &kit.at("file"), false).map(drop),
        kit.fs.rename(&kit.at("deep/other"), &kit.at("deep/inner/other"), false).map(drop),
        kit.fs.copy(&kit.at("deep/other"), &kit.at("deep/inner/other"), false),
        kit.fs.remove_tree(&kit.at("deep")).map(|_| ()),
        kit.fs.remove(&kit.at("deep/inner/file")),
    ] {
        assert_eq!(error_kind(&denied.unwrap_err()), "denied");
    }
    kit.fs.write(&kit.at("deep/other"), b"new", &options).unwrap();
    assert_eq!((kit.get("deep/inner/file"), kit.get("deep/other")), ("kept".into(), "new".into()));
}

#[test]
fn a_change_of_several_files_is_whole() {
    on_both_kinds_of_file_system(|| {
        let kit = FsFixture::new();
        for path in ["a", "b", "c"] {
            kit.put(path, "old");
        }
        set_mode(&kit, "a", 0o750);
        let mkdirs = WriteOptions { mkdirs: true, ..Default::default() };
        let changes = vec![
            put(&kit, "a", "new"),
            Change::Put { place: kit.at("x/y/d"), bytes: b"new".into(), mode: None, options: mkdirs },
            Change::Remove { place: kit.at("b"), if_hash: None },
            Change::Rename { from: kit.at("c"), to: kit.at("e") },
        ];
        let written = kit.fs.change(changes).unwrap();
        assert_eq!(written.iter().map(|one| one.created).collect::<Vec<_>>(), [false, true, false, false]);
        assert_eq!(
            (kit.get("a"), kit.get("x/y/d"), kit.get("e")),
            ("new".into(), "new".into(), "old".into())
        );
        assert!(!kit.raw("b").exists() && !kit.raw("c").exists() && kit.leftovers().is_empty());
        assert_eq!(mode(&kit, "a"), 0o750);
    });
}

#[test]
fn a_change_that_fails_in_its_third_file_changes_nothing() {
    on_both_kinds_of_file_system(|| {
        let kit = FsFixture::new();
        for path in ["a", "b", "c", "dir/x"] {
            kit.put(path, "old");
        }
        let wrong = WriteOptions { if_hash: Some("0123456789abcdef".into()), ..Default::default() };
        let mkdirs = WriteOptions { mkdirs: true, ..Default::default() };
        let deep = || Change::Put {
            place: kit.at("n/e/w"),
            bytes: b"x".into(),
            mode: None,
            options: mkdirs.clone(),
        };
        for third in [
            Change::Put { place: kit.at("c"), bytes: b"new".into(), mode: None, options: wrong.clone() },
            Change::Remove { place: kit.at("missing"), if_hash: None },
            Change::Rename { from: kit.at("c"), to: kit.at("dir") },
            Change::Rename { from: kit.at("missing"), to: kit.at("free") },
            put(&kit, "dir", "new"),
            put(&kit, ".git/config", "new"),
            put(&kit, "a", "twice"),
        ] {
            let changes = vec![
                put(&kit, "a", "new"),
                Change::Remove { place: kit.at("b"), if_hash: None },
                deep(),
                third,
            ];
            kit.fs.change(changes).unwrap_err();
            assert_eq!(
                (kit.get("a"), kit.get("b"), kit.get("c")),
                ("old".into(), "old".into(), "old".into())
            );
            assert!(!kit.raw("n").exists() && !kit.raw("free").exists() && kit.leftovers().is_empty());
        }
        assert_eq!(error_kind(&kit.fs.undo(&kit.at("a")).unwrap_err()), "not_found");
    });
}

/// The failure occurs only in the commit phase: the directory of the last file is the new name of the first.
#[test]
fn a_change_that_fails_while_names_are_changed_is_put_back() {
    on_both_kinds_of_file_system(|| {
        let kit = FsFixture::new();
        for path in ["a", "b", "dir/x"] {
            kit.put(path, "old");
        }
        let changes = vec![
            put(&kit, "a", "new"),
            put(&kit, "new", "new"),
            Change::Remove { place: kit.at("b"), if_hash: None },
            Change::Rename { from: kit.at("dir/x"), to: kit.at("moved") },
            // A directory cannot be moved into itself, which only the rename detects.
            Change::Rename { from: kit.at("dir"), to: kit.at("dir/sub") },
        ];
        let error = kit.fs.change(changes).unwrap_err();
        assert_eq!(error_kind(&error), "invalid", "{error}");
        assert_eq!(
            (kit.get("a"), kit.get("b"), kit.get("dir/x")),
            ("old".into(), "old".into(), "old".into())
        );
        assert!(!kit.raw("new").exists() && !kit.raw("moved").exists() && kit.leftovers().is_empty());
    });
}

#[test]
fn nothing_is_left_in_the_folder_of_the_hub_after_a_peaceful_end() {
    let kit = FsFixture::new();
    let own = kit.folder.path().join("state/fs");
    kit.fs.write(&kit.at("a"), b"x", &WriteOptions::default()).unwrap();
    let FsFixture { fs, folder } = kit;
    let count = || {
        std::fs::read_dir(&own)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("intents-"))
            .count()
    };
    let second = Workspace::open(spec(folder.path())).unwrap();
    assert_eq!(count(), 2, "a living workspace keeps its own");
    drop((fs, second));
    assert_eq!(count(), 0);
}

#[test]
fn roots_are_checked_when_they_are_opened() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let root = |name: &str, path: &str| RootSpec {
        name: name.into(),
        path: folder.path().join(path),
        alias_path: None,
        writable: true,
    };
    for (roots, expected) in [
        (vec![root("a", "missing")], "not_found"),
        (vec![root("a", "file")], "invalid"),
        (vec![root("", ".")], "invalid"),
        (vec![root("a/b", ".")], "invalid"),
        (vec![root("..", ".")], "invalid"),
        (vec![root("a\0", ".")], "invalid"),
        (vec![root(&"x".repeat(300), ".")], "invalid"),
        (vec![root("a", "."), root("a", ".")], "invalid"),
    ] {
        let error = Workspace::open(WorkspaceSpec { roots, ..Default::default() }).err().unwrap();
        assert_eq!(error_kind(&error), expected, "{error}");
        assert!(error.hint.is_some());
    }
}

#[test]
fn without_a_folder_of_its_own_the_hub_writes_all_the_same() {
    let kit = FsFixture::with(|spec| spec.state = None);
    let fs: &Fs<Write> = &kit.fs;
    let written = fs.write(&fs.place(&WorkPath::from("a")).unwrap(), b"x", &WriteOptions::default()).unwrap();
    assert!(!written.undo && fs.workspace().state().is_none());
    assert_eq!(error_kind(&fs.undo(&kit.at("a")).unwrap_err()), "not_found");
}
