//! Callers and servers that take all they can.

use crate::hub_fixture::{HubFixture, ScriptedSource, tool};
use octo_hub::Request;
use octo_model::{Caller, Kind, Principal, ToolError};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const DEADLINE: Duration = Duration::from_secs(20);

struct Overload {
    bench: Arc<HubFixture>,
    slow: [Arc<ScriptedSource>; 3],
    /// Refused ones end at once, the others when it is dropped.
    calls: JoinSet<ToolError>,
}

impl Overload {
    fn new() -> Self {
        let slow = ["one", "two", "three"].map(|name| ScriptedSource::new(name, vec![tool("sleeps")]));
        let fast = ScriptedSource::new("fast", vec![tool("do")]);
        let bench = HubFixture::new(vec![slow[0].clone(), slow[1].clone(), slow[2].clone(), fast], |parts| {
            parts.timeout = Duration::from_secs(600);
        });
        Self { bench: Arc::new(bench), slow, calls: JoinSet::new() }
    }

    fn request(name: &str, who: &Principal) -> Request {
        Request { caller: Arc::new(Caller::from(who.clone())), ..HubFixture::request(name, json!({})) }
    }

    fn start(&mut self, count: usize, name: &'static str, who: &Principal) {
        for _ in 0..count {
            let (bench, request) = (Arc::clone(&self.bench), Self::request(name, who));
            self.calls.spawn(async move { bench.call_request(request).await.outcome.unwrap_err() });
        }
    }

    /// Returns the errors of refused calls once no more than `running` run.
    async fn refused(&mut self, running: usize) -> Vec<ToolError> {
        let mut refused = Vec::new();
        while self.calls.len() > running {
            let next = tokio::time::timeout(DEADLINE, self.calls.join_next()).await;
            refused.push(next.expect("more calls run than expected").unwrap().unwrap());
        }
        refused
    }

    fn running(&self) -> usize {
        self.slow.iter().map(|source| source.calls.load(Ordering::Relaxed)).sum()
    }

    async fn until_running(&self, count: usize) {
        let began = Instant::now();
        while self.running() < count {
            assert!(began.elapsed() < DEADLINE, "only {} calls run", self.running());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(self.running(), count);
    }

    async fn call(&self, name: &str, who: &Principal) -> Result<(), ToolError> {
        let call = self.bench.call_request(Self::request(name, who));
        tokio::time::timeout(DEADLINE, call).await.expect("not in time").outcome.map(drop)
    }
}

#[tokio::test]
async fn a_slow_server_does_not_stop_the_calls_of_others() {
    let mut load = Overload::new();
    let ada = Principal::new("a", "ada");
    load.start(3_600, "one__sleeps", &ada);
    for error in load.refused(2_560).await {
        assert_eq!((error.kind, error.retry_after), (Kind::RateLimited, Some(Duration::from_secs(1))));
        assert_eq!(error.message, "Too many calls of this caller are in progress at `one`.");
    }
    load.until_running(2_560).await;
    let eve = Principal::new("b", "eve");
    load.call("fast__do", &ada).await.unwrap();
    load.call("fast__do", &eve).await.unwrap();
    // Nor does it stop those of another caller at the same server.
    load.start(1, "one__sleeps", &eve);
    load.until_running(2_561).await;
    // Callers of many tenants.
    for number in 0..1_000 {
        load.start(1, "one__sleeps", &Principal::new(number.to_string(), "ada"));
    }
    for error in load.refused(3_413).await {
        assert_eq!(error.message, "Too many calls are in progress at `one`.");
    }
    load.until_running(3_413).await;
    load.call("fast__do", &ada).await.unwrap();
}

#[tokio::test]
async fn one_caller_and_one_tenant_leave_slots_for_others() {
    let mut load = Overload::new();
    let [ada, bob, eve] = [("a", "ada"), ("a", "bob"), ("b", "eve")].map(|(t, s)| Principal::new(t, s));
    for name in ["one__sleeps", "two__sleeps", "three__sleeps"] {
        load.start(1_300, name, &ada);
    }
    let refused = load.refused(3_840).await;
    assert_eq!(refused[0].message, "The hub runs too many calls of this caller at once.");
    assert_eq!(load.call("fast__do", &ada).await.unwrap_err().kind, Kind::RateLimited);
    load.call("fast__do", &bob).await.unwrap();
    load.start(300, "three__sleeps", &bob);
    let refused = load.refused(4_096).await;
    assert_eq!(refused[0].message, "The hub runs too many calls of this tenant at once.");
    load.call("fast__do", &eve).await.unwrap();
    // Refused calls are not recorded; the others are.
    load.until_running(4_096).await;
    assert_eq!(load.bench.store.opened.lock().unwrap().len(), 4_096 + 2);
    load.calls.shutdown().await;
    load.call("fast__do", &ada).await.unwrap();
}
