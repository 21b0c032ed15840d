//! Every acknowledged record survives `kill -9`, and so do concurrent writes of another process.

use super::{calls, closing, opening, store};
use crate::Store;
use crate::audit::audit_reader::AuditConnection;
use crate::audit::audit_verify::verify;
use octo_ports::{AuditCursor, AuditLog};
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;

const DIRECTORY: &str = "OCTO_STORE_KILL_TEST";

/// The child: makes calls without end, and prints each id once it is acknowledged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started and killed by the other test"]
async fn child() {
    let Some(dir) = std::env::var_os(DIRECTORY) else {
        return;
    };
    let store = Arc::new(store(dir.as_ref()));
    for _ in 0..7 {
        tokio::spawn(calls_without_end(Arc::clone(&store)));
    }
    calls_without_end(store).await;
}

async fn calls_without_end(store: Arc<Store>) {
    loop {
        let call = opening("time_now");
        let id = call.id;
        store.open(call).await.unwrap();
        println!("\nacknowledged {id}");
        store.close(closing(id));
    }
}

#[tokio::test]
async fn acknowledged_records_survive() {
    let dir = tempfile::tempdir().unwrap();
    let mine = store(dir.path());
    let mut acknowledged = HashSet::new();
    for _round in 0..3 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "tests::killed_writer::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(DIRECTORY, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ids =
            |line: String| line.strip_prefix("acknowledged ").filter(|id| id.len() == 32).map(str::to_owned);
        acknowledged.extend(lines.by_ref().filter_map(ids).take(300));
        calls(&mine, 20).await;
        acknowledged.extend(lines.by_ref().filter_map(ids).take(300));
        child.kill().unwrap();
        // Output before the kill counts, too.
        acknowledged.extend(lines.filter_map(ids));
        child.wait().unwrap();
    }
    assert!(acknowledged.len() >= 1800, "only {} calls were acknowledged", acknowledged.len());

    let reader = AuditConnection::open(dir.path()).unwrap();
    let mut written = HashSet::new();
    let mut cursor = AuditCursor::default();
    loop {
        let more = reader.after(&cursor).unwrap();
        let Some(last) = more.last() else { break };
        cursor.advance("", last.seq);
        written.extend(more.into_iter().map(|record| record.call));
    }
    let lost: Vec<_> = acknowledged.difference(&written).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), acknowledged.len());
    drop(mine);
    assert!(verify(dir.path(), None).unwrap().records >= cursor.seq(""));
}
