//! Who may do what at NATS: keys and permissions per node, JWTs, TLS.

use crate::fleet::{Fleet, address};
use crate::nats_server::{NatsServer, connected};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures_util::StreamExt;
use nkeys::KeyPair;
use octo_fabric::{
    Bus, BusError, BusState, Message, NatsBus, NatsCredentials, NatsOptions, NatsProblem, Node, ServiceClaim,
    Subject, check_nats,
};
use octo_model::Secret;
use serde_json::{Value, json};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

fn seed(key: &KeyPair) -> Secret {
    Secret::new(key.seed().unwrap())
}

/// The permissions of a front, and of a worker that serves one workspace; as in docs/guide/fleet.md.
fn permissions(node: &str) -> Value {
    let inbox = format!("octoprox.1.inbox.{node}.>");
    if node.starts_with("front") {
        json!({
            "publish": ["octoprox.1.call.>", "octoprox.1.inbox.>", "octoprox.1.status"],
            "subscribe": [inbox, "octoprox.1.notice.>", "octoprox.1.status"],
        })
    } else {
        let (calls, claims) = ("octoprox.1.call.workspace=2fone.>", "octoprox.1.claim.workspace=2fone");
        json!({
            "publish": ["octoprox.1.inbox.>", "octoprox.1.notice.workspace=2fone.>", claims],
            "subscribe": [inbox, calls, claims, "octoprox.1.status"],
        })
    }
}

/// A server where these nodes have the permissions of their role, and their connections.
async fn with_permissions<const COUNT: usize>(nodes: [&str; COUNT]) -> (NatsServer, [Arc<dyn Bus>; COUNT]) {
    let nodes = nodes.map(|node| (node, KeyPair::new_user()));
    let user =
        |(node, key): &(&str, KeyPair)| json!({"nkey": key.public_key(), "permissions": permissions(node)});
    let users: Vec<Value> = nodes.iter().map(user).collect();
    let server = NatsServer::with_config(&format!("authorization: {}", json!({"users": users})));
    let buses = nodes.iter().map(|(node, key)| {
        let options = with_key(&server, node, key);
        async move { connected(&options).await }
    });
    let buses = futures_util::future::join_all(buses).await;
    (server, buses.try_into().unwrap_or_else(|_| unreachable!()))
}

