//! Who reaches what on a bus where anybody may publish and hear everything.

use crate::fleet::{Fleet, context, eventually, results, sealed, secret, worker_keys};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use octo_fabric::{
    Bus, FrontMessages, InProcessBus, Message, Node, NodeReport, NodeStatus, RemoteSource, ServiceClaim,
    SourceAddress, Subject, Subscription, collect_metrics, collect_status, serve_source, serve_status,
};
use octo_model::{Json, Secret};
use octo_toolkit::{Source, SourceState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PROTOCOL: u8 = 2;
const WHOLE: u8 = 1;
const LISTING_REQUEST: u8 = 2;
const CALL: u8 = 4;
const CLAIM: u8 = 49;

fn whole(kind: u8, body: &[u8]) -> Bytes {
    [&[PROTOCOL, WHOLE, 0, 0, 0, 0, kind], body].concat().into()
}

fn call_frame() -> Bytes {
    let header = serde_json::to_string(context().header()).unwrap();
    let envelope = format!(r#"{{"header":{header},"method":"tools/call","name":"echo"}}"#);
    let len = u32::try_from(envelope.len()).unwrap().to_be_bytes();
    whole(CALL, &[len.as_slice(), envelope.as_bytes(), b"{}"].concat())
}

/// A fleet whose nodes have keys, and the bus that connects them, where a stranger hears everything.
struct Bugged {
    fleet: Fleet,
    bus: Arc<dyn Bus>,
    heard: Subscription,
}

impl Bugged {
    async fn start() -> Self {
        let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
        let heard = bus.subscribe(&Subject::new("octoprox.>"), None).await.unwrap();
        let worker = sealed(Arc::clone(&bus), &worker_keys(&["workspace/one"]));
        let fleet = Fleet::on(sealed(Arc::clone(&bus), &secret()), worker, None).await;
        Self { fleet, bus, heard }
    }

    fn runs(&self) -> u64 {
        self.fleet.source.started.load(Ordering::SeqCst)
    }

    /// Everything that was said until now.
    fn recorded(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.heard.next().now_or_never().flatten()).collect()
    }

    /// Calls once; returns what was said, and where the call went.
    async fn record_call(&mut self) -> (Vec<Message>, Message) {
        self.recorded();
        self.fleet.call("echo", r#"{"text":"a secret of the caller"}"#).await.unwrap();
        let said = self.recorded();
        let is_call = |message: &&Message| {
            let subject = message.subject.as_str();
            subject.starts_with("octoprox.1.call.workspace=2fone.test.") && message.reply.is_some()
        };
        let call = said.iter().find(is_call).unwrap().clone();
        (said, call)
    }

    /// An honest call succeeds, and it is the only one that ran since there were `before`.
    async fn nothing_else_ran(&self, before: u64) {
        self.fleet.call_when_served("echo").await;
        assert_eq!(self.runs(), before + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_reads_and_runs_nothing() {
    let mut bugged = Bugged::start().await;
    let (said, call) = bugged.record_call().await;
    let before = bugged.runs();
    let reads = |message: &Message, text: &str| {
        message.payload.windows(text.len()).any(|window| window == text.as_bytes())
    };
    for text in ["a secret of the caller", "echo", "tools/call", "local"] {
        assert!(!said.iter().any(|message| reads(message, text)), "{text}");
    }
    let mut replies = bugged.bus.subscribe(&Subject::new("stranger.>"), None).await.unwrap();
    let mut asked = 0;
    let listings = Subject::new("octoprox.1.call.workspace=2fone.test");
    for (to, frame) in [
        (&listings, whole(LISTING_REQUEST, br#"{"node":"stranger"}"#)),
        (&call.subject, call_frame()),
        (&call.subject, Bytes::new()),
        (&call.subject, Bytes::from_static(&[PROTOCOL + 1, WHOLE])),
        (&Subject::new("octoprox.1.status"), Bytes::new()),
        // Recorded, with an answer to the stranger.
        (&call.subject, call.payload.clone()),
    ] {
        asked += 1;
        let reply = Some(Subject::new(format!("stranger.{asked}")));
        bugged.bus.publish(Message::new(to.clone(), reply, frame)).await.unwrap();
    }
    bugged.nothing_else_ran(before).await;
    assert!(replies.next().now_or_never().is_none(), "a stranger was answered");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_messages_have_no_effect_again() {
    let mut bugged = Bugged::start().await;
    let (_, call) = bugged.record_call().await;
    let said = bugged.record_call().await.0;
    let (before, elsewhere) = (bugged.runs(), Subject::new("octoprox.1.call.workspace=2fone.test"));
    for message in [call].iter().chain(&said) {
        for copy in [message.clone(), Message { subject: elsewhere.clone(), ..message.clone() }] {
            bugged.bus.publish(copy).await.unwrap();
        }
    }
    bugged.nothing_else_ran(before).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_speaks_for_what_it_serves_only() {
    let mut bugged = Bugged::start().await;
    let (_, call) = bugged.record_call().await;
    let before = bugged.runs();
    let other = sealed(Arc::clone(&bugged.bus), &worker_keys(&["workspace/two"]));
    let frame = call_frame();
    let reply = Subject::new("octoprox.1.inbox.other.x.workspace=2ftwo.y");
    let mut replies = other.subscribe(&reply, None).await.unwrap();
    let foreign = [
        call.subject.as_str(),
        "octoprox.1.call.workspace=2fone.test",
        "octoprox.1.call.front=2ffront.mcp",
        "octoprox.1.notice.workspace=2fone.test",
        "octoprox.1.claim.workspace=2fone",
        "octoprox.1.fronts",
        call.reply.as_ref().unwrap().as_str(),
    ];
    for to in foreign {
        let message = Message::new(Subject::new(to), Some(reply.clone()), frame.clone());
        assert!(other.publish(message).await.is_err(), "{to}");
    }
    // Sealed for itself, and moved to the others.
    let mut own =
        bugged.bus.subscribe(&Subject::new("octoprox.1.call.workspace=2ftwo.test"), None).await.unwrap();
    let to = Subject::new("octoprox.1.call.workspace=2ftwo.test");
    other.publish(Message::new(to, Some(reply.clone()), frame.clone())).await.unwrap();
    let moved = own.next().await.unwrap();
    for to in foreign {
        bugged.bus.publish(Message { subject: Subject::new(to), ..moved.clone() }).await.unwrap();
    }
    // It cannot have a node that has both keys answer somebody else's address, either.
    let both = sealed(Arc::clone(&bugged.bus), &secret());
    let mut heard = both.subscribe(&Subject::new("octoprox.1.call.workspace=2ftwo.>"), None).await.unwrap();
    let to = Subject::new("octoprox.1.call.workspace=2ftwo.test");
    other.publish(Message::new(to.clone(), call.reply, frame.clone())).await.unwrap();
    other.publish(Message::new(to, Some(reply), Bytes::from_static(b"own"))).await.unwrap();
    assert_eq!(heard.next().await.unwrap().payload, "own");
    bugged.nothing_else_ran(before).await;
    assert!(replies.next().now_or_never().is_none());
}

struct Report;

impl NodeReport for Report {
    fn status(&self) -> NodeStatus {
        NodeStatus { node: "front".to_owned(), ..NodeStatus::default() }
    }

    fn metrics(&self) -> String {
        "octoprox_calls_total 1\n".to_owned()
    }
}

/// Two fronts under attack: what they say to each other, claims, and their status.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fronts_hear_each_other_and_no_stranger() {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
    let mut heard = bus.subscribe(&Subject::new("octoprox.>"), None).await.unwrap();
    let one = Node::open("front-1", sealed(Arc::clone(&bus), &secret())).await.unwrap();
    let two = Node::open("front-2", sealed(Arc::clone(&bus), &secret())).await.unwrap();
    let taken = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&taken);
    let messages = FrontMessages::new(&two).unwrap();
    let _server = messages
        .serve(Box::new(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { true })
        }))
        .await
        .unwrap();
    let _status = serve_status(&one, Arc::new(Report)).await.unwrap();
    let _claim = ServiceClaim::acquire(&one, "workspace/one").await.unwrap().unwrap();

    let from_one = FrontMessages::new(&one).unwrap();
    assert!(from_one.offer(Json::of(&"hello"), Duration::from_secs(20)).await.unwrap());
    assert_eq!(taken.load(Ordering::SeqCst), 1);
    let statuses = collect_status(&two, Duration::from_secs(1)).await.unwrap();
    assert_eq!(statuses.len(), 1);
    assert!(collect_metrics(&two, "front", Duration::from_millis(100)).await.unwrap().is_none());

    // A stranger repeats everything, and says the same in plain text.
    let said: Vec<Message> = std::iter::from_fn(|| heard.next().now_or_never().flatten()).collect();
    let envelope = br#"{"sender":"stranger","message":"hello"}"#;
    let better = br#"{"id":"aaaaaaaaaaaaaaaaaaaaaaaaaa","standing":"lease","sent_ms":0}"#;
    let reply = Some(Subject::new("stranger"));
    let mut replies = bus.subscribe(&Subject::new("stranger"), None).await.unwrap();
    for message in said {
        bus.publish(message).await.unwrap();
    }
    for (to, frame) in [
        ("octoprox.1.fronts", whole(50, envelope)),
        ("octoprox.1.claim.workspace=2fone", whole(CLAIM, better)),
        ("octoprox.1.status", Bytes::new()),
    ] {
        bus.publish(Message::new(Subject::new(to), reply.clone(), frame)).await.unwrap();
    }
    assert!(from_one.offer(Json::of(&"again"), Duration::from_secs(20)).await.unwrap());
    assert_eq!(taken.load(Ordering::SeqCst), 2);
    assert!(_claim.check().holds());
    assert!(replies.next().now_or_never().is_none());
    // A worker without the key of the fronts hears nothing of them.
    let stranger = Node::open("stranger", sealed(bus, &worker_keys(&["workspace/one"]))).await.unwrap();
    assert!(FrontMessages::new(&stranger).unwrap().send(Json::of(&"hello")).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_fleet_on_the_same_bus_is_not_heard() {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
    let other = sealed(Arc::clone(&bus), &Secret::new("the secret of another fleet, as long as ours"));
    let worker = Node::open("worker", sealed(Arc::clone(&bus), &secret())).await.unwrap();
    let source = Arc::new(crate::test_source::TestSource::default());
    let address = SourceAddress::new("workspace/one", "test").unwrap();
    let served = Arc::clone(&source) as Arc<dyn Source>;
    let _server = serve_source(&worker, address.clone(), served, None).await.unwrap();
    let front = Node::open("front", other).await.unwrap();
    let remote = RemoteSource::new(&front, address, "test", results());
    let mut listing = remote.listing();
    let down = listing.wait_for(|state| matches!(state.state, SourceState::Down(_)));
    tokio::time::timeout(Duration::from_secs(20), down).await.unwrap().unwrap();
    assert_eq!(source.started.load(Ordering::SeqCst), 0);
}

/// Numbers of xorshift, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit.max(1) as u64).unwrap()
    }

    fn mutate(&mut self, said: &[Message]) -> Message {
        let mut message = said[self.below(said.len())].clone();
        let mut payload = message.payload.to_vec();
        let other = &said[self.below(said.len())];
        match self.below(8) {
            0 => payload.truncate(self.below(payload.len())),
            1 => payload.extend_from_slice(&other.payload[..self.below(other.payload.len())]),
            2 => message.subject = other.subject.clone(),
            3 => message.reply.clone_from(&other.reply),
            4 => {
                let at = self.below(payload.len().min(other.payload.len()));
                payload.truncate(at);
                payload.extend_from_slice(&other.payload[at..]);
            }
            _ => {
                for _ in 0..=self.below(3) {
                    let at = self.below(payload.len());
                    if let Some(byte) = payload.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        Message { payload: payload.into(), ..message }
    }
}

/// Publishes mutated messages of a fleet. Without keys, nobody knows what they run; with keys, they run nothing.
async fn publish_mutated(count: usize) {
    let mut bugged = Bugged::start().await;
    let (mut said, _) = bugged.record_call().await;
    bugged.fleet.call("progress", r#"{"count":3}"#).await.unwrap();
    bugged.fleet.call("big", r#"{"bytes":2000000}"#).await.unwrap();
    said.extend(bugged.recorded());
    let (before, mut random) = (bugged.runs(), Random(0x9e37_79b9_7f4a_7c15));
    for sent in 0..count {
        bugged.bus.publish(random.mutate(&said)).await.unwrap();
        if sent % 256 == 255 {
            // The receivers take their turn, so that the bus drops nothing.
            bugged.recorded();
            bugged.fleet.call_when_served("echo").await;
        }
    }
    let honest = (count / 256) as u64;
    bugged.nothing_else_ran(before + honest).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_messages_run_nothing() {
    publish_mutated(20_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes"]
async fn a_million_mutated_messages_run_nothing() {
    publish_mutated(1_000_000).await;
}

/// The same frames from a node that has the key, or on a bus without keys: no node ends, whatever they run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_frames_of_a_node_end_no_other() {
    let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
    let mut heard = bus.subscribe(&Subject::new("octoprox.>"), None).await.unwrap();
    let fleet = Fleet::on(Arc::clone(&bus), Arc::clone(&bus), None).await;
    for (name, params) in [("echo", "{}"), ("progress", r#"{"count":3}"#), ("big", r#"{"bytes":600000}"#)] {
        fleet.call(name, params).await.unwrap();
    }
    let said: Vec<Message> = std::iter::from_fn(|| heard.next().now_or_never().flatten()).collect();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for sent in 0..20_000 {
        bus.publish(random.mutate(&said)).await.unwrap();
        if sent % 256 == 255 {
            let _ = std::iter::from_fn(|| heard.next().now_or_never().flatten()).count();
            tokio::task::yield_now().await;
        }
    }
    eventually("the worker runs calls", || !fleet.source.started.load(Ordering::SeqCst).eq(&0)).await;
    fleet.call_when_served("echo").await;
}
