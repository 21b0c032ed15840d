use super::mcp_fixture::{McpFixture, modern_client, task_client};
use crate::TaskSettings;
use crate::listen::ListenStream;
use crate::shared_fronts::RelayedRequest;
use crate::task::{Task, TaskEnd};
use octo_model::{ItemKind, Json, RpcError};
use octo_ports::Outcome;
use octo_wire::{Id, Message};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The result without members that differ between calls.
fn stable_parts(result: &Value) -> (&Value, &Value, &Value) {
    (&result["content"], &result["isError"], &result["resultType"])
}

#[tokio::test]
async fn a_call_that_takes_long_becomes_a_task_that_ends_with_the_result_of_the_plain_call() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let task = bench.call(&client, "slow").await.unwrap();
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert!(task["ttlMs"].is_u64() && task["pollIntervalMs"].is_u64() && task["createdAt"].is_string());
    assert!(["result", "error", "inputRequests", "requestState"].iter().all(|key| task.get(key).is_none()));
    let id = task["taskId"].as_str().unwrap();
    let got = bench.wait_for_task(&client, id, |task| task["statusMessage"] == "One of three.").await;
    assert_eq!((&got["status"], &got["resultType"]), (&json!("working"), &json!("complete")));
    bench.source.gate.add_permits(2);
    let done = bench.wait_for_status(&client, id, "completed").await;
    let direct = bench.call(&modern_client("anna", json!({})), "slow").await.unwrap();
    assert_eq!(done["result"], direct);
    assert_eq!(bench.stores.0.lock().unwrap().len(), 2, "one record for each call");
}

#[tokio::test]
async fn who_ends_in_time_or_has_not_declared_tasks_gets_the_plain_result() {
    let bench = McpFixture::new(|settings| {
        (settings.long_tool_wait, settings.default_wait) = (Duration::from_secs(5), Duration::from_secs(2));
    });
    bench.source.gate.add_permits(2);
    for (client, tool) in [
        (task_client("anna"), "quick"),
        (task_client("anna"), "unmarked"),
        (modern_client("anna", json!({"elicitation": {}, "extensions": {"com.example/x": {}}})), "slow"),
    ] {
        let result = bench.call(&client, tool).await.unwrap();
        assert_eq!(stable_parts(&result).2, "complete", "{tool}: {result}");
        assert!(result.get("taskId").is_none());
    }
    bench.task(&task_client("anna"), "unmarked").await;
}

#[tokio::test]
async fn a_tool_that_is_listed_only_after_its_call_began_is_a_task_as_soon() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let ready = bench.source.reset_to_starting();
    while bench.mcp.hub.view("").unwrap().by_name(ItemKind::Tool, "slow").is_some() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let lists = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        bench.source.publish(ready);
    };
    let both = async { tokio::join!(bench.task(&client, "slow"), lists) };
    let (id, ()) = tokio::time::timeout(Duration::from_secs(5), both).await.unwrap();
    assert_eq!(bench.task_request(&client, "tasks/get", &id).await.unwrap()["status"], "working");
}

#[tokio::test]
async fn what_needs_the_extension_says_so() {
    let (bench, client) = (McpFixture::new(|_| {}), modern_client("anna", json!({"elicitation": {}})));
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let error = bench.task_request(&client, method, "x").await.unwrap_err();
        assert_eq!(error.code, -32021, "{method}");
        let required = error.data.unwrap().to::<Value>().unwrap();
        let required = required["requiredCapabilities"]["extensions"].clone();
        assert_eq!(required, json!({"io.modelcontextprotocol/tasks": {}}));
    }
    assert_eq!(bench.call(&client, "only_as_task").await.unwrap_err().code, -32021);
    let wanted = Json::from(json!({"notifications": {"taskIds": ["x"]}})).members().unwrap();
    let refused = bench.mcp.listen(&client, Id::number(1), &wanted).await.err();
    assert_eq!(refused.map(|error| error.code), Some(-32021));
    bench.task(&task_client("anna"), "only_as_task").await;
    for method in ["tasks/list", "tasks/result"] {
        assert_eq!(bench.task_request(&task_client("anna"), method, "x").await.unwrap_err().code, -32601);
    }
}

