//! Sources of this node that workers serve, for the readiness of a front.

use octo_toolkit::{ListingState, Source, SourceState};
use octo_web::{Check, CheckState};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

const BUS: &str = "message_bus";
const WORKSPACE: &str = "workspace";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteKind {
    Workspace,
    Server,
}

#[derive(Clone, Default)]
pub struct RemoteStates(Arc<Mutex<BTreeMap<String, RemoteState>>>);

struct RemoteState {
    kind: RemoteKind,
    listing: watch::Receiver<ListingState>,
}

impl RemoteStates {
    pub fn put(&self, kind: RemoteKind, source: &dyn Source) {
        self.lock().insert(source.name().to_owned(), RemoteState { kind, listing: source.listing() });
    }

    pub fn remove(&self, name: &str) {
        self.lock().remove(name);
    }

    /// The message bus, and whether a worker serves the workspace.
    pub fn checks(&self, is_connected: bool) -> Vec<Check> {
        let states = self.lock();
        let bus = match is_connected {
            true => Check::ok(BUS),
            false => Check {
                affects: states.keys().cloned().collect(),
                ..Check::problem(BUS, CheckState::Degraded, "not connected to NATS")
            },
        };
        let mut checks = vec![bus];
        let workspace: Vec<_> =
            states.iter().filter(|(_, state)| state.kind == RemoteKind::Workspace).collect();
        if !workspace.is_empty() {
            checks.push(workspace_check(&workspace, is_connected));
        }
        checks
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RemoteState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn workspace_check(sources: &[(&String, &RemoteState)], is_connected: bool) -> Check {
    let (mut affects, mut reason) = (Vec::new(), None);
    for (name, source) in sources {
        let why = match &source.listing.borrow().state {
            _ if !is_connected => "unknown while the message bus is not connected".to_owned(),
            SourceState::Ready | SourceState::Off(_) => continue,
            SourceState::Starting => "no worker was found yet".to_owned(),
            SourceState::Down(why) => why.clone(),
        };
        affects.push((*name).clone());
        reason.get_or_insert(why);
    }
    match reason {
        None => Check::ok(WORKSPACE),
        Some(reason) => Check { affects, ..Check::problem(WORKSPACE, CheckState::Degraded, reason) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_model::{BoxFuture, JsonObject, Operation, ToolError};
    use octo_toolkit::{CallContext, Listing};

    struct TestSource(&'static str, watch::Receiver<ListingState>);

    impl Source for TestSource {
        fn name(&self) -> &str {
            self.0
        }

        fn is_native(&self) -> bool {
            true
        }

        fn listing(&self) -> watch::Receiver<ListingState> {
            self.1.clone()
        }

        fn run<'a>(
            &'a self,
            _: Operation,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
            Box::pin(async { Ok(JsonObject::new()) })
        }
    }

    fn told(checks: &[Check]) -> Vec<(&str, CheckState, String)> {
        checks.iter().map(|check| (check.name.as_str(), check.state, check.affects.join(","))).collect()
    }

    #[test]
    fn what_is_affected_depends_on_what_is_down() {
        let (states, listing) = (RemoteStates::default(), Arc::new(Listing::default()));
        let state = |state| ListingState { state, listing: Arc::clone(&listing), version: 1 };
        let (files, receiver) = watch::channel(state(SourceState::Ready));
        states.put(RemoteKind::Workspace, &TestSource("filesystem", receiver));
        let (_server, receiver) = watch::channel(state(SourceState::Ready));
        states.put(RemoteKind::Server, &TestSource("notion", receiver));
        let (ok, degraded) = (CheckState::Ok, CheckState::Degraded);
        let none = String::new;
        assert_eq!(told(&states.checks(true)), [(BUS, ok, none()), (WORKSPACE, ok, none())]);
        let files_only = || "filesystem".to_owned();
        assert_eq!(
            told(&states.checks(false)),
            [(BUS, degraded, "filesystem,notion".to_owned()), (WORKSPACE, degraded, files_only())]
        );
        files.send_replace(state(SourceState::Down("No worker serves it.".to_owned())));
        let checks = states.checks(true);
        assert_eq!(told(&checks), [(BUS, ok, none()), (WORKSPACE, degraded, files_only())]);
        assert_eq!(checks[1].reason.as_deref(), Some("No worker serves it."));
        states.remove("filesystem");
        assert_eq!(told(&states.checks(true)), [(BUS, ok, none())]);
    }
}
