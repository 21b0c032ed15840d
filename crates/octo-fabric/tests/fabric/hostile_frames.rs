//! Nodes that do not keep to the protocol.

use crate::fleet::{BusKind, Fleet, address, context, eventually, operation, results};
use bytes::Bytes;
use futures_util::StreamExt;
use octo_fabric::{Bus, Message, Node, RemoteSource, Subject, Subscription};
use octo_model::{Kind, ToolError};
use octo_toolkit::Source;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const LISTING_REQUESTS: &str = "octoprox.1.call.workspace=2fone.test";
const LISTING_REQUEST: u8 = 2;
const LISTING: u8 = 18;
const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const PART: u8 = 3;
const LAST: u8 = 4;
const GONE: u8 = 8;
const VERSION: u8 = 9;
/// The version of the protocol.
const PROTOCOL: u8 = 2;
const CALL: u8 = 4;
const RESULT: u8 = 16;
const ERROR: u8 = 17;
const MAX_LARGE_REQUESTS: usize = 256;

fn frame(kind: u8, sequence: u32, rest: &[u8]) -> Bytes {
    [&[PROTOCOL, kind], sequence.to_be_bytes().as_slice(), rest].concat().into()
}

fn first(len: u64, body: &[u8]) -> Bytes {
    frame(FIRST, 0, &[&[RESULT], len.to_be_bytes().as_slice(), body].concat())
}

fn call(envelope: &str, params: &str) -> Bytes {
    let len = u32::try_from(envelope.len()).unwrap().to_be_bytes();
    frame(WHOLE, 0, &[&[CALL], len.as_slice(), envelope.as_bytes(), params.as_bytes()].concat())
}

async fn subscribe(bus: &dyn Bus, subject: &str) -> Subscription {
    bus.subscribe(&Subject::new(subject), None).await.unwrap()
}

async fn next(subscription: &mut Subscription) -> Message {
    tokio::time::timeout(Duration::from_secs(10), subscription.next()).await.expect("no message").unwrap()
}