#[tokio::test]
async fn a_task_is_known_to_its_caller_at_its_profile_only() {
    let (bench, anna) = (McpFixture::new(|_| {}), task_client("anna"));
    let id = bench.task(&anna, "slow").await;
    let mut elsewhere = task_client("anna");
    elsewhere.profile = "work".to_owned();
    let missing = bench.task_request(&anna, "tasks/get", "0").await.unwrap_err();
    for client in [task_client("eve"), elsewhere] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({"taskId": id, "inputResponses": {}});
            assert_eq!(bench.request(&client, method, params).await.unwrap_err(), missing, "{method}");
        }
    }
    assert_eq!(missing.code, -32602);
    assert_eq!(
        bench.task_request(&task_client("anna"), "tasks/get", &id).await.unwrap()["status"],
        "working"
    );
    assert!(id.len() == 64 && id != bench.task(&anna, "slow").await);
    for (method, params) in [("tasks/get", json!({})), ("tasks/update", json!({"taskId": id}))] {
        assert_eq!(bench.request(&anna, method, params).await.unwrap_err().code, -32602, "{method}");
    }
}

/// What another node relays in the name of a caller.
async fn relayed(
    bench: &McpFixture,
    client: &crate::client_context::ClientContext,
    method: &str,
    params: Value,
) -> Result<Value, RpcError> {
    let request = RelayedRequest {
        caller: (*client.caller).clone(),
        profile: client.profile.clone(),
        options: client.options,
        capabilities: (*client.capabilities).clone(),
        log_level: None,
        method: method.to_owned(),
        params: Json::from(params).members().unwrap(),
    };
    let (out, _inbox) = tokio::sync::mpsc::channel(8);
    let answer = bench.mcp.answer_relayed(request, out, CancellationToken::new()).await?;
    Ok(answer.to_json().to().unwrap())
}

#[tokio::test]
async fn only_what_belongs_to_a_call_of_this_front_is_answered_for_another_one() {
    let (bench, anna, eve) = (McpFixture::new(|_| {}), task_client("anna"), task_client("eve"));
    let call = json!({"name": "slow", "arguments": {}});
    let state = json!({"name": "slow", "arguments": {}, "requestState": "forged"});
    for (method, params) in [
        ("tools/call", call),
        ("tools/call", state),
        ("resources/read", json!({"uri": "test://a"})),
        ("prompts/get", json!({"name": "a"})),
        ("tools/list", json!({})),
        ("server/discover", json!({})),
        ("tasks/list", json!({})),
        ("tasks/get", json!({})),
        ("initialize", json!({})),
    ] {
        let refused = relayed(&bench, &anna, method, params).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{method}");
    }
    assert_eq!(bench.stores.0.lock().unwrap().len(), 0, "a call was made");
    let id = bench.task(&anna, "slow").await;
    let get = json!({"taskId": id});
    assert_eq!(relayed(&bench, &anna, "tasks/get", get.clone()).await.unwrap()["status"], "working");
    assert!(relayed(&bench, &eve, "tasks/get", get.clone()).await.is_err(), "the task of another caller");
    assert!(relayed(&bench, &eve, "tasks/cancel", get.clone()).await.is_err());
    assert_eq!(relayed(&bench, &anna, "tasks/get", get).await.unwrap()["status"], "working");
}

#[tokio::test]
async fn cancelling_a_task_ends_its_call() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let id = bench.task(&client, "slow").await;
    let answer = bench.task_request(&client, "tasks/cancel", &id).await.unwrap();
    assert!(answer["resultType"] == "complete" && answer.get("status").is_none(), "{answer}");
    let task = bench.wait_for_status(&client, &id, "cancelled").await;
    assert!(task.get("result").is_none() && task.get("error").is_none(), "{task}");
    assert_eq!(bench.source.dropped.load(Ordering::SeqCst), 1);
    let outcomes: Vec<_> = bench.stores.0.lock().unwrap().iter().map(|closing| closing.outcome).collect();
    assert_eq!(outcomes, [Outcome::Error(octo_model::Kind::Cancelled)]);
    assert_eq!(bench.task_request(&client, "tasks/cancel", &id).await.unwrap()["resultType"], "complete");
}

