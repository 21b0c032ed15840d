//! A process that is killed at any moment leaves every file old or new, and nothing to clean up after the next start.

use super::{FsFixture, leftovers, spec};
use crate::fs::{Change, Fs, WorkPath, Workspace, Write, WriteOptions, temp_names};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

const CRASH_FOLDER_VAR: &str = "OCTO_CRASH_FOLDER";
const CRASH_POINT_VAR: &str = "OCTO_CRASH_MOMENT";
const PLAIN_RENAME_VAR: &str = "OCTO_CRASH_PLAIN";
const FILES: usize = 2;

/// Content of each turn, long enough to take more than one write; complete only if it ends as it starts.
fn content(turn: u64) -> Vec<u8> {
    format!("{turn:020}\n").repeat(2_000).into_bytes()
}

fn turn_of(bytes: &[u8]) -> u64 {
    let text = std::str::from_utf8(bytes).unwrap();
    let turn = text.lines().next().expect("an empty file").parse().unwrap();
    assert_eq!(bytes, content(turn), "a torn file");
    turn
}

/// A change of every kind at once: replaced, created in a new directory or removed again, renamed.
fn change(fs: &Fs<Write>, turn: u64) {
    let at = |path: &str| fs.place(&WorkPath::from(path)).unwrap();
    let options = WriteOptions { mkdirs: true, ..Default::default() };
    let put = |path: &str| Change::Put {
        place: at(path),
        bytes: content(turn),
        mode: None,
        options: options.clone(),
    };
    let mut changes: Vec<Change> = (0..FILES).map(|file| put(&format!("many/{file}"))).collect();
    changes.push(match turn % 2 {
        1 => put("new/deep/file"),
        _ => Change::Remove { place: at("new/deep/file"), if_hash: None },
    });
    let (from, to) = if turn % 2 == 1 { ("left", "right") } else { ("right", "left") };
    changes.push(Change::Rename { from: at(from), to: at(to) });
    fs.change(changes).unwrap();
}

/// What the process to be killed does. A test, so that it can be started by name.
#[test]
#[ignore = "started and killed by other tests"]
fn writes_until_it_is_killed() {
    let Some(folder) = std::env::var_os(CRASH_FOLDER_VAR) else { return };
    let fs: Fs<Write> = Fs::new(Workspace::open(spec(Path::new(&folder))).unwrap());
    let at = |path: &str| fs.place(&WorkPath::from(path)).unwrap();
    temp_names::FORCE_PLAIN_RENAME.set(std::env::var_os(PLAIN_RENAME_VAR).is_some());
    println!("#");
    let last = match std::env::var(CRASH_POINT_VAR) {
        Ok(moment) => {
            temp_names::dying::POINTS_LEFT.store(moment.parse().unwrap(), Ordering::SeqCst);
            2
        }
        Err(_) => u64::MAX,
    };
    for turn in 1..=last {
        if last > 2 {
            fs.write(&at("single"), &content(turn), &WriteOptions::default()).unwrap();
        }
        change(&fs, turn);
        if turn % 4 == 0 {
            fs.copy(&at("many"), &at("copy"), false).unwrap();
            fs.remove_tree(&at("copy")).unwrap();
        }
        println!("#");
    }
}

fn start(folder: &Path, variables: &[(&str, String)]) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "fs::tests::crashes::writes_until_it_is_killed", "--ignored", "--nocapture"])
        .env(CRASH_FOLDER_VAR, folder)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the process has reported this many completed turns.
fn wait_for(child: &mut Child, mut turns: usize) {
    let out = child.stdout.as_mut().unwrap();
    while turns > 0 {
        let mut byte = [0];
        assert_eq!(out.read(&mut byte).unwrap(), 1, "it has ended by itself");
        turns -= usize::from(byte[0] == b'#');
    }
}

fn prepared() -> tempfile::TempDir {
    let kit = FsFixture::new();
    let first = String::from_utf8(content(0)).unwrap();
    kit.put("single", &first);
    (0..FILES).for_each(|file| kit.put(&format!("many/{file}"), &first));
    kit.put("left", "mark");
    let FsFixture { fs, folder } = kit;
    drop(fs);
    folder
}

/// What a crash has left, before and after the next start.
struct CrashState {
    /// Temporary names left by the crash.
    left: usize,
    /// The files of one change were from different turns.
    half: bool,
    turn: u64,
}

