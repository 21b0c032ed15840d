//! Sessions apart from each other, and what is left when they end.

use super::bench::{Bench, SOON, eval, kind, site};
use crate::engine::{Engine, WaitUntil};
use octo_toolkit::{Caller, Kind};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn sessions_share_nothing_and_end_when_nobody_uses_them() {
    let bench = Bench::new(site()).await;
    let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
    let mut seen = Vec::new();
    for (caller, name) in [(&ada, "default"), (&ada, "other"), (&bob, "default")] {
        let session = bench.engine.session(&bench.chromium, caller, name).await.unwrap();
        let page = session.page().await.unwrap();
        page.navigate(&bench.url("/"), WaitUntil::Load, SOON).await.unwrap();
        seen.push(eval(&page, "document.cookie || (document.cookie = 'a=1', localStorage.x = 1, '')").await);
    }
    assert_eq!(seen, ["", "", ""]);
    assert!(bench.engine.close(&ada, "other").await && !bench.engine.close(&ada, "other").await);
    assert!(bench.engine.existing(&ada, "other").await.is_none());
    assert!(bench.engine.existing(&bob, "default").await.is_some());
    assert_eq!(kind(bench.engine.session(&bench.chromium, &ada, "a/b").await), Some(Kind::Invalid));
    let short = Engine::with_idle(Duration::from_millis(500));
    short.session(&bench.chromium, &bob, "default").await.unwrap();
    let begun = Instant::now();
    while short.existing(&bob, "default").await.is_some() {
        assert!(begun.elapsed() < SOON, "still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(bench.engine.existing(&bob, "default").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_browser_was_killed_the_next_call_works() {
    let bench = Bench::new(site()).await;
    let (session, tab, _) = bench.visit("/").await;
    let pid = session.0.browser.launched.pid().to_string();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert!(killed.success());
    let begun = Instant::now();
    while tab.location().await.is_ok() {
        assert!(begun.elapsed() < SOON, "it lives");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(kind(tab.location().await), Some(Kind::Unavailable));
    let (_, _, at) = bench.visit("/second").await;
    assert_eq!(at.status, Some(200));
    // A page that takes its renderer with it leaves the session usable.
    let (session, tab, _) = bench.visit("/").await;
    let _ = tab.cdp("Page.crash", serde_json::json!({})).await;
    assert_eq!(kind(tab.location().await), Some(Kind::Unavailable));
    let page = session.page().await.unwrap();
    page.navigate(&bench.url("/second"), WaitUntil::Load, SOON).await.unwrap();
}
