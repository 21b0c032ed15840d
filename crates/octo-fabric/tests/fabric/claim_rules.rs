//! Which of several nodes may serve something, if they share no database.

use crate::fleet::{BusKind, DEADLINE, bus_rules, eventually};
use crate::nats_server::NatsServer;
use bytes::Bytes;
use octo_fabric::{
    Bus, BusState, InProcessBus, LeaseCheck, Message, Node, ServiceClaim, ServiceLease, Subject,
};
use octo_ports::Stores;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

const SERVICE: &str = "workspace/one";
const CLAIMS: &str = "octoprox.1.claim.workspace=2fone";
const CLAIM: u8 = 49;

/// Nodes that hear each other.
struct Claimants {
    nodes: Vec<Arc<Node>>,
    _nats: Option<NatsServer>,
}

impl Claimants {
    async fn start(kind: BusKind) -> Self {
        const COUNT: usize = 8;
        let (nats, shared) = match kind {
            BusKind::InProcess => (None, Some(Arc::new(InProcessBus::default()) as Arc<dyn Bus>)),
            BusKind::Nats => (Some(NatsServer::start()), None),
        };
        let mut nodes = Vec::new();
        for number in 0..COUNT {
            let name = format!("node{number}");
            let bus = match (&shared, &nats) {
                (Some(bus), _) => Arc::clone(bus),
                (None, Some(nats)) => nats.bus(&name).await,
                (None, None) => unreachable!(),
            };
            nodes.push(Node::open(name, bus).await.unwrap());
        }
        Self { nodes, _nats: nats }
    }
}

async fn acquire(node: &Arc<Node>) -> Option<ServiceClaim> {
    ServiceClaim::acquire(node, SERVICE).await.unwrap()
}

/// Claims until nobody objects.
async fn acquire_when_free(node: &Arc<Node>) -> ServiceClaim {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(claim) = acquire(node).await {
            return claim;
        }
        assert!(Instant::now() < deadline, "somebody objects");
    }
}

bus_rules!(
    Claimants;
    one_of_many_claimants_holds,
    a_claim_that_is_dropped_is_free_for_the_next,
    a_claimant_is_refused_at_once,
    malformed_claims_are_ignored,
    a_lease_ends_a_claim,
);

async fn one_of_many_claimants_holds(fleet: Claimants) {
    for round in 0..3 {
        // Not the same one: the last message of a claim that was dropped may still arrive.
        let service = format!("workspace/{round}");
        let claims = fleet.nodes.iter().map(|node| ServiceClaim::acquire(node, &service));
        let claims = futures_util::future::join_all(claims).await;
        let held: Vec<_> = claims.into_iter().filter_map(Result::unwrap).collect();
        assert_eq!(held.len(), 1);
        assert!(held[0].check().holds());
    }
}

async fn a_claim_that_is_dropped_is_free_for_the_next(fleet: Claimants) {
    let mut checks = Vec::new();
    for node in &fleet.nodes[..3] {
        let claim = acquire_when_free(node).await;
        checks.push(claim.check());
        assert!(claim.check().holds());
    }
    for check in checks {
        assert!(!check.holds());
        timeout(DEADLINE, check.lost()).await.unwrap();
    }
}

async fn a_claimant_is_refused_at_once(fleet: Claimants) {
    let claim = acquire(&fleet.nodes[0]).await.unwrap();
    for node in &fleet.nodes[1..] {
        let started = Instant::now();
        assert!(acquire(node).await.is_none());
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    }
    assert!(claim.check().holds());
    // Another service is free.
    assert!(ServiceClaim::acquire(&fleet.nodes[1], "workspace/two").await.unwrap().is_some());
}

/// The version of the protocol.
const PROTOCOL: u8 = 2;

fn claim_frame(version: u8, kind: u8, body: &str) -> Bytes {
    [&[version, 1, 0, 0, 0, 0, kind], body.as_bytes()].concat().into()
}

