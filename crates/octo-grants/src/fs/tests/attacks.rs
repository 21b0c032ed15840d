//! Attempts to escape the workspace, each of which must fail.

use super::{FsFixture, error_kind};
use crate::fs::{Change, HardLinks, WorkPath, WriteOptions};
use rustix::fs::{CWD, FileType, Mode};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

/// Every operation that takes a path, with its result.
fn every_way(kit: &FsFixture, path: &str) -> Vec<(&'static str, &'static str)> {
    let place = kit.at(path);
    let fs = &kit.fs;
    let free = kit.at("free");
    let options = WriteOptions::default();
    let put = Change::Put { place: place.clone(), bytes: b"x".into(), mode: None, options: options.clone() };
    let answers = [
        ("stat", fs.stat(&place).map(|_| ())),
        ("open", fs.open_file(&place).map(|_| ())),
        ("read", fs.read(&place, 1_000).map(|_| ())),
        ("list", fs.open_folder(&place).map(|_| ())),
        ("write", fs.write(&place, b"x", &options).map(|_| ())),
        ("append", fs.append(&place, b"x", &options).map(|_| ())),
        ("change", fs.change(vec![put]).map(|_| ())),
        ("copy from", fs.copy(&place, &free, false)),
        ("copy to", fs.copy(&kit.at("file"), &place, true)),
        ("undo", fs.undo(&place).map(|_| ())),
    ];
    answers
        .into_iter()
        .map(|(way, answer)| (way, answer.map_or_else(|error| error_kind(&error), |()| "ok")))
        .collect()
}

#[test]
fn sec_fs_01_paths_that_leave_are_refused_by_every_way() {
    let kit = FsFixture::new();
    kit.put("file", "inside");
    kit.put("dir/file", "inside");
    std::fs::write(kit.folder.path().join("ws-evil/x"), "SECRET").unwrap();
    let real = kit.root_path().to_str().unwrap().to_owned();
    for path in [
        "../ws-evil/x",
        "../outside/secret",
        "dir/../../outside/secret",
        "dir/../dir/../../ws/../outside/secret",
        "/host/ws/../ws-evil/x",
        &format!("{real}/../ws-evil/x"),
        &format!("{real}/../ws/../ws-evil/x"),
    ] {
        for (way, answer) in every_way(&kit, path) {
            assert_eq!(answer, "denied", "{way} {path}");
        }
    }
    for path in ["%2e%2e/outside/secret", "file ", "file.", "..%2foutside/secret", "dir\\..\\..\\outside"] {
        assert_eq!(error_kind(&kit.fs.read(&kit.at(path), 10).unwrap_err()), "not_found", "{path}");
    }
    assert_eq!(error_kind(&kit.fs.read(&kit.at("."), 10).unwrap_err()), "invalid");
    assert_eq!(std::fs::read(kit.folder.path().join("ws-evil/x")).unwrap(), b"SECRET");
}

#[test]
fn sec_fs_10_links_to_the_outside_are_refused_by_every_way() {
    let kit = FsFixture::new();
    kit.put("file", "inside");
    kit.put("dir/x", "x");
    kit.link("absolute", kit.outside("secret"));
    kit.link("relative", "../outside/secret");
    kit.link("folder", "../outside");
    kit.link("dir/up", "../..");
    for path in ["absolute", "relative", "folder/secret", "dir/up/outside/secret", "folder/new"] {
        for (way, answer) in every_way(&kit, path) {
            assert_eq!(answer, "denied", "{way} {path}");
        }
    }
    assert_eq!(error_kind(&kit.fs.open_folder(&kit.at("folder")).err().unwrap()), "denied");
    assert_eq!(error_kind(&kit.fs.make_folder(&kit.at("folder/new/deep"), true).unwrap_err()), "denied");
    assert_eq!(error_kind(&kit.fs.remove(&kit.at("folder/secret")).unwrap_err()), "denied");
    assert_eq!(error_kind(&kit.fs.remove_tree(&kit.at("folder")).unwrap_err()), "invalid");
    assert_eq!(
        error_kind(&kit.fs.rename(&kit.at("folder/secret"), &kit.at("mine"), false).unwrap_err()),
        "denied"
    );
    assert_eq!(
        error_kind(&kit.fs.rename(&kit.at("file"), &kit.at("folder/mine"), false).unwrap_err()),
        "denied"
    );
    // The links themselves may be inspected, moved and removed; their targets stay unchanged.
    assert_eq!(kit.fs.link_target(&kit.at("relative")).unwrap(), "../outside/secret");
    kit.fs.rename(&kit.at("relative"), &kit.at("dir/moved"), false).unwrap();
    kit.fs.remove(&kit.at("absolute")).unwrap();
    kit.fs.remove(&kit.at("folder")).unwrap();
    assert_eq!(std::fs::read(kit.outside("secret")).unwrap(), b"SECRET");
    assert_eq!(std::fs::read_dir(kit.outside("")).unwrap().count(), 1);
}

