//! Concurrent renames by others. Nothing outside the root may be read or written.

use super::{FsFixture, error_kind};
use crate::fs::{Change, Fs, Write, WriteOptions};
use rustix::fs::{CWD, RenameFlags};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn exchange(left: &PathBuf, right: &PathBuf) {
    rustix::fs::renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE).unwrap();
}

/// Attempts and their results.
#[derive(Default)]
struct Tally {
    attempts: AtomicU64,
    succeeded: AtomicU64,
    leaked: AtomicU64,
}

/// Reads and writes paths that are swapped continuously, and detects every byte from outside.
fn hammer(fs: &Fs<Write>, kit: &FsFixture, tally: &Tally, until: Instant, worker: usize) {
    let options = WriteOptions::default();
    let mut turn = worker;
    while Instant::now() < until {
        turn += 1;
        let path = ["leaf", "dir/secret", "dir/sub/../secret", "far/sub/../../far/secret"][turn % 4];
        let place = kit.at(path);
        tally.attempts.fetch_add(1, Ordering::Relaxed);
        // Writes cost an fsync, so most attempts are reads.
        let result = match turn / 4 % 16 {
            0 => fs.write(&place, b"inside", &options).map(|_| ()),
            1 => fs.append(&place, b"", &options).map(|_| ()),
            2 => fs.stat(&place).map(|_| ()),
            _ => fs.read(&place, 100).map(|(bytes, _)| {
                if bytes.starts_with(b"SECRET") {
                    tally.leaked.fetch_add(1, Ordering::Relaxed);
                }
            }),
        };
        if result.is_ok() {
            tally.succeeded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn swap_race(time: Duration) -> (u64, u64) {
    let kit = FsFixture::new();
    for path in ["leaf", "dir/secret", "dir/sub/x", "far/secret", "far/sub/x"] {
        kit.put(path, "inside");
    }
    kit.link("leaf-link", "../outside/secret");
    kit.link("dir-link", "../outside");
    std::fs::create_dir_all(kit.outside("deep/sub")).unwrap();
    std::fs::create_dir_all(kit.outside("far")).unwrap();
    std::fs::write(kit.outside("far/secret"), "SECRET").unwrap();
    let (tally, stop) = (Tally::default(), AtomicBool::new(false));
    let until = Instant::now() + time;
    let pairs = [
        (kit.raw("leaf"), kit.raw("leaf-link")),
        (kit.raw("dir"), kit.raw("dir-link")),
        // A directory that is moved out of the root while a path is inside of it.
        (kit.raw("far/sub"), kit.outside("deep/sub")),
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                pairs.iter().for_each(|(left, right)| exchange(left, right));
                std::thread::yield_now();
            }
        });
        let workers: Vec<_> = (0..8)
            .map(|worker| {
                scope.spawn({
                    let (kit, tally) = (&kit, &tally);
                    move || hammer(&kit.fs, kit, tally, until, worker)
                })
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(tally.leaked.load(Ordering::Relaxed), 0, "outside content was read");
    for path in ["secret", "far/secret"] {
        assert_eq!(std::fs::read(kit.outside(path)).unwrap(), b"SECRET", "outside content was written");
    }
    assert!(super::leftovers(&kit.outside("")).is_empty(), "something was created outside");
    (tally.attempts.load(Ordering::Relaxed), tally.succeeded.load(Ordering::Relaxed))
}

#[test]
fn sec_fs_20_swapped_leaves_and_parents_lead_nowhere_outside() {
    let (attempts, succeeded) = swap_race(Duration::from_secs(2));
    assert!(attempts > 500 && succeeded > 50, "{succeeded} of {attempts}: the race was not run");
}

#[test]
#[ignore = "takes a minute"]
fn sec_fs_20_swapped_leaves_and_parents_for_a_minute() {
    let (attempts, succeeded) = swap_race(Duration::from_secs(60));
    eprintln!("{attempts} attempts, {succeeded} succeeded");
    assert!(attempts >= 100_000 && succeeded > 1_000, "{succeeded} of {attempts}");
}

#[test]
fn sec_fs_21_trees_that_are_swapped_while_copied_moved_and_removed_stay_inside() {
    let kit = FsFixture::new();
    for at in 0..20 {
        kit.put(&format!("tree/d{at}/file"), "inside");
    }
    kit.put("tree/sub/secret", "inside");
    kit.link("sub-link", "../outside");
    let pairs = [(kit.raw("tree/sub"), kit.raw("sub-link"))];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // A worker may have it under another name at this moment.
                let _ = rustix::fs::renameat_with(CWD, &pairs[0].0, CWD, &pairs[0].1, RenameFlags::EXCHANGE);
            }
        });
        let until = Instant::now() + Duration::from_millis(1_500);
        let mut copies = 0;
        while Instant::now() < until {
            if kit.fs.copy(&kit.at("tree"), &kit.at("copy"), false).is_ok() {
                copies += 1;
                let content = std::fs::read_to_string(kit.raw("copy/sub/secret"));
                assert!(!content.is_ok_and(|text| text == "SECRET"), "outside content was copied");
                kit.fs.rename(&kit.at("copy"), &kit.at("moved"), false).unwrap();
                kit.fs.remove_tree(&kit.at("moved")).unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
        assert!(copies > 0, "no copy succeeded, so nothing was tried");
    });
    assert_eq!(std::fs::read(kit.outside("secret")).unwrap(), b"SECRET");
    let _ = kit.fs.remove_tree(&kit.at("tree"));
    assert_eq!(std::fs::read(kit.outside("secret")).unwrap(), b"SECRET");
    assert!(kit.leftovers().is_empty());
}