async fn malformed_claims_are_ignored(fleet: Claimants) {
    let [holder, other, hostile] = &fleet.nodes[..3] else { unreachable!() };
    let claim = acquire(holder).await.unwrap();
    let best = |id: &str| json!({"id": id, "standing": "lease", "sent_ms": 0}).to_string();
    let id = "2".repeat(26);
    let frames = [
        Bytes::new(),
        Bytes::from_static(b"garbage of another program"),
        claim_frame(PROTOCOL, CLAIM, ""),
        claim_frame(PROTOCOL, CLAIM, "{"),
        claim_frame(PROTOCOL, CLAIM, "{}"),
        claim_frame(PROTOCOL, CLAIM, &json!({"id": id, "standing": "king", "sent_ms": 0}).to_string()),
        claim_frame(PROTOCOL, CLAIM, &json!({"id": id, "standing": "lease", "sent_ms": -1}).to_string()),
        claim_frame(PROTOCOL, CLAIM, &best("")),
        claim_frame(PROTOCOL, CLAIM, &best(&"0".repeat(10_000))),
        claim_frame(PROTOCOL, CLAIM + 1, &best(&id)),
        claim_frame(PROTOCOL + 1, CLAIM, &best(&id)),
    ];
    for frame in frames {
        hostile.bus().publish(Message::new(Subject::new(CLAIMS), None, frame)).await.unwrap();
    }
    assert!(acquire(hostile).await.is_none(), "the holder has read them all by now");
    assert!(claim.check().holds());
    // Nor do they keep anybody from claiming.
    drop(claim);
    let flood = async {
        loop {
            let message = Message::new(Subject::new(CLAIMS), None, claim_frame(PROTOCOL, CLAIM, &best("")));
            hostile.bus().publish(message).await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        claim = acquire_when_free(other) => assert!(claim.check().holds()),
        () = flood => {}
    }
    // The same frame with a well-formed id is a better claim.
    let claim = acquire_when_free(other).await;
    let message = Message::new(Subject::new(CLAIMS), None, claim_frame(PROTOCOL, CLAIM, &best(&id)));
    hostile.bus().publish(message).await.unwrap();
    timeout(DEADLINE, claim.check().lost()).await.unwrap();
}

async fn a_lease_ends_a_claim(fleet: Claimants) {
    let [claimant, other, third] = &fleet.nodes[..3] else { unreachable!() };
    let claim = acquire(claimant).await.unwrap();
    let leases = Stores::in_memory().leases;
    let lease = ServiceLease::acquire(&leases, SERVICE).await.unwrap().unwrap();
    let of_lease = ServiceClaim::of_lease(other, SERVICE, lease.check(), None).await.unwrap();
    timeout(DEADLINE, claim.check().lost()).await.unwrap();
    assert!(!claim.check().holds());
    assert!(acquire(claimant).await.is_none());
    assert!(of_lease.check().holds());
    lease.release().await.unwrap();
    drop(of_lease);
    acquire_when_free(third).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_that_were_apart_one_remains() {
    for _ in 0..3 {
        let (first, mut second) = (NatsServer::start(), NatsServer::start());
        let one = Node::open("one", first.bus("one").await).await.unwrap();
        let two = Node::open("two", second.bus("two").await).await.unwrap();
        let (one, two) = (acquire(&one).await.unwrap(), acquire(&two).await.unwrap());
        let checks = [one.check(), two.check()];
        assert!(checks.iter().all(LeaseCheck::holds));
        second.kill();
        let _relay = AbortOnDropHandle::new(tokio::spawn(relay(second.port, first.port)));
        eventually("one gives way", || !checks.iter().all(LeaseCheck::holds)).await;
        let [one, two] = &checks;
        let (winner, loser) = if one.holds() { (one, two) } else { (two, one) };
        timeout(DEADLINE, loser.lost()).await.unwrap();
        assert!(winner.holds() && !loser.holds());
    }
}

async fn relay(from: u16, to: u16) {
    let listener = TcpListener::bind(("127.0.0.1", from)).await.unwrap();
    while let Ok((mut client, _)) = listener.accept().await {
        let mut server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        tokio::spawn(async move { tokio::io::copy_bidirectional(&mut client, &mut server).await });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_survives_a_restart_of_nats_but_not_its_absence() {
    let mut nats = NatsServer::start();
    let node = Node::open("one", nats.bus("one").await).await.unwrap();
    let claim = acquire(&node).await.unwrap();
    nats.kill();
    nats.spawn();
    let state = node.bus().state();
    eventually("it is connected again", || *state.borrow() == BusState::Connected(2)).await;
    let late = Node::open("late", nats.bus("late").await).await.unwrap();
    assert!(acquire(&late).await.is_none());
    assert!(claim.check().holds());
    nats.kill();
    timeout(DEADLINE, claim.check().lost()).await.unwrap();
    assert!(!claim.check().holds());
}
