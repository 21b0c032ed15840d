//! Directory trees: created, copied, moved, removed.

use super::{FsFixture, error_kind};
use crate::fs::EntryKind;
use rustix::fs::{CWD, Mode};
use std::os::unix::fs::PermissionsExt;

#[test]
fn folders_are_made_with_and_without_parents() {
    let kit = FsFixture::new();
    kit.put("file", "x");
    kit.put("real/x", "x");
    kit.link("link", "real");
    for (path, parents, expected) in [
        ("a", false, Ok(true)),
        ("a", false, Ok(false)),
        ("b/c/d", true, Ok(true)),
        ("b/c/d", true, Ok(false)),
        ("link/new/deep", true, Ok(true)),
        (".", true, Ok(false)),
        ("missing/x", false, Err("not_found")),
        ("file", true, Err("conflict")),
        ("file/x", true, Err("invalid")),
        ("../x", true, Err("denied")),
    ] {
        let answer = kit.fs.make_folder(&kit.at(path), parents);
        assert_eq!(answer.map_err(|error| error_kind(&error)), expected, "{path}");
    }
    assert!(kit.raw("real/new/deep").is_dir());
}

#[test]
fn a_tree_is_removed_without_what_its_links_point_to() {
    let kit = FsFixture::new();
    for path in ["tree/a/b/c", "tree/a/d", "tree/e", "other/file"] {
        kit.put(path, "x");
    }
    kit.link("tree/out", kit.outside(""));
    kit.link("tree/other", "../other");
    rustix::fs::mkfifoat(CWD, kit.raw("tree/fifo"), Mode::RWXU).unwrap();
    assert_eq!(error_kind(&kit.fs.remove(&kit.at("tree")).unwrap_err()), "conflict");
    assert_eq!(error_kind(&kit.fs.remove_tree(&kit.at("tree/e")).unwrap_err()), "invalid");
    assert_eq!(error_kind(&kit.fs.remove_tree(&kit.at(".")).unwrap_err()), "invalid");
    assert_eq!(kit.fs.remove_tree(&kit.at("tree")).unwrap(), 9);
    assert!(!kit.raw("tree").exists() && kit.raw("other/file").exists() && kit.outside("secret").exists());
}

#[test]
fn a_tree_with_something_protected_in_it_stays_whole() {
    let kit = FsFixture::new();
    for path in ["tree/a/b", "tree/deep/.env", "tree/z"] {
        kit.put(path, "x");
    }
    let error = kit.fs.remove_tree(&kit.at("tree")).unwrap_err();
    assert!(error.message.contains("`tree/deep/.env` is protected by `**/.env`"), "{error}");
    assert!(kit.raw("tree/a/b").exists() && kit.raw("tree/z").exists());
}

#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let kit = FsFixture::new();
    let deep = "d/".repeat(300);
    std::fs::create_dir_all(kit.raw(&deep)).unwrap();
    assert_eq!(error_kind(&kit.fs.remove_tree(&kit.at("d")).unwrap_err()), "too_large");
    assert_eq!(error_kind(&kit.fs.copy(&kit.at("d"), &kit.at("e"), false).unwrap_err()), "too_large");
    assert!(kit.raw(&deep).is_dir() && !kit.raw("e").exists());
}

#[test]
fn a_folder_is_copied_whole_with_modes_and_links() {
    let kit = FsFixture::new();
    for path in ["tree/a/run", "tree/b", "target-of-link"] {
        kit.put(path, path);
    }
    std::fs::set_permissions(kit.raw("tree/a/run"), std::fs::Permissions::from_mode(0o755)).unwrap();
    kit.link("tree/inner", "a/run");
    kit.link("tree/up", "../target-of-link");
    kit.fs.copy(&kit.at("tree"), &kit.at("copy"), false).unwrap();
    assert_eq!((kit.get("copy/a/run"), kit.get("copy/b")), ("tree/a/run".into(), "tree/b".into()));
    assert_eq!(std::fs::metadata(kit.raw("copy/a/run")).unwrap().permissions().mode() & 0o777, 0o755);
    assert_eq!(kit.fs.link_target(&kit.at("copy/inner")).unwrap(), "a/run");
    assert_eq!(kit.fs.link_stat(&kit.at("copy/up")).unwrap().kind, EntryKind::Symlink);
    for (to, expected) in [("copy", "conflict"), ("tree/in/itself", "not_found"), ("tree/itself", "invalid")]
    {
        assert_eq!(
            error_kind(&kit.fs.copy(&kit.at("tree"), &kit.at(to), true).unwrap_err()),
            expected,
            "{to}"
        );
    }
}