#[test]
fn sec_fs_11_a_write_through_a_dangling_link_creates_nothing() {
    let kit = FsFixture::new();
    kit.put("file", "inside");
    kit.link("absolute", kit.outside("new"));
    kit.link("relative", "../outside/new");
    kit.link("folder", "../outside/newdir");
    kit.link("here", "nothing");
    let mkdirs = WriteOptions { mkdirs: true, ..Default::default() };
    for path in ["absolute", "relative", "folder/x", "here"] {
        for options in [WriteOptions::default(), mkdirs.clone()] {
            let place = kit.at(path);
            assert_eq!(error_kind(&kit.fs.write(&place, b"x", &options).unwrap_err()), "denied", "{path}");
            assert_eq!(error_kind(&kit.fs.append(&place, b"x", &options).unwrap_err()), "denied", "{path}");
            assert_eq!(
                error_kind(&kit.fs.copy(&kit.at("file"), &place, true).unwrap_err()),
                "denied",
                "{path}"
            );
        }
    }
    assert_eq!(error_kind(&kit.fs.make_folder(&kit.at("folder"), true).unwrap_err()), "denied");
    assert_eq!(std::fs::read_dir(kit.outside("")).unwrap().count(), 1);
    assert!(!kit.raw("nothing").exists() && kit.leftovers().is_empty());
}

#[test]
fn sec_fs_12_chains_loops_and_magic_links_end() {
    let kit = FsFixture::new();
    kit.put("end", "end");
    kit.put("file", "inside");
    kit.link("c0", "end");
    for at in 1..=41 {
        kit.link(&format!("c{at}"), format!("c{}", at - 1));
    }
    for at in 0..=41 {
        let answer = kit.fs.read(&kit.at(&format!("c{at}")), 10);
        // The kernel follows forty links.
        assert_eq!(
            answer.map_or_else(|error| error_kind(&error), |_| "ok"),
            if at < 40 { "ok" } else { "denied" },
            "{at}"
        );
    }
    kit.fs.write(&kit.at("c39"), b"through", &WriteOptions::default()).unwrap();
    assert_eq!(kit.get("end"), "through");
    kit.link("a", "b");
    kit.link("b", "a");
    kit.link("self", "self");
    kit.link("proc", "/proc/self/root");
    kit.link("fd", "/proc/self/fd/0");
    kit.link("dev", "/dev/fd/0");
    for path in ["a", "self", "self/x", "proc", "proc/etc/passwd", "fd", "dev"] {
        for (way, answer) in every_way(&kit, path) {
            assert_eq!(answer, "denied", "{way} {path}");
        }
    }
    assert_eq!(error_kind(&kit.fs.place(&WorkPath::from("/proc/self/root/etc")).unwrap_err()), "denied");
}

