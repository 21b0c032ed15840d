//! Requests of legacy servers reach the one client concerned, or none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and plays the servers itself"
)]

mod common;
use common::mock_http::{MockServer, event_stream, legacy_preamble, sse_event, tools};
use common::{RecordingPeer, call, first_text_json, start_stub, wait_ready};
use octo_upstream::{Upstream, UpstreamSpec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

fn yes() -> Option<Value> {
    Some(json!({"action": "accept", "content": {"ok": true}, "vendor": 1}))
}

#[tokio::test]
async fn a_program_may_ask_the_only_client() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let client = RecordingPeer::new(1, yes());
    let answer = first_text_json(&call(&upstream, &client.peer(), "elicit", json!({})).await.unwrap());
    assert_eq!(answer["result"], yes().unwrap());
    let asked = client.requests.lock().unwrap().clone();
    assert_eq!(asked[0].0, "elicitation/create");
    assert_eq!(asked[0].1, json!({"message": "sure?", "mode": "form", "_meta": {"keep": 1}}));
    let answer = first_text_json(&call(&upstream, &client.peer(), "ping", json!({})).await.unwrap());
    assert_eq!(answer["result"], json!({}));
    let answer = first_text_json(&call(&upstream, &client.peer(), "strange", json!({})).await.unwrap());
    assert_eq!(answer["error"]["code"], -32601);
    let mute = RecordingPeer::new(2, None);
    let answer = first_text_json(&call(&upstream, &mute.peer(), "elicit", json!({})).await.unwrap());
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test]
async fn a_server_may_take_its_question_back() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let never = RecordingPeer::new(1, Some(Value::Null));
    let peer = never.peer();
    let (busy, asked) = (upstream.clone(), peer.clone());
    let calling = tokio::spawn(async move { call(&busy, &asked, "retract", json!({})).await });
    wait_until(|| never.requests.lock().unwrap().len() == 1).await;
    // The test holds two, the call three: the request has released its own.
    wait_until(|| Arc::strong_count(&never) == 5).await;
    assert!(!calling.is_finished());
    calling.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_server_that_floods_a_client_is_stopped() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    for (count, size, asked) in [(500, 10, 16), (3, 2_000_000, 0)] {
        let never = RecordingPeer::new(1, Some(Value::Null));
        call(&upstream, &never.peer(), "question_flood", json!({"count": count, "size": size}))
            .await
            .unwrap();
        assert_eq!(never.requests.lock().unwrap().len(), asked, "{count} questions of {size} bytes");
        let told = never.notifications.lock().unwrap().len();
        assert_eq!(told > 0, asked > 0, "{told} notices of {size} bytes");
    }
    upstream.stop().await;
}

#[tokio::test]
async fn nobody_is_asked_when_two_clients_could_be_meant() {
    let upstream = start_stub("legacy");
    wait_ready(&upstream).await;
    let (one, other) = (RecordingPeer::new(1, yes()), RecordingPeer::new(2, yes()));
    let (busy, peer) = (upstream.clone(), other.peer());
    let holding = tokio::spawn(async move { call(&busy, &peer, "hold", json!({})).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let answer = first_text_json(&call(&upstream, &one.peer(), "elicit", json!({})).await.unwrap());
    assert!(answer["error"]["code"].is_i64());
    assert!(one.requests.lock().unwrap().is_empty() && other.requests.lock().unwrap().is_empty());
    holding.abort();
    let _ = holding.await;
    let answer = first_text_json(&call(&upstream, &one.peer(), "elicit", json!({})).await.unwrap());
    assert_eq!(answer["result"]["action"], "accept");
}

/// A server request, the response to its call, and the stream for both.
type Waiting = (String, Value, UnboundedSender<String>);

/// Server whose calls send requests on their own streams and end after the response.
async fn asking_server() -> MockServer {
    let open: Arc<Mutex<Vec<Waiting>>> = Arc::default();
    MockServer::start(move |hit| {
        let open = open.clone();
        async move {
            if hit.rpc_method() == "answer" {
                let mut open = open.lock().unwrap();
                let at = open.iter().position(|(question, ..)| hit.body["id"] == *question).unwrap();
                let (_, mut done, sender) = open.remove(at);
                done["result"] = json!({"content": [], "answer": hit.body});
                sender.send(sse_event(&done)).unwrap();
            }
            legacy_preamble(&hit, json!({"tools": {}})).unwrap_or_else(|| {
                if hit.rpc_method() == "tools/list" {
                    return tools(&hit, &["a"]);
                }
                let (sender, response) = event_stream();
                let id = format!("q-{}", hit.body["params"]["arguments"]["n"]);
                let question = json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": id}});
                sender.send(sse_event(&question)).unwrap();
                open.lock().unwrap().push((id, hit.result(Value::Null), sender));
                response
            })
        }
    })
    .await
}

#[tokio::test]
async fn a_question_on_a_calls_stream_goes_to_that_calls_client() {
    let server = asking_server().await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let clients: Vec<_> = (0..4)
        .map(|n| RecordingPeer::new(n, Some(json!({"action": "accept", "content": {"n": n}}))))
        .collect();
    let peers: Vec<_> = clients.iter().map(|client| client.peer()).collect();
    let calls = peers.iter().enumerate().map(|(n, peer)| call(&upstream, peer, "a", json!({"n": n})));
    for (n, result) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
        assert_eq!(result.unwrap()["answer"]["result"]["content"]["n"], n);
    }
    for (n, client) in clients.iter().enumerate() {
        let asked = client.requests.lock().unwrap().clone();
        assert_eq!(asked, [("elicitation/create".to_owned(), json!({"message": format!("q-{n}")}))]);
    }
}

#[tokio::test]
async fn a_question_ends_with_its_call() {
    let server = asking_server().await;
    let upstream = Upstream::start(UpstreamSpec::http("s", &server.url));
    wait_ready(&upstream).await;
    let never = RecordingPeer::new(1, Some(Value::Null));
    let peer = never.peer();
    let waiting =
        tokio::time::timeout(Duration::from_millis(300), call(&upstream, &peer, "a", json!({"n": 1}))).await;
    assert!(waiting.is_err());
    drop(peer);
    server.wait_for("notifications/cancelled", 1).await;
    assert_eq!(server.count("answer"), 0);
    // The task that waited for the person is gone: only the test holds the client.
    wait_until(|| Arc::strong_count(&never) == 1).await;
}

async fn wait_until(true_at_last: impl Fn() -> bool) {
    for _ in 0..500 {
        if true_at_last() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came true");
}
