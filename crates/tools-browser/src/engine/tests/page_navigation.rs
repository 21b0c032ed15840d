//! Navigation, reading and waiting.

use super::engine_fixture::{
    EngineFixture, TEST_TIMEOUT, error_kind, eval, page, query_one, site, wait_until,
};
use crate::engine::{Button, CaptureArea, ImageFormat, WaitUntil, World};
use octo_toolkit::Kind;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_visited_left_and_looked_at() {
    let body = "<h1>Look</h1><button id=b>Press</button><script>console.log('one', 2, {a: 1}); fetch('/missing'); setTimeout(() => nothing())</script>";
    let bench = EngineFixture::new(site().route("/look", page(body))).await;
    let (_, tab, at) = bench.visit("/look").await;
    assert_eq!((at.title.as_str(), at.status, at.complete), ("T", Some(200), true));
    let document = tab.document();
    let trees = tab.ax_trees().await.unwrap();
    let named = |role: &str| {
        trees[0].nodes.iter().find(|node| node.role == role && !node.ignored).map(|node| node.name.clone())
    };
    assert_eq!((named("heading").as_deref(), named("button").as_deref()), (Some("Look"), Some("Press")));
    let button = query_one(&tab, "#b").await;
    let known = trees[0].nodes.iter().find(|node| node.backend == Some(button.id)).unwrap();
    assert_eq!(known.role, "button");
    let rect = tab.rect(&button).await.unwrap().unwrap();
    assert!(rect.width > 10.0 && rect.y > 20.0, "{rect:?}");
    for (shot, low, high) in [
        (CaptureArea::Viewport, 720, 720),
        (CaptureArea::FullPage, 720, 800),
        (CaptureArea::Element(button), 10, 60),
    ] {
        let picture = tab.screenshot(&shot, ImageFormat::Png).await.unwrap();
        assert!((low..=high).contains(&picture.height), "{shot:?} {}", picture.height);
        assert!(picture.base64.starts_with("iVBORw0KGgo"));
    }
    wait_until(&tab, "performance.getEntriesByName(new URL('/missing', location).href).length === 1").await;
    let begun = Instant::now();
    while tab.console(0).len() < 3 || !tab.requests(0).iter().any(|request| request.status == Some(404)) {
        assert!(begun.elapsed() < TEST_TIMEOUT, "{:?} {:?}", tab.console(0), tab.requests(0));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let lines = tab.console(0);
    assert!(lines.iter().any(|line| line.level == "log" && line.text.starts_with("one 2 ")), "{lines:?}");
    assert!(
        lines.iter().any(|line| line.level == "exception" && line.text.contains("nothing is not defined"))
    );
    // The worlds are isolated from each other.
    eval(&tab, "window.mine = 1; document.querySelectorAll = () => []").await;
    assert_eq!(tab.evaluate("typeof mine", World::Isolated, TEST_TIMEOUT).await.unwrap(), "undefined");
    assert_eq!(tab.query("#b", 9).await.unwrap().len(), 1);
    assert_eq!(error_kind(tab.query("##", 9).await), Some(Kind::Invalid));
    for (script, wanted) in [
        ("1 + 1", json!(2)),
        ("undefined", json!(null)),
        ("NaN", json!("NaN")),
        ("new Promise(done => setTimeout(() => done([1]), 20))", json!([1])),
    ] {
        assert_eq!(eval(&tab, script).await, wanted, "{script}");
    }
    let error = tab.evaluate("nope.nope", World::Main, TEST_TIMEOUT).await.unwrap_err();
    assert!(error.kind == Kind::Invalid && error.message.contains("nope is not defined"), "{error}");
    let short = Duration::from_millis(200);
    for script in ["for (;;);", "new Promise(() => {})"] {
        assert_eq!(
            error_kind(tab.evaluate(script, World::Main, short).await),
            Some(Kind::Timeout),
            "{script}"
        );
    }
    assert_eq!(eval(&tab, "2").await, 2);
    tab.navigate(&bench.url("/second"), WaitUntil::NetworkIdle, TEST_TIMEOUT).await.unwrap();
    assert_ne!(tab.document(), document);
    let back = tab.back(WaitUntil::Load, TEST_TIMEOUT).await.unwrap().unwrap();
    assert!(back.url.ends_with("/look"), "{back:?}");
    assert!(tab.forward(WaitUntil::Load, TEST_TIMEOUT).await.unwrap().unwrap().url.ends_with("/second"));
    assert_eq!(tab.forward(WaitUntil::Load, TEST_TIMEOUT).await.unwrap(), None);
    let inside =
        tab.navigate(&bench.url("/second#part"), WaitUntil::NetworkIdle, TEST_TIMEOUT).await.unwrap();
    assert!(inside.complete && inside.url.ends_with("#part"));
    assert!(tab.html(10_000).await.unwrap().contains("<h1>Second</h1>"));
    let missing = tab.navigate(&bench.url("/missing"), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
    assert_eq!(missing.status, Some(404));
    let begun = Instant::now();
    let slow = tab.navigate(&bench.url("/slow"), WaitUntil::Load, Duration::from_millis(300)).await;
    assert_eq!(error_kind(slow), Some(Kind::Timeout));
    assert!(begun.elapsed() < Duration::from_secs(3));
    let file = tab.navigate(&bench.url("/file"), WaitUntil::Load, TEST_TIMEOUT).await;
    assert_eq!(error_kind(file), Some(Kind::Conflict));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_rests_is_not_waited_for() {
    let busy = "<p id=p></p><script>setInterval(() => { p.textContent = Math.random(); fetch('/?' + Math.random()) }, 20)</script>";
    let calm = "<button onclick=\"setTimeout(() => { document.body.append('late') }, 60)\">B</button>
        <button id=go onclick=\"location = '/second'\">go</button>
        <script>new EventSource('/slow'); fetch('/slow')</script>";
    let bench = EngineFixture::new(site().route("/busy", page(busy)).route("/calm", page(calm))).await;
    let (_, tab, _) = bench.visit("/busy").await;
    let begun = Instant::now();
    let at = tab
        .navigate(&bench.url("/busy"), WaitUntil::NetworkIdle, Duration::from_millis(1_500))
        .await
        .unwrap();
    assert!(!at.complete && begun.elapsed() < Duration::from_secs(4));
    let begun = Instant::now();
    let settled = tab.settle(Duration::from_millis(800)).await.unwrap();
    assert!(!settled.quiet && begun.elapsed() < Duration::from_millis(1_500), "{settled:?}");
    tab.navigate(&bench.url("/calm"), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
    // A request that is never answered counts only for a limited time.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let cap = Duration::from_secs(1);
    tab.click(&query_one(&tab, "button").await, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    let settled = tab.settle(cap).await.unwrap();
    assert!(settled.quiet && !settled.navigated, "{settled:?}");
    assert_eq!(eval(&tab, "document.body.textContent.includes('late')").await, true);
    let document = tab.document();
    tab.click(&query_one(&tab, "#go").await, Button::Left, 1, TEST_TIMEOUT).await.unwrap();
    let settled = tab.settle(Duration::from_secs(3)).await.unwrap();
    assert!(settled.quiet && tab.document() != document, "{settled:?}");
    assert!(tab.location().await.unwrap().0.ends_with("/second"));
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_another_site_are_seen_and_clicked() {
    let inner = "<p>Inner text</p><button style='margin:30px' onclick=\"this.textContent = 'Pressed'\">Inner</button>";
    let bench = EngineFixture::new(site().route("/inner", page(inner))).await;
    let outer = format!("http://localhost:{}/inner", bench.port);
    let (_, tab, _) = bench.visit("/").await;
    let script = format!(
        "document.body.innerHTML = '<p style=height:900px>x</p><iframe src={outer} width=400 height=300></iframe><iframe srcdoc=\"<button>Near</button>\"></iframe>'"
    );
    eval(&tab, &script).await;
    let begun = Instant::now();
    let trees = loop {
        let trees = tab.ax_trees().await.unwrap();
        let named = |name: &str| trees.iter().any(|tree| tree.nodes.iter().any(|node| node.name == name));
        let there = trees.iter().any(|tree| tree.url.contains("/inner"));
        if trees.len() == 3 && there && named("Inner") && named("Near") {
            break trees;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{trees:#?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(trees[0].owner.is_none() && trees[1..].iter().all(|tree| tree.owner.is_some()), "{trees:?}");
    let other = trees.iter().find(|tree| tree.url.contains("/inner")).unwrap();
    assert_ne!(other.session, trees[0].session, "the frame runs in a process of its own");
    let mut buttons = tab.query("button", 9).await.unwrap();
    assert_eq!(buttons.len(), 2);
    buttons.retain(|node| node.session == other.session);
    let begun = Instant::now();
    // The compositor learns of a new frame slightly later than the page; a press before that misses it.
    while tab.call_on(&buttons[0], "function() { return this.textContent }", &[]).await.unwrap() != "Pressed"
    {
        assert!(begun.elapsed() < TEST_TIMEOUT);
        tab.click(&buttons[0], Button::Left, 1, TEST_TIMEOUT).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
