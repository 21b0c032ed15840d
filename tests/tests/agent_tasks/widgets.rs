//! A page with eighteen widgets, each of which reports to the server when it was used as the task requires.

use crate::cost_agent::Agent;
use crate::loopback_site::serve;
use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Html;
use axum::routing::{get, post};
use octo_tests::eventually;
use octo_tests::hub_process::HubHome;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

const PAGE: &str = include_str!("widgets.html");
const SECOND: &str = "<!doctype html><title>Second</title><h1>Second page</h1><button onclick=\"new BroadcastChannel('widgets').postMessage('tab')\">Confirm</button>";
const FRAME: &str = "<!doctype html><title>Frame</title><button onclick=\"parent.postMessage('frame', '*')\">In the frame</button>";
const WIDGETS: [&str; 18] = [
    "checkbox",
    "color",
    "contenteditable",
    "date",
    "dialog",
    "drag",
    "file",
    "frame",
    "menu",
    "multiselect",
    "radio",
    "range",
    "scroll",
    "select",
    "shadow",
    "tab",
    "text",
    "textarea",
];

type UsedWidgets = Arc<Mutex<BTreeSet<String>>>;

async fn start_site(done: &UsedWidgets) -> Result<String> {
    let mark = async |State(done): State<UsedWidgets>, Path(widget): Path<String>| {
        done.lock().unwrap().insert(widget);
    };
    let router = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/second", get(async || Html(SECOND)))
        .route("/frame", get(async || Html(FRAME)))
        .route("/done/{widget}", post(mark))
        .with_state(Arc::clone(done));
    serve(router).await
}

/// The ref on the line of a snapshot that contains these words.
fn element_ref(snapshot: &Value, words: &str) -> Result<String> {
    let text = snapshot.as_str().with_context(|| format!("no snapshot: {snapshot}"))?;
    let at = text.find(words).with_context(|| format!("{words:?} is not in {text}"))?;
    let rest = text.get(at..).unwrap_or_default();
    let (_, rest) = rest.split_once("[ref=").with_context(|| format!("{words:?} has no ref in {text}"))?;
    Ok(rest.split(']').next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn eighteen_widgets_are_used_through_the_browser() -> Result<()> {
    let done = UsedWidgets::default();
    let base = start_site(&done).await?;
    let home = HubHome::new(&json!({"toolboxes": {"browser": true}, "net": {"allow": ["127.0.0.1"]}}))?;
    std::fs::write(home.workspace().join("card.txt"), "Happy birthday!\n")?;
    let mut agent = Agent::new(&home).await?;
    let open = json!({"url": base, "output_format": "accessibility", "include_links": false});
    let page = agent.call("browser_navigate", open).await?;
    let snapshot = &page["content"];
    let field = |label: &str, value: Value| json!({"label": label, "value": value});
    let fields = json!([
        field("Name", json!("Ada Lovelace")),
        field("Message", json!("First line\nSecond line")),
        field("I agree", json!(true)),
        field("Express", json!(true)),
        field("Country", json!("Norway")),
        field("Toppings", json!(["Cheese", "Olives"])),
        field("Day", json!("2027-03-14")),
        field("Volume", json!(70)),
        field("Colour", json!("#336699")),
        field("Notes", json!("Call back on Monday")),
    ]);
    let filled = agent.call("browser_fill_form", json!({"fields": fields})).await?;
    ensure!(filled["changes"].as_str().is_some_and(|changes| changes.contains("10 of 18 done")), "{filled}");
    let card = element_ref(snapshot, "\"Card\"")?;
    agent.call("browser_upload", json!({"ref": card, "paths": ["card.txt"]})).await?;
    agent.call("browser_drag", json!({"text": "Milk", "to_text": "Basket"})).await?;
    agent.call("browser_hover", json!({"ref": element_ref(snapshot, "Account")?})).await?;
    agent.call("browser_click", json!({"text": "Orders"})).await?;
    let deleted =
        agent.call("browser_click", json!({"text": "Delete everything", "dialog": "accept"})).await?;
    ensure!(deleted["events"].to_string().contains("accepted"), "{deleted}");
    agent.call("browser_click", json!({"text": "In the frame"})).await?;
    agent.call("browser_click", json!({"text": "In the shadow"})).await?;
    let opened = agent.call("browser_click", json!({"text": "Second page"})).await?;
    ensure!(opened["events"].to_string().contains("Tab 1"), "{opened}");
    agent.call("browser_click", json!({"text": "Confirm"})).await?;
    agent.call("browser_tabs", json!({"action": "close", "index": 1})).await?;
    agent.call("browser_scroll", json!({"until_text": "Entry 70"})).await?;
    let last = agent.call("browser_click", json!({"text": "Entry 70"})).await?;
    ensure!(last["changes"].as_str().is_some_and(|changes| changes.contains("18 of 18 done")), "{last}");
    let all: BTreeSet<String> = WIDGETS.map(str::to_owned).into();
    eventually("the page has told of all widgets", async || (*done.lock().unwrap() == all).then_some(()))
        .await?;
    agent.finish("use 18 widgets of a page", 14, 4_000)
}
