//! The store as a whole. Helpers: calls to record.

mod audit_chain;
mod audit_records;
mod changes;
mod conformance;
mod killed_writer;
mod stored_results;

use crate::{Options, Store};
use octo_model::{CallId, Caller, Frontend, Method};
use octo_ports::{AuditLog, CallEnded, CallStarted, Outcome};
use std::path::Path;

pub(crate) fn opening(name: &str) -> CallStarted {
    CallStarted {
        id: CallId::fresh(),
        principal: Caller::named("ada").principal,
        frontend: Frontend::Cli,
        profile: "default".to_owned(),
        method: Method::CallTool,
        name: name.to_owned(),
        arguments: "5e".repeat(32),
        shown: None,
        trace: None,
    }
}

pub(crate) fn closing(id: CallId) -> CallEnded {
    CallEnded {
        id,
        target: Some("time/time_now".to_owned()),
        rule: None,
        outcome: Outcome::Ok,
        micros: 1500,
        bytes: 42,
        result_handle: None,
        arguments: None,
    }
}

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