fn crash_state(folder: &Path) -> CrashState {
    let ws = folder.join("ws");
    let turn = |path: &str| turn_of(&std::fs::read(ws.join(path)).unwrap());
    let turns = || (0..FILES).map(|file| turn(&format!("many/{file}"))).collect::<Vec<u64>>();
    let (before, left) = (turns(), leftovers(&ws).len());
    turn("single");
    drop(Workspace::open(spec(folder)).unwrap());
    let after = turns();
    assert!(
        after.iter().all(|turn| *turn == after[0]),
        "a half-done change stayed: {before:?} became {after:?}"
    );
    turn("single");
    assert_eq!(leftovers(&ws), Vec::<PathBuf>::new());
    let there = |path: &str| ws.join(path).exists();
    let odd = after[0] % 2 == 1;
    assert_eq!((there("new/deep/file"), there("right")), (odd, odd), "after turn {}", after[0]);
    assert_ne!(there("left"), odd);
    assert!(odd || after[0] > 0 || !there("new"), "a folder of a change that was not made");
    let own = std::fs::read_dir(folder.join("state/fs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(own.filter(|name| name != "undo" && name != "lock").count(), 0, "intents are left");
    let undo =
        std::fs::read_dir(folder.join("state/fs/undo")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(undo.filter(|name| name.to_string_lossy().starts_with("new-")).count(), 0);
    CrashState { left, half: before.iter().any(|turn| *turn != before[0]), turn: after[0] }
}

fn kill_and_look(kills: u64) {
    let mut at_work = 0;
    for kill in 0..kills {
        let folder = prepared();
        let mut child = start(folder.path(), &[]);
        wait_for(&mut child, 1);
        let begun = Instant::now();
        wait_for(&mut child, 1 + kill as usize % 4);
        // Somewhere in the next turn, which takes about as long as those before it.
        let turn = begun.elapsed() / (1 + kill as u32 % 4);
        std::thread::sleep(turn * (kill as u32 * 37 % 100) / 100);
        child.kill().unwrap();
        child.wait().unwrap();
        let seen = crash_state(folder.path());
        assert!(seen.turn > 0, "an acknowledged change is gone");
        at_work += u64::from(seen.left > 0);
    }
    assert!(at_work > kills / 10, "only {at_work} of {kills} were killed at work");
}

#[test]
fn kill_9_leaves_every_file_whole_and_the_next_start_clean() {
    kill_and_look(30);
}

#[test]
#[ignore = "takes minutes"]
fn kill_9_three_hundred_times() {
    kill_and_look(300);
}

/// Runs a process for two turns and kills it at one moment of them; returns whether it completed, and what was left.
fn crash_at(moment: u64, variables: &[(&str, String)]) -> (bool, CrashState) {
    let folder = prepared();
    let mut child = start(folder.path(), &[&[(CRASH_POINT_VAR, moment.to_string())], variables].concat());
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let lived = child.wait().unwrap().success();
    let seen = crash_state(folder.path());
    assert!(seen.turn + 1 >= said.matches('#').count() as u64, "an acknowledged change is gone");
    assert!(!lived || seen.turn == 2);
    (lived, seen)
}

/// Dies before each step of two turns that affects the disk. Most of the time is spent waiting for the disk, so
/// several moments are tried at once.
fn crash_everywhere(variables: &[(&str, String)]) {
    let (next, half, end) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(u64::MAX));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                while end.load(Ordering::SeqCst) == u64::MAX {
                    let moment = next.fetch_add(1, Ordering::SeqCst);
                    let (lived, seen) = crash_at(moment, variables);
                    half.fetch_add(u64::from(seen.half), Ordering::SeqCst);
                    if lived {
                        end.fetch_min(moment, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let (half, end) = (half.into_inner(), end.into_inner());
    assert!(end > 40 && half >= 2, "{half} of {end} moments were in the middle of a change");
}

#[test]
fn a_process_that_dies_at_any_step_leaves_all_or_nothing() {
    crash_everywhere(&[]);
}

#[test]
fn a_process_that_dies_at_any_step_on_a_plain_file_system_leaves_all_or_nothing() {
    crash_everywhere(&[(PLAIN_RENAME_VAR, "1".to_owned())]);
}