fn with_key(server: &NatsServer, node: &str, key: &KeyPair) -> NatsOptions {
    NatsOptions { credentials: NatsCredentials::NKey(seed(key)), ..server.options(node) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_have_keys_with_the_permissions_of_their_role() {
    let (_server, [front, worker]) = with_permissions(["front", "worker"]).await;
    let fleet = Fleet::on(front, Arc::clone(&worker), None).await;
    assert!(fleet.call("echo", "{}").await.is_ok());
    assert!(fleet.call("big", r#"{"bytes":3000000}"#).await.is_ok());
    // A worker can neither hear the replies for others nor call.
    let mut heard = worker.subscribe(&Subject::new("octoprox.1.inbox.>"), None).await.unwrap();
    let mut calls = worker.subscribe(&Subject::new("octoprox.1.call.>"), None).await.unwrap();
    let mut own = worker.subscribe(&Subject::new("octoprox.1.inbox.worker.test"), None).await.unwrap();
    fleet.call("echo", "{}").await.unwrap();
    let call = Subject::new("octoprox.1.call.workspace=2fone.test.x");
    let inbox = Subject::new("octoprox.1.inbox.worker.test");
    worker.publish(Message::new(call, Some(inbox.clone()), Bytes::from_static(b"x"))).await.unwrap();
    worker.publish(Message::new(inbox, None, Bytes::from_static(b"own"))).await.unwrap();
    assert_eq!(own.next().await.unwrap().payload, "own", "the call was not delivered before");
    assert!(tokio::time::timeout(Duration::from_millis(200), heard.next()).await.is_err());
    assert!(tokio::time::timeout(Duration::from_millis(200), calls.next()).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_claim_their_own_workspace_only() {
    let (_server, buses) = with_permissions(["front", "worker1", "worker2"]).await;
    let names = ["front", "worker1", "worker2"].into_iter().zip(buses);
    let nodes = names.map(|(name, bus)| async move { Node::open(name, bus).await.unwrap() });
    let nodes = futures_util::future::join_all(nodes).await;
    let [front, one, two] = nodes.as_slice() else { unreachable!() };
    let held = ServiceClaim::acquire(one, "workspace/one").await.unwrap().unwrap();
    assert!(ServiceClaim::acquire(two, "workspace/one").await.unwrap().is_none());
    // What nobody could object to is not held.
    assert!(ServiceClaim::acquire(front, "workspace/one").await.is_err());
    assert!(ServiceClaim::acquire(two, "workspace/two").await.is_err());
    assert!(held.check().holds());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_accepts_anybody_is_not_used() {
    let open = NatsServer::start();
    connected(&open.options("front")).await;
    let key = KeyPair::new_user();
    let careful = NatsOptions { allow_open: false, ..with_key(&open, "front", &key) };
    let bus = NatsBus::connect(&careful).await.unwrap();
    let mut state = bus.state();
    let refused = state.wait_for(|state| *state == BusState::Open);
    tokio::time::timeout(Duration::from_secs(20), refused).await.expect("no connection").unwrap();
    let message = Message::new(Subject::new("octoprox.1.status"), None, Bytes::new());
    assert!(bus.publish(message).await.is_err());
    assert_eq!(check_nats(&careful).await, Err(NatsProblem::Open));
    assert!(check_nats(&open.options("front")).await.is_ok());

    let users = json!({"users": [{"nkey": key.public_key()}]});
    let closed = NatsServer::with_config(&format!("authorization: {users}"));
    let careful = NatsOptions { allow_open: false, ..with_key(&closed, "front", &key) };
    connected(&careful).await;
    assert!(check_nats(&careful).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_malformed_seed_is_refused_at_once() {
    let server = NatsServer::start();
    let public_key = KeyPair::new_user().public_key();
    for seed in ["", "SUAHUNTER2", public_key.as_str()] {
        let credentials = NatsCredentials::NKey(Secret::new(seed.to_owned()));
        let options = NatsOptions { credentials, ..server.options("worker") };
        let error = NatsBus::connect(&options).await.err().unwrap();
        assert_eq!(error, BusError::Invalid("the credentials are not the seed of an nkey"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_keys_are_refused() {
    let key = KeyPair::new_user();
    let users = json!({"users": [{"nkey": key.public_key()}]});
    let server = NatsServer::with_config(&format!("authorization: {users}"));
    connected(&with_key(&server, "known", &key)).await;
    for options in [with_key(&server, "unknown", &KeyPair::new_user()), server.options("without")] {
        let bus = NatsBus::connect(&options).await.unwrap();
        let mut state = bus.state();
        let wait = state.wait_for(|state| matches!(state, BusState::Connected(_)));
        assert!(tokio::time::timeout(Duration::from_millis(500), wait).await.is_err());
    }
}

/// A JWT as NATS defines it: the claims, signed with an nkey.
fn jwt(issuer: &KeyPair, subject: &KeyPair, name: &str, claims: &Value) -> String {
    let claims = json!({
        "jti": name, "iat": 1, "iss": issuer.public_key(), "sub": subject.public_key(), "name": name, "nats": claims,
    });
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&header), part(&claims));
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_log_in_with_jwts() {
    let [operator, account] = [KeyPair::new_operator(), KeyPair::new_account()];
    let operator_jwt = jwt(&operator, &operator, "operator", &json!({"type": "operator", "version": 2}));
    let limits =
        json!({"subs": -1, "data": -1, "payload": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1});
    let account_claims = json!({"type": "account", "version": 2, "limits": limits});
    let account_jwt = jwt(&operator, &account, "fleet", &account_claims);
    let server = NatsServer::with_config(&format!(
        "operator: \"{operator_jwt}\"\nresolver: MEMORY\nresolver_preload: {{ {}: \"{account_jwt}\" }}",
        account.public_key()
    ));
    let options = |node: &str, issuer: &KeyPair| {
        let user = KeyPair::new_user();
        let access = permissions(node);
        let claims = json!({
            "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1,
            "pub": {"allow": access["publish"]}, "sub": {"allow": access["subscribe"]},
        });
        let token = jwt(issuer, &user, node, &claims);
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().unwrap()
        );
        NatsOptions { credentials: NatsCredentials::Jwt(Secret::new(text)), ..server.options(node) }
    };
    let front = connected(&options("front", &account)).await;
    let worker = connected(&options("worker", &account)).await;
    let fleet = Fleet::on(front, worker, None).await;
    assert!(fleet.call("echo", "{}").await.is_ok());
    let forged = NatsBus::connect(&options("front", &KeyPair::new_account())).await.unwrap();
    let mut state = forged.state();
    let wait = state.wait_for(|state| matches!(state, BusState::Connected(_)));
    assert!(tokio::time::timeout(Duration::from_millis(500), wait).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_verifies_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (key, certificate) = (dir.path().join("key.pem"), dir.path().join("cert.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1,DNS:localhost",
            "-addext",
            "basicConstraints=CA:FALSE",
        ])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let tls = format!("tls {{ cert_file: {:?}, key_file: {:?} }}", certificate, key);
    let server = NatsServer::with_config(&tls);
    let options = |ca_file, scheme: &str| NatsOptions {
        servers: vec![format!("{scheme}://127.0.0.1:{}", server.port)],
        ca_file,
        ..server.options("front")
    };
    connected(&options(Some(certificate.clone()), "tls")).await;
    // Neither a certificate that nobody vouches for, nor a connection without TLS.
    let bus = NatsBus::connect(&options(None, "tls")).await.unwrap();
    let mut state = bus.state();
    let wait = state.wait_for(|state| matches!(state, BusState::Connected(_)));
    assert!(tokio::time::timeout(Duration::from_millis(500), wait).await.is_err());
    assert_eq!(address().to_string(), "workspace/one/test");
}

#[tokio::test]
async fn credentials_do_not_belong_into_addresses() {
    let options = NatsOptions {
        servers: vec!["nats://user:hunter2@127.0.0.1:4222".to_owned()],
        credentials: NatsCredentials::None,
        ca_file: None,
        node: "front".to_owned(),
        allow_open: false,
    };
    let error = NatsBus::connect(&options).await.err().unwrap().to_string();
    assert!(error.contains("credentials") && !error.contains("hunter2"), "{error}");
}
