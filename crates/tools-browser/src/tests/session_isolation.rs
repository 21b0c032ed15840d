//! Lifetime and isolation of sessions.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use crate::BrowserSettings;
use crate::browser_sessions::BrowserSessions;
use crate::engine::Engine;
use octo_model::{Caller, Kind};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

async fn call_as(
    bench: &BrowserFixture,
    who: &str,
    name: &str,
    input: Value,
) -> Result<Value, octo_toolkit::ToolError> {
    Ok(bench.call_raw_as(Caller::named(who), name, input).await?.typed.to().unwrap())
}

#[tokio::test]
async fn sec_br_04_what_one_caller_does_another_cannot_see_or_use() {
    let bench = BrowserFixture::new().await;
    let (login, account) = (format!("{}/login", bench.base_url), format!("{}/account", bench.base_url));
    call_as(&bench, "ada", "browser_navigate", json!({"url": login, "session": "work"})).await.unwrap();
    let fields = json!([{"label": "User", "value": "ada"}, {"label": "Password", "value": "secret"}]);
    let fill = json!({"fields": fields, "submit": true, "session": "work"});
    let done = call_as(&bench, "ada", "browser_fill_form", fill).await.unwrap();
    assert!(string_field(&done, "page").contains("Hello who=ada"), "{done}");
    let app = json!({"url": format!("{}/app", bench.base_url), "session": "work", "output_format": "accessibility"});
    let app = call_as(&bench, "ada", "browser_navigate", app).await.unwrap();
    let add = find_ref(&string_field(&app, "content"), "button \"Add\"");
    // The same name is another session for another caller: no cookies, no tabs, no refs.
    let seen =
        call_as(&bench, "bob", "browser_navigate", json!({"url": account, "session": "work"})).await.unwrap();
    assert!(string_field(&seen, "content").contains("Hello nobody"), "{seen}");
    let tabs = call_as(&bench, "bob", "browser_tabs", json!({"session": "work"})).await.unwrap();
    assert!(tabs["tabs"].as_array().unwrap().len() == 1 && !tabs.to_string().contains("/app"), "{tabs}");
    let error =
        call_as(&bench, "bob", "browser_click", json!({"ref": add, "session": "work"})).await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound, "{error}");
    let script = json!({"script": "localStorage.x = document.cookie; localStorage.x", "session": "work"});
    assert_eq!(call_as(&bench, "bob", "browser_execute_js", script).await.unwrap()["result"], "");
    assert_eq!(
        call_as(&bench, "bob", "browser_close", json!({"session": "work"})).await.unwrap()["closed"],
        true
    );
    // Its owner can still use it, with its ref and its login.
    call_as(&bench, "ada", "browser_click", json!({"ref": add, "session": "work"})).await.unwrap();
    let still =
        call_as(&bench, "ada", "browser_navigate", json!({"url": account, "session": "work"})).await.unwrap();
    assert!(string_field(&still, "content").contains("Hello who=ada"), "{still}");
    let script = json!({"script": "localStorage.x ?? 'nothing'", "session": "work"});
    assert_eq!(call_as(&bench, "ada", "browser_execute_js", script).await.unwrap()["result"], "nothing");
    // After it is closed, nothing of it reappears under its name.
    call_as(&bench, "ada", "browser_close", json!({"session": "work"})).await.unwrap();
    let anew =
        call_as(&bench, "ada", "browser_navigate", json!({"url": account, "session": "work"})).await.unwrap();
    assert!(string_field(&anew, "content").contains("Hello nobody"), "{anew}");
}

#[tokio::test]
async fn after_the_browser_or_a_page_has_ended_it_is_said_and_the_next_call_works() {
    let bench = BrowserFixture::new().await;
    bench.open("/app").await;
    let add = find_ref(&bench.snapshot().await, "button \"Add\"");
    for pid in bench.processes() {
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).output();
    }
    let begun = Instant::now();
    let gone = loop {
        match bench.call("browser_click", json!({"ref": add, "timeout_ms": 100})).await {
            Err(error) if error.kind == Kind::NotFound => break error,
            other => assert!(begun.elapsed() < TEST_TIMEOUT, "{other:?}"),
        }
    };
    assert!(gone.message.contains("No page is open"), "{gone}");
    assert!(gone.hint.unwrap().contains("browser_navigate"));
    assert_eq!(bench.open("/app").await["title"], "Tasks");
    // A page that crashes its renderer is reported once, then there is an empty tab.
    let pids = bench.processes();
    let renderer = |pid: &&u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains("type=renderer"))
    };
    for pid in pids.iter().filter(renderer) {
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).output();
    }
    let begun = Instant::now();
    let crashed = loop {
        match bench.call("browser_snapshot", json!({})).await {
            Err(error) => break error,
            Ok(_) => assert!(begun.elapsed() < TEST_TIMEOUT, "nothing was said"),
        }
    };
    assert!(crashed.message.contains("has crashed"), "{crashed}");
    assert_eq!(bench.open("/form").await["title"], "Form");
}

#[tokio::test]
async fn a_session_that_nobody_uses_ends_with_its_browser_and_its_memory() {
    let idle = Duration::from_millis(1_500);
    let bench = BrowserFixture::with_browser(BrowserSessions::new(
        Engine::with_idle_timeout(idle),
        BrowserSettings::default(),
    ))
    .await;
    bench.open("/").await;
    assert!(!bench.processes().is_empty() && bench.browser.session_count() == 1);
    let begun = Instant::now();
    while !bench.processes().is_empty() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "the browser still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Nor does a browser stay whose last session was closed explicitly.
    let url = format!("{}/", bench.base_url);
    bench.ok("browser_navigate", json!({"url": url, "session": "next"})).await;
    assert_eq!(bench.browser.session_count(), 1, "the first session is forgotten");
    bench.ok("browser_close", json!({"session": "next"})).await;
    let begun = Instant::now();
    while !bench.processes().is_empty() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "the browser still runs");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