/// Where the server of a fleet takes calls.
async fn requests(bus: &dyn Bus) -> Subject {
    let mut replies = subscribe(bus, "hostile.listing").await;
    let request = frame(WHOLE, 0, &[&[LISTING_REQUEST], br#"{"node":"hostile"}"#.as_slice()].concat());
    let to = Subject::new(LISTING_REQUESTS);
    bus.publish(Message::new(to, Some(Subject::new("hostile.listing")), request)).await.unwrap();
    let reply: serde_json::Value = serde_json::from_slice(&next(&mut replies).await.payload[7..]).unwrap();
    Subject::new(format!("{LISTING_REQUESTS}.{}", reply["version"]["server"].as_str().unwrap()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_requests_run_nothing() {
    let fleet = Fleet::start(BusKind::InProcess).await;
    let bus = fleet.front.bus();
    let to = requests(bus.as_ref()).await;
    let mut replies = subscribe(bus.as_ref(), "hostile.reply").await;
    let header = serde_json::to_string(context().header()).unwrap();
    let envelope = format!(r#"{{"header":{header},"method":"tools/call","name":"echo"}}"#);
    let requests: Vec<Bytes> = vec![
        Bytes::new(),
        Bytes::from_static(b"\x01"),
        Bytes::from_static(b"garbage of another program"),
        frame(0, 0, b""),
        frame(WHOLE, 0, &[]),
        frame(WHOLE, 7, &[CALL, b'{', b'}']),
        frame(WHOLE, 0, &[CALL, b'{']),
        frame(WHOLE, 0, &[CALL, 0, 0, 0, 9, b'{', b'}', b'{', b'}']),
        frame(WHOLE, 0, &[CALL, 255, 255, 255, 255, b'{', b'}']),
        call(r#"{"header":{},"method":"tools/call","name":"echo"}"#, "{}"),
        call(&envelope, ""),
        call(&envelope, "[]"),
        call(&envelope, r#"{"a":1,"a":2}"#),
        call(&envelope, "{} {}"),
        frame(WHOLE, 0, &[200]),
        frame(PART, 0, b"x"),
        frame(LAST, 0, &[0; 40]),
        first(u64::MAX, b"x"),
        first(1, b"more than announced"),
    ];
    for request in requests {
        let reply = Some(Subject::new("hostile.reply"));
        bus.publish(Message::new(to.clone(), reply, request)).await.unwrap();
        // Each gets an answer, so that an honest node of another version need not wait.
        next(&mut replies).await;
    }
    // Without an address for the reply, nobody waits.
    let call = call(&envelope, "{}");
    bus.publish(Message::new(to.clone(), None, call.clone())).await.unwrap();
    assert!(fleet.call("echo", "{}").await.is_ok());
    assert_eq!(fleet.source.started.load(Ordering::SeqCst), 1);
    // The subject of listings takes no calls.
    let reply = Some(Subject::new("hostile.reply"));
    let listings = Subject::new(LISTING_REQUESTS);
    bus.publish(Message::new(listings, reply.clone(), call.clone())).await.unwrap();
    assert_eq!(next(&mut replies).await.payload[6], ERROR);
    assert_eq!(fleet.source.started.load(Ordering::SeqCst), 1);
    // The same to the subject of calls, with an address for the reply, runs.
    bus.publish(Message::new(to, reply, call)).await.unwrap();
    assert_eq!(next(&mut replies).await.payload[6], RESULT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_versions_are_answered_with_ours() {
    let fleet = Fleet::start(BusKind::InProcess).await;
    let bus = fleet.front.bus();
    let mut replies = subscribe(bus.as_ref(), "hostile.reply").await;
    let reply = Some(Subject::new("hostile.reply"));
    let newer = Bytes::from_static(&[PROTOCOL + 1, WHOLE, 0, 0, 0, 0, CALL]);
    bus.publish(Message::new(requests(bus.as_ref()).await, reply, newer)).await.unwrap();
    assert_eq!(next(&mut replies).await.payload.as_ref(), [PROTOCOL, VERSION, PROTOCOL]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_never_complete_release_their_memory() {
    let fleet = Fleet::start(BusKind::InProcess).await;
    let bus = fleet.front.bus();
    let mut replies = subscribe(bus.as_ref(), "hostile.*").await;
    let to = requests(bus.as_ref()).await;
    next(&mut replies).await;
    for number in 0..3 {
        let reply = Some(Subject::new(format!("hostile.{number}")));
        bus.publish(Message::new(to.clone(), reply, first(60 << 20, b"x"))).await.unwrap();
    }
    // Two fit into the budget, and neither sends more.
    next(&mut replies).await;
    next(&mut replies).await;
    let params = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    assert!(fleet.call("echo", &params).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_call_is_refused_at_once_while_too_many_arrive() {
    let fleet = Fleet::start(BusKind::InProcess).await;
    let bus = fleet.front.bus();
    let mut replies = subscribe(bus.as_ref(), "hostile.*").await;
    let to = requests(bus.as_ref()).await;
    for number in 0..=MAX_LARGE_REQUESTS {
        let reply = Some(Subject::new(format!("hostile.{number}")));
        bus.publish(Message::new(to.clone(), reply, first(60 << 20, b"x"))).await.unwrap();
    }
    // One of them is refused, in whichever order they are read: the others are being received.
    while !matches!(next(&mut replies).await.payload.as_ref(), [_, WHOLE, _, _, _, _, ERROR, ..]) {}
    let params = format!(r#"{{"text":"{}"}}"#, "x".repeat(1 << 20));
    let started = Instant::now();
    let error = fleet.call("echo", &params).await.unwrap_err();
    assert_eq!((error.kind, error.is_outcome_unknown), (Kind::RateLimited, false), "{error}");
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());
    assert!(fleet.call("echo", "{}").await.is_ok());
}

/// A front whose calls are received by the test.
async fn with_hostile_worker(
    answer: impl Fn(Subject, Arc<dyn Bus>) -> futures_util::future::BoxFuture<'static, ()> + Send + 'static,
) -> (ToolError, Duration) {
    let bus: Arc<dyn Bus> = Arc::new(octo_fabric::InProcessBus::default());
    let mut listings = subscribe(bus.as_ref(), LISTING_REQUESTS).await;
    let mut requests = subscribe(bus.as_ref(), &format!("{LISTING_REQUESTS}.hostile")).await;
    let hostile = Arc::clone(&bus);
    tokio::spawn(async move {
        let listing = serde_json::json!({
            "version": {"server": "hostile", "version": 1}, "state": "ready",
            "listing": octo_toolkit::Listing::default(),
        });
        let listing = frame(WHOLE, 0, &[&[LISTING], listing.to_string().as_bytes()].concat());
        loop {
            tokio::select! {
                Some(request) = listings.next() => {
                    let message = Message::new(request.reply.unwrap(), None, listing.clone());
                    hostile.publish(message).await.unwrap();
                }
                Some(request) = requests.next() => {
                    tokio::spawn(answer(request.reply.unwrap(), Arc::clone(&hostile)));
                }
            }
        }
    });
    let front = Node::open("front", bus).await.unwrap();
    let remote = RemoteSource::new(&front, address(), "test", results());
    let started = Instant::now();
    let outcome = remote.run(operation("echo", "{}"), &context()).await;
    (outcome.unwrap_err(), started.elapsed())
}

fn sends(
    frames: Vec<Bytes>,
) -> impl Fn(Subject, Arc<dyn Bus>) -> futures_util::future::BoxFuture<'static, ()> {
    move |to, bus| {
        let frames = frames.clone();
        Box::pin(async move {
            for frame in frames {
                let reply = Some(Subject::new("hostile.worker"));
                let _ = bus.publish(Message::new(to.clone(), reply, frame)).await;
            }
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_replies_fail_the_call() {
    let wrong_hash = vec![first(2, b"{"), frame(LAST, 1, &[&[0; 32], b"}".as_slice()].concat())];
    let rows = [
        (vec![Bytes::new()], Kind::Unavailable),
        (vec![frame(WHOLE, 5, &[RESULT, b'{', b'}'])], Kind::Unavailable),
        (vec![frame(WHOLE, 0, &[RESULT, b'['])], Kind::Internal),
        (vec![frame(WHOLE, 0, &[17, b'{'])], Kind::Internal),
        (vec![first(u64::MAX, b"x")], Kind::TooLarge),
        (wrong_hash, Kind::Unavailable),
        (vec![Bytes::from_static(&[PROTOCOL, VERSION, 9])], Kind::Unavailable),
        (vec![Bytes::from_static(&[PROTOCOL, GONE])], Kind::Unavailable),
        // More than anybody granted.
        (vec![frame(PART, 0, b"x"); 1_000], Kind::Unavailable),
    ];
    for (frames, expected) in rows {
        let text = format!("{:?}", frames.first());
        let (error, took) = with_hostile_worker(sends(frames)).await;
        assert_eq!(error.kind, expected, "{text}: {error}");
        assert!(took < Duration::from_secs(5), "{text}: {took:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_worker_is_given_up() {
    let (error, took) = with_hostile_worker(sends(Vec::new())).await;
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.message.contains("it is unknown whether it took effect"), "{error}");
    assert!((Duration::from_secs(9)..Duration::from_secs(15)).contains(&took), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_questions_is_refused() {
    let fleet = Fleet::start(BusKind::InProcess).await;
    let questions = (0..1_000_u32).map(|number| {
        let body = format!(r#"{{"id":{number},"method":"elicitation/create","params":{{"want":"never"}}}}"#);
        frame(WHOLE, number, &[&[21], body.as_bytes()].concat())
    });
    let (error, took) = with_hostile_worker(sends(questions.collect())).await;
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(took < Duration::from_secs(15), "{took:?}");
    eventually("the fleet is alive", || fleet.source.started.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_do_not_queue_behind_a_server_that_is_suspended() {
    let bus: Arc<dyn Bus> = Arc::new(octo_fabric::InProcessBus::default());
    // It receives requests and answers none.
    let _suspended = subscribe(bus.as_ref(), LISTING_REQUESTS).await;
    let front = Node::open("front", bus).await.unwrap();
    let remote = RemoteSource::new(&front, address(), "test", results());
    let started = Instant::now();
    for _ in 0..3 {
        let calls = (0..20).map(|_| async {
            let error = remote.run(operation("echo", "{}"), &context()).await.unwrap_err();
            assert!(error.message.starts_with("No worker serves"), "{error}");
        });
        futures_util::future::join_all(calls).await;
    }
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
