//! Forty sessions with calls in flight while their hub is killed, stopped and upgraded. What the calls wrote is compared
//! with what the sessions were told. `HUB_STORM` sets how often each happens.

use octo_tests::attached_user::AttachedUser;
use octo_tests::mcp_clients::answer_nothing;
use octo_tests::stdio_client::StdioClient;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const SESSIONS: usize = 40;
const DEFAULT_ROUNDS: usize = 5;

/// What a session was told about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    MayHaveTakenEffect,
    NotMade,
}

fn outcome(reply: &Value) -> Outcome {
    let error = &reply["error"];
    if error.is_null() {
        assert!(!reply["result"]["isError"].as_bool().unwrap_or(false), "{reply}");
        return Outcome::Done;
    }
    match error["data"]["mayHaveTakenEffect"].as_bool() {
        Some(true) => Outcome::MayHaveTakenEffect,
        Some(false) => Outcome::NotMade,
        None => panic!("an error that says nothing: {reply}"),
    }
}

/// Appends numbered lines to the session's own file until told to stop.
async fn append_lines(
    number: usize,
    mut session: StdioClient,
    is_over: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
) -> (usize, BTreeMap<usize, Outcome>) {
    let mut outcomes = BTreeMap::new();
    while !is_over.load(Ordering::Relaxed) {
        let at = outcomes.len();
        let arguments =
            json!({"path": format!("{number}.txt"), "content": format!("{at}\n"), "append": true});
        let params = json!({"name": "fs_write_text", "arguments": arguments});
        let reply = session.call("tools/call", params, answer_nothing).await.expect("the session ended");
        outcomes.insert(at, outcome(&reply));
        made.fetch_add(1, Ordering::Relaxed);
        let tools = session.call("tools/list", json!({}), answer_nothing).await.expect("the session ended");
        assert!(tools["result"]["tools"].is_array(), "{tools}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (number, outcomes)
}

async fn wait_for_more(made: &AtomicUsize) {
    let before = made.load(Ordering::Relaxed);
    octo_tests::eventually("the sessions continue", async || {
        (made.load(Ordering::Relaxed) >= before + SESSIONS).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_every_end_of_their_hub() {
    let rounds = std::env::var("HUB_STORM").ok().and_then(|text| text.parse().ok()).unwrap_or(DEFAULT_ROUNDS);
    let user = AttachedUser::with_own_program(&json!({})).unwrap();
    let (is_over, made) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
    let mut sessions = tokio::task::JoinSet::new();
    for number in 0..SESSIONS {
        let session = user.session().await.unwrap();
        sessions.spawn(append_lines(number, session, Arc::clone(&is_over), Arc::clone(&made)));
    }
    let mut upgrades = 0;
    for round in 0..rounds {
        wait_for_more(&made).await;
        let pid = user.hub_pid().await;
        if let Ok(pid) = pid {
            let pid = rustix::process::Pid::from_raw(pid).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        wait_for_more(&made).await;
        let (code, _, err) = user.run(&["stop"]).await.unwrap();
        assert_eq!(code, 0, "{err}");
        wait_for_more(&made).await;
        let old: Vec<u64> = user.hubs().await.unwrap().iter().filter_map(|hub| hub["pid"].as_u64()).collect();
        user.upgrade(round + 1).unwrap();
        octo_tests::eventually("the old hub hands over", async || {
            let is_there = |pid: &u64| std::path::Path::new(&format!("/proc/{pid}")).exists();
            (!old.iter().any(is_there)).then_some(())
        })
        .await
        .unwrap();
        upgrades += 1;
    }
    wait_for_more(&made).await;
    is_over.store(true, Ordering::Relaxed);
    let (mut done, mut unknown, mut not_made) = (0, 0, 0);
    while let Some(ended) = sessions.join_next().await {
        let (number, outcomes) = ended.unwrap();
        let path = user.home.workspace().join(format!("{number}.txt"));
        let written = std::fs::read_to_string(path).unwrap_or_default();
        let mut lines: BTreeMap<usize, usize> = BTreeMap::new();
        for line in written.lines() {
            *lines.entry(line.parse().unwrap()).or_default() += 1;
        }
        for (at, outcome) in &outcomes {
            let times = lines.remove(at).unwrap_or_default();
            let (is_right, count) = match outcome {
                Outcome::Done => (times == 1, &mut done),
                Outcome::MayHaveTakenEffect => (times <= 1, &mut unknown),
                Outcome::NotMade => (times == 0, &mut not_made),
            };
            assert!(is_right, "session {number}, call {at}: {outcome:?}, but written {times} times");
            *count += 1;
        }
        assert!(lines.is_empty(), "session {number}: calls that nobody made: {lines:?}");
    }
    assert!(done > rounds * SESSIONS);
    println!(
        "{rounds} kills, {rounds} stops, {upgrades} upgrades: {done} calls done, {unknown} unknown, {not_made} not made"
    );
    let (code, ..) = user.run(&["stop"]).await.unwrap();
    assert_eq!(code, 0);
    assert!(user.hubs().await.unwrap().is_empty());
}