#[test]
fn a_copy_that_is_refused_leaves_nothing() {
    for spoil in ["outside", "dangling", "fifo", "shallower", "protected"] {
        let kit = FsFixture::new();
        kit.put("deep/tree/a/b", "x");
        let mut to = "copy";
        match spoil {
            "outside" => kit.link("deep/tree/out", "../../../outside/secret"),
            "dangling" => kit.link("deep/tree/out", "nothing"),
            "fifo" => rustix::fs::mkfifoat(CWD, kit.raw("deep/tree/fifo"), Mode::RWXU).unwrap(),
            // Stays beneath the root here, and would leave it at the location of the copy.
            "shallower" => kit.link("deep/tree/out", "../../deep"),
            _ => {
                kit.put("deep/tree/config.json", "x");
                to = ".docker";
            }
        }
        let error = kit.fs.copy(&kit.at("deep/tree"), &kit.at(to), false).unwrap_err();
        assert_eq!(error_kind(&error), "denied", "{spoil}: {error}");
        assert!(!kit.raw(to).exists() && kit.leftovers().is_empty(), "{spoil}");
    }
}

#[test]
fn files_are_copied_with_their_mode() {
    let kit = FsFixture::new();
    kit.put("a", "content");
    kit.put("b", "old");
    std::fs::set_permissions(kit.raw("a"), std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(error_kind(&kit.fs.copy(&kit.at("a"), &kit.at("b"), false).unwrap_err()), "conflict");
    assert_eq!(error_kind(&kit.fs.copy(&kit.at("a"), &kit.at("a"), true).unwrap_err()), "invalid");
    kit.fs.copy(&kit.at("a"), &kit.at("b"), true).unwrap();
    assert_eq!(kit.get("b"), "content");
    assert_eq!(std::fs::metadata(kit.raw("b")).unwrap().permissions().mode() & 0o777, 0o700);
    kit.fs.undo(&kit.at("b")).unwrap();
    assert_eq!(kit.get("b"), "old");
}

#[test]
fn renames_keep_what_has_the_new_name_unless_told() {
    let kit = FsFixture::new();
    for path in ["a", "b", "dir/x", "full/y"] {
        kit.put(path, path);
    }
    std::fs::create_dir(kit.raw("empty")).unwrap();
    for (from, to, overwrite, expected) in [
        ("a", "b", false, Err("conflict")),
        ("missing", "c", false, Err("not_found")),
        ("a", "no/folder", false, Err("not_found")),
        ("a", "dir", true, Err("invalid")),
        ("dir", "full", true, Err("conflict")),
        ("dir", "dir/inside", false, Err("invalid")),
        (".", "x", false, Err("invalid")),
        ("a", "../a", false, Err("denied")),
        ("a", "b", true, Ok(())),
        ("dir", "empty", true, Ok(())),
    ] {
        let answer = kit.fs.rename(&kit.at(from), &kit.at(to), overwrite).map(drop);
        assert_eq!(answer.map_err(|error| error_kind(&error)), expected, "{from} {to}");
    }
    assert_eq!((kit.get("b"), kit.get("empty/x")), ("a".into(), "dir/x".into()));
}

/// Memory and disk are two file systems on most machines; elsewhere this tests nothing.
#[test]
fn a_rename_to_another_file_system_is_a_copy_and_a_removal() {
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
    let kit = FsFixture::with(|spec| {
        spec.roots[1].path = memory.path().into();
        spec.roots[1].writable = true;
    });
    kit.put("file", "content");
    kit.put("dir/a/b", "content");
    let to = |path: &str| kit.at(memory.path().join(path).to_str().unwrap());
    kit.fs.rename(&kit.at("file"), &to("file"), false).unwrap();
    kit.fs.rename(&kit.at("dir"), &to("dir"), false).unwrap();
    assert_eq!(std::fs::read(memory.path().join("file")).unwrap(), b"content");
    assert_eq!(std::fs::read(memory.path().join("dir/a/b")).unwrap(), b"content");
    assert!(!kit.raw("file").exists() && !kit.raw("dir").exists() && kit.leftovers().is_empty());
    // What cannot be removed is not copied first.
    kit.put("project/.git/config", "kept");
    let error = kit.fs.rename(&kit.at("project"), &to("project"), false).unwrap_err();
    assert!(error.message.contains("is protected by"), "{error}");
    assert!(kit.raw("project/.git/config").exists() && !memory.path().join("project").exists());
}

#[test]
fn nothing_is_moved_onto_itself() {
    let kit = FsFixture::new();
    kit.put("a", "x");
    std::fs::hard_link(kit.raw("a"), kit.raw("b")).unwrap();
    kit.link("here", ".");
    for to in ["a", "here/a", "b"] {
        let error = kit.fs.rename(&kit.at("a"), &kit.at(to), true).unwrap_err();
        assert_eq!(error_kind(&error), "invalid", "{to}");
    }
    assert!(kit.raw("a").exists() && kit.raw("b").exists());
}
