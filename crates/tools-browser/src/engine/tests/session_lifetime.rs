//! Session isolation and cleanup.

use super::engine_fixture::{EngineFixture, TEST_TIMEOUT, error_kind, eval, query_one, site};
use crate::engine::{Button, CaptureArea, Engine, ImageFormat, WaitUntil, World};
use octo_toolkit::{Caller, Kind};
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn sec_br_04_sessions_share_nothing_and_end_when_nobody_uses_them() {
    let bench = EngineFixture::new(site()).await;
    let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
    let mut seen = Vec::new();
    for (caller, name) in [(&ada, "default"), (&ada, "other"), (&bob, "default")] {
        let session = bench.engine.session(&bench.chromium, caller, name).await.unwrap();
        let page = session.page().await.unwrap();
        page.navigate(&bench.url("/"), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
        seen.push(eval(&page, "document.cookie || (document.cookie = 'a=1', localStorage.x = 1, '')").await);
    }
    assert_eq!(seen, ["", "", ""]);
    assert!(bench.engine.close(&ada, "other").await && !bench.engine.close(&ada, "other").await);
    assert!(bench.engine.existing(&ada, "other").await.is_none());
    assert!(bench.engine.existing(&bob, "default").await.is_some());
    assert_eq!(error_kind(bench.engine.session(&bench.chromium, &ada, "a/b").await), Some(Kind::Invalid));
    let short = Engine::with_idle_timeout(Duration::from_millis(500));
    short.session(&bench.chromium, &bob, "default").await.unwrap();
    let begun = Instant::now();
    while short.existing(&bob, "default").await.is_some() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(bench.engine.existing(&bob, "default").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_browser_was_killed_the_next_call_works() {
    let bench = EngineFixture::new(site()).await;
    let (session, tab, _) = bench.visit("/").await;
    let pid = session.0.browser.launched.pid().to_string();
    let killed = std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert!(killed.success());
    let begun = Instant::now();
    while tab.location().await.is_ok() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "it lives");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(error_kind(tab.location().await), Some(Kind::Unavailable));
    let (_, _, at) = bench.visit("/second").await;
    assert_eq!(at.status, Some(200));
    // A page that crashes its renderer leaves the session usable.
    let (session, tab, _) = bench.visit("/").await;
    let _ = tab.cdp("Page.crash", serde_json::json!({})).await;
    assert_eq!(error_kind(tab.location().await), Some(Kind::Unavailable));
    assert_eq!(error_kind(session.page().await), Some(Kind::Unavailable), "it is said once");
    let page = session.page().await.unwrap();
    page.navigate(&bench.url("/second"), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_page_that_closes_or_crashes_is_told_at_once() {
    let bench = EngineFixture::new(site()).await;
    let session = bench.session().await;
    for crash in [false, true] {
        let tab = session.open_tab().await.unwrap();
        tab.navigate(&bench.url("/"), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
        let node = query_one(&tab, "a").await;
        // From now on the page does not respond.
        eval(&tab, "setTimeout(() => { for (;;); }, 50); 1").await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let begun = Instant::now();
        let end = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            if crash {
                tab.tab.cdp.post(Some(&tab.tab.session), "Page.crash", serde_json::json!({}));
            } else {
                session.close_tab(session.tabs().await.unwrap().len() - 1).await.unwrap();
            }
        };
        let rects = [node.clone()];
        let asked = async {
            tokio::join!(
                tab.ax_trees(),
                tab.query("a", 1),
                tab.call_on(&node, "function() { return 1 }", &[]),
                tab.rects(&rects),
                tab.screenshot(&CaptureArea::Viewport, ImageFormat::Png),
                tab.evaluate("1", World::Main, TEST_TIMEOUT),
                tab.click(&node, Button::Left, 1, TEST_TIMEOUT),
            )
        };
        let ((), (trees, found, called, rects, shot, value, clicked)) = tokio::join!(end, asked);
        let wanted = Some(if crash { Kind::Unavailable } else { Kind::NotFound });
        let told = [
            error_kind(trees),
            error_kind(found),
            error_kind(called),
            error_kind(rects),
            error_kind(shot),
            error_kind(value),
            error_kind(clicked),
        ];
        assert_eq!(told, [wanted; 7], "crash: {crash}");
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        let _ = session.page().await;
    }
}