#[test]
fn sec_fs_13_hard_links_follow_the_setting() {
    for setting in [HardLinks::Allow, HardLinks::Refuse] {
        let kit = FsFixture::with(|spec| spec.hard_links = setting);
        kit.put("single", "x");
        std::fs::hard_link(kit.outside("secret"), kit.raw("hard")).unwrap();
        let hard = kit.at("hard");
        let options = WriteOptions::default();
        let answers = [
            kit.fs.read(&hard, 10).map(|_| ()),
            kit.fs.append(&hard, b"x", &options).map(|_| ()),
            kit.fs.copy(&kit.at("single"), &hard, true),
        ];
        for answer in answers {
            match setting {
                HardLinks::Allow => answer.unwrap(),
                HardLinks::Refuse => {
                    let error = answer.unwrap_err();
                    assert_eq!(error_kind(&error), "denied");
                    assert!(error.hint.unwrap().contains("files.hard_links"));
                }
            }
        }
        // A replaced file gets a new inode, so the other name never changes.
        assert_eq!(std::fs::read(kit.outside("secret")).unwrap(), b"SECRET");
        for _ in 0..3 {
            kit.fs.append(&kit.at("single"), b"y", &options).unwrap();
        }
    }
}

#[test]
fn sec_fs_14_fifos_sockets_and_devices_are_refused_at_once() {
    let kit = FsFixture::new();
    kit.put("file", "x");
    rustix::fs::mkfifoat(CWD, kit.raw("fifo"), Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(kit.raw("socket")).unwrap();
    let mut names = vec!["fifo", "socket"];
    // Only root can make devices.
    let device = rustix::fs::makedev(1, 5);
    if rustix::fs::mknodat(CWD, kit.raw("zero"), FileType::CharacterDevice, Mode::RWXU, device).is_ok() {
        names.push("zero");
    }
    for name in names {
        let begun = Instant::now();
        for (way, answer) in every_way(&kit, name) {
            let expected = match way {
                "stat" => "ok",
                "list" => "invalid",
                "undo" => "not_found",
                _ => "denied",
            };
            assert_eq!(answer, expected, "{way} {name}");
        }
        assert!(begun.elapsed() < Duration::from_millis(100), "{name} took {:?}", begun.elapsed());
    }
}

#[test]
fn sec_fs_32_a_huge_sparse_file_is_refused_or_read_in_part() {
    let kit = FsFixture::new();
    kit.put("huge", "begin");
    let size = 10 << 30;
    std::fs::File::options().write(true).open(kit.raw("huge")).unwrap().set_len(size).unwrap();
    let error = kit.fs.read(&kit.at("huge"), 1 << 20).unwrap_err();
    assert_eq!(error_kind(&error), "too_large");
    let opened = kit.fs.open_file(&kit.at("huge")).unwrap();
    assert_eq!(opened.stat.size, size);
    let mut bytes = [1; 4_096];
    opened.file.read_exact_at(&mut bytes, size - 4_096).unwrap();
    assert_eq!(bytes, [0; 4_096]);
}

#[test]
fn a_file_that_grows_while_it_is_read_stays_within_the_cap() {
    let kit = FsFixture::new();
    kit.put("log", &"x".repeat(100));
    assert_eq!(kit.fs.read(&kit.at("log"), 100).unwrap().0.len(), 100);
    assert_eq!(error_kind(&kit.fs.read(&kit.at("log"), 99).unwrap_err()), "too_large");
    // Files of /proc report size 0 but have content.
    if let Ok(proc) = std::fs::metadata("/proc/self/status") {
        assert_eq!(proc.size(), 0);
        let kit = FsFixture::with(|spec| spec.roots[0].path = "/proc/self".into());
        let own = kit.fs.place(&WorkPath::from("status")).unwrap();
        assert_eq!(error_kind(&kit.fs.read(&own, 16).unwrap_err()), "too_large");
    }
}

#[test]
fn a_root_that_was_moved_is_refused() {
    let kit = FsFixture::new();
    kit.put("file", "x");
    std::fs::rename(kit.raw(""), kit.folder.path().join("elsewhere")).unwrap();
    for path in ["file", "new"] {
        assert_eq!(
            error_kind(&kit.fs.write(&kit.at(path), b"y", &WriteOptions::default()).unwrap_err()),
            "denied"
        );
    }
    assert_eq!(error_kind(&kit.fs.open_file(&kit.at("file")).err().unwrap()), "denied");
    assert_eq!(std::fs::read(kit.folder.path().join("elsewhere/file")).unwrap(), b"x");
}