#[tokio::test]
async fn the_end_of_the_face_ends_its_tasks() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let waiting = bench.task(&client, "rounds").await;
    bench.source.gate.add_permits(1);
    bench.wait_for_status(&client, &waiting, "input_required").await;
    let running = bench.task(&client, "slow").await;
    bench.mcp.close();
    for id in [running, waiting] {
        bench.wait_for_status(&client, &id, "cancelled").await;
    }
    assert_eq!(bench.source.dropped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn errors_of_the_protocol_fail_a_task_and_those_of_the_tool_do_not() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let (breaks, fails) = (bench.task(&client, "breaks").await, bench.task(&client, "fails").await);
    bench.source.gate.add_permits(2);
    let broken = bench.wait_for_status(&client, &breaks, "failed").await;
    assert_eq!(broken["error"], json!({"code": -32603, "message": "Broken."}));
    assert!(broken["statusMessage"] == "Broken." && broken.get("result").is_none());
    let failed = bench.wait_for_status(&client, &fails, "completed").await;
    assert_eq!(failed["result"]["isError"], true);
}

#[tokio::test]
async fn questions_in_the_middle_are_answered_one_by_one() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let id = bench.task(&client, "asks").await;
    bench.source.gate.add_permits(1);
    let both = |task: &Value| task["inputRequests"].as_object().is_some_and(|open| open.len() == 2);
    let task = bench.wait_for_task(&client, &id, both).await;
    assert_eq!(task["status"], "input_required");
    assert_eq!(task["inputRequests"]["question_2"], super::mcp_fixture::elicitation("two"));
    let answer = |key: &str, said: &str| json!({"taskId": id, "inputResponses": {key: {"said": said}}});
    for params in
        [answer("question_9", "nobody asked"), answer("question_1", "yes"), answer("question_1", "again")]
    {
        let answer = bench.request(&client, "tasks/update", params).await.unwrap();
        assert_eq!(answer["resultType"], "complete");
    }
    let task = bench.task_request(&client, "tasks/get", &id).await.unwrap();
    assert_eq!(task["inputRequests"], json!({"question_2": super::mcp_fixture::elicitation("two")}));
    assert_eq!(task["status"], "input_required");
    bench.request(&client, "tasks/update", answer("question_2", "no")).await.unwrap();
    let task = bench.wait_for_status(&client, &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], r#"["yes","no"]"#);
}

#[tokio::test]
async fn a_server_that_ends_its_call_with_a_question_is_called_again_with_the_answer() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let id = bench.task(&client, "rounds").await;
    for (key, question) in [("question_1", "first"), ("question_2", "second")] {
        bench.source.gate.add_permits(1);
        let task = bench.wait_for_status(&client, &id, "input_required").await;
        assert_eq!(task["inputRequests"], json!({key: super::mcp_fixture::elicitation(question)}), "{task}");
        assert!(task.get("requestState").is_none());
        let answer = json!({"taskId": id, "inputResponses": {key: {"said": question}}});
        bench.request(&client, "tasks/update", answer).await.unwrap();
        bench.wait_for_status(&client, &id, "working").await;
    }
    bench.source.gate.add_permits(1);
    let task = bench.wait_for_status(&client, &id, "completed").await;
    assert_eq!(task["result"]["content"][0]["text"], r#"{"said":"second"}"#);
}

