//! Writes of other processes are noticed, and nothing is polled for nobody.

use crate::{Options, sqlite};
use octo_model::Secret;
use octo_ports::{Changes, Owner, Slot, Stores};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::time::{Instant, timeout};

const DIRECTORY: &str = "OCTO_STORE_CHANGES_TEST";
const DEADLINE: Duration = Duration::from_secs(30);

fn stores(dir: &Path) -> Stores {
    sqlite(dir, Options::default()).unwrap()
}

async fn write(stores: &Stores, number: usize) {
    let slot = Slot::new(Owner::Shared, "notion", format!("issuer {number}"));
    stores.credentials.put(&slot, Secret::new("secret"), None).await.unwrap();
}

async fn wait_for(stores: &Stores, changes: &mut Changes, number: usize) {
    while stores.credentials.slots().await.unwrap().len() < number {
        timeout(DEADLINE, changes.changed()).await.expect("no notification of the change");
    }
}

/// The child: writes as often as it has received a line.
#[tokio::test]
#[ignore = "started by the test below"]
async fn child() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let stores = stores(dir.as_ref());
    for number in 1.. {
        if std::io::stdin().read_line(&mut String::new()).unwrap() == 0 {
            return;
        }
        write(&stores, number).await;
    }
}

#[tokio::test]
async fn a_write_of_another_process_wakes_a_waiter() {
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let stores = stores(dir.path());
    let mut changes = stores.credentials.changes();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::changes::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = child.stdin.take().unwrap();
    // The first write creates the file.
    for number in 1..=4 {
        writeln!(lines).unwrap();
        wait_for(&stores, &mut changes, number).await;
    }
    drop(lines);
    child.wait().unwrap();
}

#[tokio::test]
async fn a_write_of_this_process_wakes_at_once_and_a_read_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let stores = stores(dir.path());
    write(&stores, 1).await;
    let mut changes = stores.credentials.changes();
    // The state of the file before is reported once.
    timeout(DEADLINE, changes.changed()).await.unwrap();
    let mut reported = 0;
    for number in 2..=20 {
        write(&stores, number).await;
        reported += usize::from(timeout(Duration::ZERO, changes.changed()).await.is_ok());
    }
    assert_eq!(reported, 19);
    let mut changes = changes.or(stores.pins.changes()).or(stores.leases.changes());
    let _lease = stores.leases.acquire("lease", DEADLINE).await.unwrap().unwrap();
    let mut quiet = 0;
    let begun = Instant::now();
    while quiet < 20 && begun.elapsed() < DEADLINE {
        assert_eq!(stores.credentials.slots().await.unwrap().len(), 20);
        assert!(stores.credentials.find_pending(&Owner::Shared, "notion", 0).await.unwrap().is_none());
        assert_eq!(stores.pins.revision("notion").await.unwrap(), 0);
        assert!(stores.leases.acquire("lease", DEADLINE).await.unwrap().is_none());
        quiet =
            if timeout(Duration::from_millis(10), changes.changed()).await.is_ok() { 0 } else { quiet + 1 };
    }
    assert_eq!(quiet, 20, "reads are reported as changes");
}

#[tokio::test]
async fn a_file_is_polled_once_and_only_for_subscribers() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let stores = stores(&state);
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let subscribe = || [stores.credentials.changes(), stores.credentials.changes(), stores.pins.changes()];
    for _ in 0..3 {
        let subscribers = subscribe();
        assert_eq!(tasks() - before, 2, "one per file");
        drop(subscribers);
        let begun = Instant::now();
        while tasks() > before {
            assert!(begun.elapsed() < DEADLINE, "a task is left");
            tokio::task::yield_now().await;
        }
    }
    assert!(!state.exists(), "a subscription creates nothing");
    // The next subscriber is served as the first one was.
    let mut changes = stores.credentials.changes();
    write(&self::stores(&state), 1).await;
    timeout(DEADLINE, changes.changed()).await.unwrap();
}
