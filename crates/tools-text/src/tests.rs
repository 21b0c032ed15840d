//! Against a fake model on loopback that counts and records.
#![expect(clippy::disallowed_methods, reason = "tests listen on loopback")]

use crate::model_toolbox;
use axum::Json as Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use octo_grants::llm::LlmSpec;
use octo_grants::net::NetSpec;
use octo_grants::{Capabilities, Llm, Net};
use octo_toolkit::{Kind, Secret, ToolError, ToolFixture};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

type RecordedRequests = Arc<Mutex<Vec<(Value, HeaderMap)>>>;

async fn chat_completions(
    State(asked): State<RecordedRequests>,
    headers: HeaderMap,
    Body(body): Body<Value>,
) -> Response {
    asked.lock().unwrap().push((body.clone(), headers));
    let text = body["messages"][1]["content"].as_str().unwrap();
    if text.contains("too many") {
        let said = json!({"error": {"message": "Rate limit reached"}});
        return (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "7")], Body(said)).into_response();
    }
    if text.contains("odd") {
        return Body(json!({"choices": []})).into_response();
    }
    let first: String = text.trim_start_matches("<text>\n").chars().take(12).collect();
    Body(json!({"choices": [{"message": {"content": format!("Sum of {first}")}}]})).into_response()
}

async fn start_model() -> (Capabilities, RecordedRequests) {
    let requests = RecordedRequests::default();
    let routes = axum::Router::new()
        .route("/v1/chat/completions", axum::routing::post(chat_completions))
        .with_state(Arc::clone(&requests));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap()).parse().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let net = Net::new(NetSpec { allow: vec!["127.0.0.1".into()], ..NetSpec::default() }).unwrap();
    let llm = Llm::new(net, LlmSpec { url, key: Some(Secret::new("k-1")), model: "m".into() }).unwrap();
    (Capabilities::default().with(llm), requests)
}

async fn summarize(doors: &Capabilities, input: Value) -> Result<Value, ToolError> {
    ToolFixture::new(model_toolbox(), doors.clone()).call("text_summarize", input).await
}

#[tokio::test]
async fn a_short_text_is_one_question_with_the_key_and_the_style() {
    let (doors, asked) = start_model().await;
    let got = summarize(&doors, json!({"text": "Ada presented.", "style": "one word", "max_tokens": 20}))
        .await
        .unwrap();
    assert_eq!(got, json!({"summary": "Sum of Ada presente", "parts": 1}));
    let asked = asked.lock().unwrap();
    let [(body, headers)] = asked.as_slice() else { panic!("{}", asked.len()) };
    assert_eq!((&body["model"], &body["max_tokens"]), (&json!("m"), &json!(20)));
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("Style: one word."));
    assert_eq!(headers["authorization"], "Bearer k-1");
}

#[tokio::test]
async fn a_long_text_is_read_in_parts_in_order_and_merged() {
    let (doors, asked) = start_model().await;
    let text: String =
        (0..12).map(|n| format!("Chapter {n:02}. {}\n\n", "words and more. ".repeat(700))).collect();
    let got = summarize(&doors, json!({"text": text})).await.unwrap();
    let asked = asked.lock().unwrap();
    assert_eq!(got["parts"].as_u64().unwrap() as usize, asked.len() - 1);
    let last = asked.last().unwrap().0["messages"][1]["content"].as_str().unwrap();
    assert!(last.starts_with("<text>\nSum of Chapter 00."), "{last}");
    assert!(last.matches("Sum of").count() == asked.len() - 1);
}

#[tokio::test]
async fn what_cannot_be_done_says_what_to_do() {
    for (text, kind, hint) in [
        (" \n", Kind::Invalid, "Pass the text"),
        ("too many", Kind::RateLimited, "in 7 s"),
        ("odd", Kind::Unavailable, "llm.url"),
    ] {
        let (doors, _) = start_model().await;
        let error = summarize(&doors, json!({"text": text})).await.unwrap_err();
        assert_eq!(error.kind, kind, "{text}");
        assert!(error.hint.as_deref().unwrap().contains(hint), "{error:?}");
        assert!(!format!("{error:?}").contains("k-1"));
    }
    let error = summarize(&Capabilities::default(), json!({"text": "x"})).await.unwrap_err();
    assert!(error.hint.unwrap().contains("llm.url"));
}

#[tokio::test]
async fn a_question_is_asked_as_it_is() {
    let (doors, asked) = start_model().await;
    let bench = ToolFixture::new(model_toolbox(), doors);
    let got =
        bench.call("text_ask", json!({"prompt": "Why tea?", "system": "Be brief.", "max_tokens": 9})).await;
    assert_eq!(got.unwrap(), json!({"text": "Sum of Why tea?"}));
    let empty = bench.call("text_ask", json!({"prompt": " "})).await.unwrap_err();
    assert_eq!(empty.kind, Kind::Invalid);
    let asked = asked.lock().unwrap();
    let [(body, _)] = asked.as_slice() else { panic!("{}", asked.len()) };
    assert_eq!((&body["messages"][0]["content"], &body["max_tokens"]), (&json!("Be brief."), &json!(9)));
}