#[tokio::test]
async fn a_task_that_has_ended_is_kept_for_its_time() {
    let keep = Duration::from_millis(400);
    let (bench, client) = (McpFixture::new(|settings| settings.retention = keep), task_client("anna"));
    let id = bench.task(&client, "slow").await;
    let life = |task: &Value| task["ttlMs"].as_u64().unwrap();
    let first = bench.task_request(&client, "tasks/get", &id).await.unwrap();
    let later = bench.wait_for_task(&client, &id, |task| life(task) > 600).await;
    assert_eq!((&later["status"], life(&first) >= 400), (&json!("working"), true), "it lives while it runs");
    bench.source.gate.add_permits(1);
    let done = bench.wait_for_status(&client, &id, "completed").await;
    assert!(life(&done) >= life(&later));
    let again = bench.task_request(&client, "tasks/get", &id).await.unwrap();
    assert_eq!(life(&again), life(&done), "its end is fixed");
    tokio::time::sleep(keep + Duration::from_millis(20)).await;
    assert_eq!(bench.task_request(&client, "tasks/get", &id).await.unwrap_err().code, -32602);
}

#[tokio::test]
async fn where_there_are_too_many_tasks_the_next_call_is_waited_for() {
    for (per_caller, in_all) in [(2, 9), (9, 2)] {
        let change = |settings: &mut TaskSettings| {
            (settings.max_per_caller, settings.max_tasks) = (per_caller, in_all)
        };
        let (bench, client) = (McpFixture::new(change), task_client("anna"));
        bench.task(&client, "slow").await;
        bench.task(&client, "slow").await;
        let third = bench.call(&client, "slow");
        tokio::pin!(third);
        let early = tokio::time::timeout(Duration::from_millis(400), &mut third).await;
        assert!(early.is_err(), "{early:?}");
        bench.source.gate.add_permits(3);
        assert_eq!(third.await.unwrap()["resultType"], "complete");
    }
    let bench = McpFixture::new(|settings| settings.max_per_caller = 1);
    bench.task(&task_client("anna"), "slow").await;
    bench.task(&task_client("bert"), "slow").await;
}

async fn next_task_notification(listening: &mut ListenStream) -> Value {
    let next = tokio::time::timeout(Duration::from_secs(10), listening.next()).await;
    match next.unwrap().unwrap() {
        Message::Notification { method, params } => {
            assert_eq!(method, "notifications/tasks");
            params.to_json().to().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn who_listens_hears_of_their_tasks() {
    let (bench, client) = (McpFixture::new(|_| {}), task_client("anna"));
    let (id, foreign) = (bench.task(&client, "slow").await, bench.task(&task_client("eve"), "slow").await);
    let wanted = Json::from(json!({"notifications": {"taskIds": [id, foreign, "0"]}})).members().unwrap();
    let mut listening = bench.mcp.listen(&client, Id::number(1), &wanted).await.unwrap();
    let Message::Notification { params, .. } = listening.acknowledgement() else {
        panic!("not acknowledged")
    };
    assert_eq!(params.object("notifications").get("taskIds").unwrap().as_str(), json!([id]).to_string());
    assert_eq!(next_task_notification(&mut listening).await["status"], "working");
    bench.source.gate.add_permits(2);
    let told = next_task_notification(&mut listening).await;
    let mut got = bench.task_request(&client, "tasks/get", &id).await.unwrap();
    got.as_object_mut().unwrap().remove("resultType");
    got["_meta"] = told["_meta"].clone();
    assert_eq!((&told["status"], &told), (&json!("completed"), &got));
}

#[test]
fn what_a_task_keeps_is_bounded() {
    let task = |end: Option<TaskEnd>| {
        let task = Task::new(&task_client("anna"), CancellationToken::new(), Duration::ZERO, "t".to_owned());
        task.set_message(&"é".repeat(10_000));
        if let Some(end) = end {
            task.finish(end);
        }
        task.details()
    };
    assert_eq!(task(None).text("statusMessage").unwrap().chars().count(), 500);
    for (bytes, kept) in [(1_000, true), (100_000, false)] {
        let data = Some(Json::text(&"x".repeat(bytes)));
        let error = RpcError { code: -1, message: "x".repeat(1_000), data };
        let failed = task(Some(TaskEnd::failed(&error)));
        assert_eq!(failed.text("statusMessage").unwrap().len(), 500);
        assert_eq!(failed.object("error").get("data").is_some(), kept, "{bytes}");
    }
}
