//! The store as a whole.

mod audit_chain;
mod audit_records;
mod changes;
mod conformance;
mod killed_writer;
mod stored_results;

use crate::{Options, Store};
use octo_ports::AuditLog;
use octo_ports::conformance::call_samples::{closing, opening};
use std::path::Path;

fn store(dir: &Path) -> Store {
    Store::open(dir, Options::default()).unwrap()
}

/// Records complete calls in sequence.
async fn calls(store: &Store, count: usize) {
    for at in 0..count {
        let opening = opening(&format!("tool_{at}"));
        let id = opening.id;
        store.open(opening).await.unwrap();
        store.close(closing(id));
    }
}
