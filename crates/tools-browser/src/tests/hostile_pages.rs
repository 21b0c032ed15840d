//! Hostile pages: every reply stays small and arrives in time, and the next call works.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use octo_model::Kind;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn sec_br_05_a_page_with_a_million_nodes_is_shown_as_far_as_the_viewport_goes() {
    let bench = BrowserFixture::new().await;
    let begun = Instant::now();
    let opened = bench.open("/million").await;
    assert!(string_field(&opened, "note").contains("too large"), "{opened}");
    assert!(opened.to_string().len() < 20_000, "{} bytes", opened.to_string().len());
    let seen = bench.ok("browser_snapshot", json!({"full": true})).await;
    assert!(string_field(&seen, "note").contains("nodes") && seen["truncated"] == true, "{seen}");
    let page = string_field(&seen, "snapshot");
    assert!(page.contains("Line 3") && page.len() < 40_000, "{} letters: {page}", page.len());
    let button = find_ref(&page, "button \"Press\"");
    let pressed = bench.ok("browser_click", json!({"ref": button})).await;
    assert!(pressed.to_string().contains("Pressed"), "{pressed}");
    bench.ok("browser_type", json!({"selector": "input", "text": "Ada"})).await;
    let value =
        bench.ok("browser_execute_js", json!({"script": "document.querySelector('input').value"})).await;
    assert_eq!(value["result"], "Ada");
    let html = bench.ok("browser_get_content", json!({"output_format": "html", "max_tokens": 500})).await;
    assert!(html["truncated"] == true && html.to_string().len() < 20_000);
    println!("a million nodes: {:?}", begun.elapsed());
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn sec_br_05_dialogs_without_end_close_their_tab() {
    let bench = BrowserFixture::new().await;
    bench.open("/alerts").await;
    let begun = Instant::now();
    let error = bench.call("browser_click", json!({"text": "Start"})).await.unwrap_err();
    assert!(error.message.contains("kept opening dialogs"), "{error}");
    assert!(error.hint.unwrap().contains("browser_navigate"));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(bench.open("/app").await["title"], "Tasks");
    let tabs = bench.ok("browser_tabs", json!({})).await;
    assert_eq!(tabs["tabs"].as_array().unwrap().len(), 1, "{tabs}");
}

#[tokio::test]
async fn sec_br_05_printing_in_a_loop_holds_nothing_up() {
    let bench = BrowserFixture::new().await;
    bench.open("/prints").await;
    let begun = Instant::now();
    bench.ok("browser_click", json!({"text": "Start"})).await;
    bench.ok("browser_wait", json!({"text": "printed"})).await;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn sec_br_05_downloads_in_a_loop_are_bounded() {
    let bench = BrowserFixture::new().await;
    bench.open("/fetches").await;
    bench.ok("browser_click", json!({"text": "Start"})).await;
    bench.ok("browser_wait", json!({"text": "all asked for"})).await;
    let listed = bench.ok("browser_downloads", json!({})).await;
    let many = listed["downloads"].as_array().unwrap().len();
    assert!((1..=50).contains(&many), "{many}");
    let folders = std::fs::read_dir(bench.folder.path().join("state/browser")).unwrap().flatten();
    let kept: usize = folders.map(|folder| count(&folder.path().join("downloads"))).sum();
    assert!(kept <= 55, "{kept} files");
}

fn count(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

#[tokio::test]
async fn sec_br_05_a_page_that_eats_memory_is_ended_and_the_next_one_works() {
    let bench = BrowserFixture::new().await;
    bench.open("/heap").await;
    let other = format!("{}/app", bench.base_url);
    bench.ok("browser_navigate", json!({"url": other, "session": "other"})).await;
    let begun = Instant::now();
    let _ = bench.call("browser_click", json!({"text": "Start"})).await;
    let error = loop {
        match bench.call("browser_snapshot", json!({})).await {
            Err(error) if error.kind == Kind::Unavailable => break error,
            _ => assert!(begun.elapsed() < Duration::from_secs(60), "it grows without end"),
        }
    };
    assert!(error.message.contains("crashed") && error.hint.unwrap().contains("browser_navigate"));
    assert_eq!(bench.open("/app").await["title"], "Tasks");
    // Other sessions are not affected.
    let other = bench.ok("browser_snapshot", json!({"session": "other"})).await;
    assert_eq!(other["title"], "Tasks");
}

#[tokio::test]
async fn sec_br_05_a_script_without_end_and_a_value_without_end_are_bounded() {
    let bench = BrowserFixture::new().await;
    bench.open("/").await;
    let huge = json!({"script": "'x'.repeat(70 << 20)", "timeout_ms": 30_000});
    let huge = bench.call("browser_execute_js", huge).await.unwrap_err();
    assert_eq!(huge.kind, Kind::TooLarge, "{huge}");
    let script = json!({"script": "console.log('y'.repeat(70 << 20)); 1", "timeout_ms": 30_000});
    assert_eq!(bench.ok("browser_execute_js", script).await["result"], 1);
    bench.open("/endless").await;
    let begun = Instant::now();
    let _ = bench.call("browser_click", json!({"text": "Start"})).await;
    // Waiting for the page to settle has terminated its script, or it still does not respond.
    let asked = Instant::now();
    let next = bench.call("browser_execute_js", json!({"script": "1", "timeout_ms": 500})).await;
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert!(
        next.as_ref().is_ok_and(|next| next["result"] == 1)
            || next.is_err_and(|error| error.kind == Kind::Timeout)
    );
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    assert_eq!(bench.open("/app").await["title"], "Tasks");
}

#[tokio::test]
async fn sec_br_06_what_a_person_cannot_see_does_not_reach_the_model() {
    let bench = BrowserFixture::new().await;
    let hidden = bench.open("/hidden").await;
    assert_eq!(hidden["title"], "Hidden");
    let page = bench.snapshot().await;
    let listed = bench.ok("browser_tabs", json!({})).await;
    let found = bench.ok("browser_find", json!({"role": "button"})).await;
    for said in [hidden.to_string(), page, listed.to_string(), found.to_string()] {
        assert!(!said.contains("Secret order") && !said.contains("Other"), "{said}");
        assert!(!said.contains(['\u{202e}', '\u{e0041}', '\u{200b}']), "{said}");
    }
    assert!(found.to_string().contains("Pay now"), "{found}");
}