#[test]
fn sec_fs_22_a_change_by_somebody_else_is_a_conflict() {
    let kit = FsFixture::new();
    kit.put("file", "old");
    let options = WriteOptions::default();
    let seen = kit.fs.write(&kit.at("file"), b"mine", &options).unwrap().hash;
    kit.put("file", "theirs");
    let expecting = WriteOptions { if_hash: Some(seen.clone()), ..Default::default() };
    for error in [
        kit.fs.write(&kit.at("file"), b"again", &expecting).unwrap_err(),
        kit.fs.append(&kit.at("file"), b"again", &expecting).unwrap_err(),
        kit.fs
            .change(vec![Change::Remove { place: kit.at("file"), if_hash: Some(seen.clone()) }])
            .unwrap_err(),
        kit.fs.undo(&kit.at("file")).unwrap_err(),
    ] {
        assert_eq!(error_kind(&error), "conflict", "{error}");
    }
    assert_eq!(kit.get("file"), "theirs");
}

/// Some use the file itself and some a link to it; no change may get lost under a write with an expected hash.
#[test]
fn sec_fs_22_no_update_is_lost_between_two_writers_who_check() {
    let kit = FsFixture::new();
    kit.put("count", "0");
    kit.link("link", "count");
    std::thread::scope(|scope| {
        for path in ["count", "link", "count", "link"] {
            let kit = &kit;
            scope.spawn(move || {
                let mut done = 0;
                while done < 25 {
                    let place = kit.at(path);
                    let (bytes, _) = kit.fs.read(&place, 100).unwrap();
                    let hash = {
                        let mut hashing = crate::fs::hash::HashingWriter::new(std::io::sink());
                        std::io::Write::write_all(&mut hashing, &bytes).unwrap();
                        hashing.finish()
                    };
                    let next = String::from_utf8(bytes).unwrap().parse::<u32>().unwrap() + 1;
                    let options = WriteOptions { if_hash: Some(hash), ..Default::default() };
                    match kit.fs.write(&place, next.to_string().as_bytes(), &options) {
                        Ok(_) => done += 1,
                        Err(error) => assert_eq!(error_kind(&error), "conflict"),
                    }
                }
            });
        }
    });
    assert_eq!(kit.get("count"), "100");
    assert!(kit.leftovers().is_empty());
}

#[test]
fn of_sixteen_who_create_the_same_file_exactly_one_wins() {
    let kit = FsFixture::new();
    let options = WriteOptions { create_new: true, mkdirs: true, ..Default::default() };
    for round in 0..10 {
        let place = kit.at(&format!("new/{round}/file"));
        let won = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for worker in 0..16 {
                let (kit, place, options, won) = (&kit, &place, &options, &won);
                scope.spawn(move || match kit.fs.write(place, format!("{worker}").as_bytes(), options) {
                    Ok(written) => {
                        assert!(written.created);
                        won.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(error) => assert_eq!(error_kind(&error), "conflict", "{error}"),
                });
            }
        });
        assert_eq!(won.load(Ordering::Relaxed), 1);
    }
    assert!(kit.leftovers().is_empty());
}
