//! Failures of NATS and of nodes.

use crate::fleet::{BusKind, Fleet, address, context, eventually, operation, results, sealed, secret};
use crate::test_source::TestSource;
use octo_fabric::{Node, RemoteSource, serve_source};
use octo_model::Kind;
use octo_toolkit::{Source, SourceState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_survive_a_restart_of_nats() {
    let mut fleet = Fleet::start(BusKind::Nats).await;
    let mut nats = fleet.nats.take().unwrap();
    let cx = context();
    let running = fleet.call_with("wait", r#"{"ms":2500}"#, &cx);
    let restart = async {
        eventually("the call runs", || fleet.source.started.load(Ordering::SeqCst) == 1).await;
        // Long enough for the first sign of life, with which the nodes know each other.
        tokio::time::sleep(Duration::from_millis(300)).await;
        nats.kill();
        eventually("the loss is noticed", || {
            *fleet.front.bus().state().borrow() == octo_fabric::BusState::Disconnected
        })
        .await;
        let started = Instant::now();
        let error = fleet.call("echo", "{}").await.unwrap_err();
        assert_eq!(error.kind, Kind::Unavailable);
        assert!(!error.message.contains("unknown"), "nothing was sent: {error}");
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
        nats.spawn();
    };
    let (outcome, ()) = tokio::join!(running, restart);
    assert!(outcome.is_ok(), "{outcome:?}");
    fleet.wait_until_ready().await;
    assert!(fleet.call("echo", "{}").await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_nats_a_call_ends_as_unknown() {
    let mut fleet = Fleet::start(BusKind::Nats).await;
    let mut nats = fleet.nats.take().unwrap();
    let cx = context();
    let running = fleet.call_with("sleep", "{}", &cx);
    let stop = async {
        eventually("the call runs", || fleet.source.started.load(Ordering::SeqCst) == 1).await;
        nats.kill();
    };
    let (outcome, ()) = tokio::join!(running, stop);
    let error = outcome.unwrap_err();
    assert!(error.message.contains("it is unknown whether it took effect"), "{error}");
    // The worker stops as well, since nobody would hear of the result.
    eventually("the call is dropped", || fleet.source.dropped.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_a_front_that_died_are_cancelled() {
    let fleet = Fleet::start(BusKind::Nats).await;
    let nats = fleet.nats.as_ref().unwrap();
    let options = nats.options("doomed");
    let front = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.spawn(async move {
            let bus = sealed(crate::nats_server::connected(&options).await, &secret());
            let node = Node::open("doomed", bus).await.unwrap();
            let remote = RemoteSource::new(&node, address(), "test", results());
            let _ = remote.run(operation("sleep", "{}"), &context()).await;
        });
        runtime
    });
    let runtime = front.join().unwrap();
    eventually("the call runs", || fleet.source.started.load(Ordering::SeqCst) == 1).await;
    // The connection ends without a farewell.
    runtime.shutdown_background();
    eventually("the call is dropped", || fleet.source.dropped.load(Ordering::SeqCst) == 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_front_that_starts_before_nats_and_worker_becomes_ready() {
    let mut fleet = Fleet::start(BusKind::Nats).await;
    drop(fleet.server.take());
    let mut nats = fleet.nats.take().unwrap();
    nats.kill();
    let early = octo_fabric::NatsBus::connect(&nats.options("early")).await.unwrap();
    let node = Node::open("early", sealed(Arc::new(early), &secret())).await.unwrap();
    let remote = RemoteSource::new(&node, address(), "test", results());
    let mut listing = remote.listing();
    let state =
        |expected: fn(&SourceState) -> bool| move |state: &octo_toolkit::ListingState| expected(&state.state);
    let wait = Duration::from_secs(20);
    let down = listing.wait_for(state(|state| matches!(state, SourceState::Down(_))));
    drop(tokio::time::timeout(wait, down).await.unwrap().unwrap());
    nats.spawn();
    let source = Arc::new(TestSource::default()) as Arc<dyn Source>;
    let _server = serve_source(&fleet.worker, address(), source, None).await.unwrap();
    let ready = listing.wait_for(state(|state| *state == SourceState::Ready));
    drop(tokio::time::timeout(wait, ready).await.unwrap().unwrap());
    assert!(remote.run(operation("echo", "{}"), &context()).await.is_ok());
}
