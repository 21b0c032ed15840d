//! Copies between directories: a copy that was interrupted, and directories of credentials.

use super::*;
use crate::{SealKeys, sqlite};
use octo_model::Secret;
use octo_ports::transfer::{ListingRow, TransferRecord, transfer};
use octo_ports::{Owner, Slot, Stores};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const DIRECTORY: &str = "OCTO_STORE_COPY_TEST";
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);

fn listing(number: usize) -> TransferRecord {
    let (server, mark, text) = (format!("server {number:04}"), "m".to_owned(), "{}".to_owned());
    TransferRecord::Listing(ListingRow { server, mark, text })
}

fn is_of_machine(slot: &Slot) -> bool {
    slot.server.starts_with("secret:")
}

fn names(dir: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Copies once the connections of stores that were dropped are closed.
async fn copy(from: (&Path, &Options), to: (&Path, &Options)) -> Result<TransferCounts, TransferError> {
    let deadline = Instant::now() + CLOSE_TIMEOUT;
    loop {
        let export = |sender| export_state(from.0, from.1, is_of_machine, sender);
        match transfer(export, |receiver| import_state(to.0, to.1, is_of_machine, receiver)).await {
            Err(TransferError::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => return done,
        }
    }
}

/// The child: a copy that waits for its source forever.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started and killed by the other test"]
async fn child() {
    let Some(dir) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let export = async |to: RecordSender| {
        for number in 0..20_000 {
            to.send(listing(number)).await?;
        }
        println!("\nhalf way");
        std::future::pending().await
    };
    let options = Options::default();
    let import = |from| import_state(dir.as_ref(), &options, is_of_machine, from);
    let _: Result<TransferCounts, TransferError> = transfer(export, import).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_was_killed_leaves_the_directory_as_it_was() {
    let temp = tempfile::tempdir().unwrap();
    std::fs::write(temp.path().join("servers.lock"), "kept").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "transfer::tests::child", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, temp.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.into_iter().any(|line| line == "half way"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(names(temp.path()), BTreeSet::from(["servers.lock", "store-copy.part"].map(str::to_owned)));
    let stores = sqlite(temp.path(), Options::default()).unwrap();
    assert_eq!(stores.listings.get("server 0001", "m").await.unwrap(), None);
    drop(stores);

    let export = async |to: RecordSender| {
        to.send(listing(7)).await?;
        to.finish().await
    };
    let (deadline, options) = (Instant::now() + CLOSE_TIMEOUT, Options::default());
    loop {
        let import = |from| import_state(temp.path(), &options, is_of_machine, from);
        match transfer(export, import).await {
            Err(TransferError::InUse(_)) if Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            done => break drop(done.unwrap()),
        }
    }
    let stores = sqlite(temp.path(), Options::default()).unwrap();
    assert!(stores.listings.get("server 0007", "m").await.unwrap().is_some());
    assert_eq!(stores.listings.get("server 0001", "m").await.unwrap(), None);
    assert!(!names(temp.path()).contains("store-copy.part"));
    assert_eq!(std::fs::read_to_string(temp.path().join("servers.lock")).unwrap(), "kept");
}

async fn fill(stores: &Stores) {
    stores.listings.put("notion", "m", "{}".to_owned()).await.unwrap();
    let slot = Slot::new(Owner::Shared, "notion", "issuer");
    stores.credentials.put(&slot, Secret::new("token"), None).await.unwrap();
    stores.leases.acquire("a", Duration::from_millis(1)).await.unwrap().unwrap();
}

async fn check(stores: &Stores) {
    assert!(stores.listings.get("notion", "m").await.unwrap().is_some());
    let slot = Slot::new(Owner::Shared, "notion", "issuer");
    assert_eq!(stores.credentials.find(&slot).await.unwrap().unwrap().secret.expose(), "token");
    let lease = stores.leases.acquire("b", Duration::from_secs(1)).await.unwrap().unwrap();
    assert!(lease.token > 1, "{lease:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_was_interrupted_is_completed_by_the_next_process() {
    let temp = tempfile::tempdir().unwrap();
    let [source, whole, torn] = ["a", "b", "c"].map(|name| temp.path().join(name));
    fill(&sqlite(&source, Options::default()).unwrap()).await;
    let options = Options::default();
    copy((&source, &options), (&whole, &options)).await.unwrap();
    // One file has arrived, the others not; the one that it replaced has left something.
    let ready = torn.join("store-copy.ready");
    std::fs::create_dir_all(&ready).unwrap();
    for name in names(&whole) {
        let to = if name == "lists.db" { &torn } else { &ready };
        std::fs::rename(whole.join(&name), to.join(&name)).unwrap();
    }
    std::fs::write(torn.join("credentials.db-wal"), "left behind").unwrap();
    check(&sqlite(&torn, options).unwrap()).await;
    assert!(!ready.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_may_have_a_directory_and_a_key_of_their_own() {
    let temp = tempfile::tempdir().unwrap();
    let [source, keys, target, other_keys] = ["a", "k", "b", "l"].map(|name| temp.path().join(name));
    let from = Options { credential_dir: Some(keys), ..Options::default() };
    fill(&sqlite(&source, from.clone()).unwrap()).await;
    let seal_keys = SealKeys { secret: Some(Secret::new("a long enough secret")), previous: Vec::new() };
    let to = Options { credential_dir: Some(other_keys.clone()), seal_keys, ..Options::default() };
    copy((&source, &from), (&target, &to)).await.unwrap();
    check(&sqlite(&target, to.clone()).unwrap()).await;
    assert!(other_keys.join("credentials.db").is_file() && !target.join("credentials.db").exists());
    assert!(!other_keys.join("seal.key").exists(), "the operator's secret is the key");
    assert!(!names(&other_keys).iter().chain(&names(&target)).any(|name| name.starts_with("store-copy")));
    let refused = copy((&source, &from), (&target, &to)).await.unwrap_err();
    assert!(refused.to_string().contains("listings, credentials"), "{refused}");
}
