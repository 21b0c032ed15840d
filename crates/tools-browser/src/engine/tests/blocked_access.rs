//! Blocked targets: nothing arrives there.

use super::engine_fixture::{EngineFixture, TEST_TIMEOUT, error_kind, eval, page, site};
use crate::engine::{WaitUntil, World};
use axum::http::header;
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use octo_toolkit::Kind;
use octo_toolkit::chromium::BrowserSandbox;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A listener that counts connections.
async fn canary() -> (u16, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, count) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let counting = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok(_accepted) = listener.accept().await {
            counting.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, count)
}

/// Tries every way a page has to connect, and returns the results.
const EGRESS_ATTEMPTS_JS: &str = r"(async () => {
    const to = 'http://127.0.0.1:PORT/', tried = {};
    const done = (name, promise) => Promise.race([promise, new Promise(r => setTimeout(r, 2500, 'late'))])
        .then(r => tried[name] = r, e => tried[name] = 'failed');
    const element = (tag, set) => new Promise(r => {
        const e = document.createElement(tag);
        e.onload = () => r('loaded'); e.onerror = () => r('failed');
        set(e); document.body.append(e);
    });
    const worker = code => new Promise(r => {
        const w = new Worker(URL.createObjectURL(new Blob([code])));
        w.onmessage = e => r(e.data); w.onerror = () => r('failed');
    });
    await Promise.all([
        done('fetch', fetch(to, {mode: 'no-cors'}).then(r => r.type)),
        done('redirect', fetch('/away?PORT', {mode: 'no-cors'}).then(r => r.type)),
        done('image', element('img', e => e.src = to + 'i.png')),
        done('script', element('script', e => e.src = to + 's.js')),
        done('frame', element('iframe', e => e.src = to + 'frame')),
        done('object', element('object', e => e.data = to + 'object')),
        done('beacon', Promise.resolve(navigator.sendBeacon(to + 'beacon', 'x'))),
        done('events', new Promise(r => { new EventSource(to).onerror = () => r('failed'); })),
        done('socket', new Promise(r => { const s = new WebSocket('ws://127.0.0.1:PORT/'); s.onopen = () => r('open'); s.onerror = () => r('failed'); })),
        done('secure', new Promise(r => { const s = new WebSocket('wss://127.0.0.1:PORT/'); s.onopen = () => r('open'); s.onerror = () => r('failed'); })),
        done('other spelling', fetch('http://0x7f000001:PORT/', {mode: 'no-cors'}).then(r => r.type)),
        done('name', fetch('http://localhost:PORT/', {mode: 'no-cors'}).then(r => r.type)),
        done('v6', fetch('http://[::ffff:127.0.0.1]:PORT/', {mode: 'no-cors'}).then(r => r.type)),
        done('worker', worker(`fetch('${to}w', {mode: 'no-cors'}).then(r => postMessage(r.type), () => postMessage('failed'))`)),
        done('preload', element('link', e => { e.rel = 'preload'; e.as = 'image'; e.href = to + 'p.png'; })),
        done('prefetch', element('link', e => { e.rel = 'prefetch'; e.href = to + 'prefetch'; })),
        done('preconnect', element('link', e => { e.rel = 'preconnect'; e.href = to; })),
        done('service worker', navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready)
            .then(sw => new Promise(r => { navigator.serviceWorker.onmessage = e => r(e.data); sw.active.postMessage(to + 'sw'); }))),
        done('rtc', (async () => { const p = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:PORT?transport=tcp'}, {urls: 'turn:127.0.0.1:PORT?transport=tcp', username: 'a', credential: 'b'}]});
            p.createDataChannel('x'); await p.setLocalDescription(await p.createOffer()); await new Promise(r => setTimeout(r, 1500)); return 'tried'; })()),
    ]);
    return tried;
})()";

async fn nothing_arrives(enclosure: BrowserSandbox) {
    let (port, arrived) = canary().await;
    let away = |uri: axum::http::Uri| async move {
        Redirect::temporary(&format!("http://127.0.0.1:{}/", uri.query().unwrap_or_default()))
    };
    let worker = || async {
        let code = "onmessage = e => fetch(e.data, {mode: 'no-cors'}).then(r => e.source.postMessage(r.type), () => e.source.postMessage('failed'))";
        ([(header::CONTENT_TYPE, "text/javascript")], code).into_response()
    };
    let refresh = get(move || async move {
        axum::response::Html(format!("<meta http-equiv=refresh content='0;url=http://127.0.0.1:{port}/'>"))
    });
    let site = site()
        .route("/try", page("<p>tries</p>"))
        .route("/away", get(away))
        .route("/sw.js", get(worker))
        .route("/refresh", refresh);
    let bench = EngineFixture::with_enclosure(site, enclosure).await;
    let (_, tab, _) = bench.visit("/try").await;
    let tried = eval(&tab, &EGRESS_ATTEMPTS_JS.replace("PORT", &port.to_string())).await;
    // The page itself can use the network, so the attempts were real.
    assert_eq!(eval(&tab, "fetch('/second').then(r => r.status)").await, 200);
    for name in ["socket", "secure", "image", "script"] {
        assert_eq!(tried[name], "failed", "{name}: {tried}");
    }
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://[::1]:{port}/"),
        bench.url(&format!("/away?{port}")),
    ] {
        let refused = tab.navigate(&url, WaitUntil::Load, TEST_TIMEOUT).await;
        assert_eq!(error_kind(refused), Some(Kind::Denied), "{url}");
    }
    let _ = tab.navigate(&bench.url("/refresh"), WaitUntil::NetworkIdle, Duration::from_secs(3)).await;
    tab.navigate(&bench.url("/try"), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
    let _ = tab.evaluate(&format!("location = 'http://127.0.0.1:{port}/'"), World::Main, TEST_TIMEOUT).await;
    let _ = tab.settle(Duration::from_secs(2)).await;
    assert_eq!(arrived.load(Ordering::SeqCst), 0, "{tried}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_br_02_nothing_arrives_from_a_browser_with_its_own_network() {
    nothing_arrives(BrowserSandbox::Auto).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_br_02_nothing_arrives_from_a_browser_on_the_network_of_the_machine() {
    nothing_arrives(BrowserSandbox::SharedNetwork).await;
}

/// Ways of a page to reach forbidden content.
const FORBIDDEN_ATTEMPTS_JS: [&str; 18] = [
    "document.getElementById('f').click()",
    "document.getElementById('v').click()",
    "location = 'file:///etc/passwd'",
    "open('file:///etc/passwd')",
    "open('chrome://version')",
    "open('view-source:http://127.0.0.1/')",
    "document.body.append(Object.assign(document.createElement('iframe'), {src: 'file:///etc/passwd'}))",
    "document.body.append(Object.assign(document.createElement('object'), {data: 'file:///etc/passwd'}))",
    "document.body.append(Object.assign(document.createElement('embed'), {src: 'file:///etc/passwd'}))",
    "document.body.append(Object.assign(document.createElement('iframe'), {src: '/to-file'}))",
    "document.body.append(Object.assign(document.createElement('iframe'), {src: 'chrome://version'}))",
    "location = 'data:text/html,moved'",
    "open('data:text/html,moved')",
    "open('devtools://devtools/bundled/inspector.html')",
    "open('ftp://127.0.0.1/')",
    "fetch('file:///etc/passwd').then(r => r.text()).then(t => document.body.append(t), () => {})",
    "navigator.serviceWorker.register('file:///etc/passwd').catch(() => {})",
    "new Worker('file:///etc/passwd')",
];

#[tokio::test(flavor = "multi_thread")]
async fn sec_br_01_files_and_the_browsers_own_pages_are_refused() {
    let body = "<a id=f href='file:///etc/passwd'>f</a><a id=v href='view-source:http://127.0.0.1/'>v</a>";
    let site = site()
        .route("/links", page(body))
        .route("/to-file", get(|| async { Redirect::temporary("file:///etc/passwd") }))
        .route("/to-chrome", get(|| async { Redirect::temporary("chrome://version/") }))
        .route("/fresh", page("<meta http-equiv=refresh content='0;url=file:///etc/passwd'><p>stays</p>"))
        .route(
            "/fresh-data",
            page("<meta http-equiv=refresh content='0;url=data:text/html,moved'><p>stays</p>"),
        );
    let bench = EngineFixture::new(site).await;
    let (session, tab, _) = bench.visit("/links").await;
    for url in [
        "file:///etc/passwd",
        "FILE:///",
        "view-source:http://a/",
        "chrome://version",
        "devtools://x",
        "ftp://a/",
        "javascript:1",
        "data:text/html,x",
        "about:version",
        "blob:x",
        "\\\\a\\b",
    ] {
        assert!(
            matches!(
                error_kind(tab.navigate(url, WaitUntil::Load, TEST_TIMEOUT).await),
                Some(Kind::Denied | Kind::Invalid)
            ),
            "{url}"
        );
    }
    for script in FORBIDDEN_ATTEMPTS_JS {
        let _ = tab.evaluate(script, World::Main, TEST_TIMEOUT).await;
    }
    let _ = tab.settle(Duration::from_secs(1)).await;
    for tab in session.tabs().await.unwrap() {
        let url = &tab.url;
        assert!(!crate::engine::url_scheme::is_forbidden(url) && !url.starts_with("data:"), "{tab:?}");
    }
    for tree in tab.ax_trees().await.unwrap() {
        assert!(!tree.nodes.iter().any(|node| node.name.contains("root:")), "a file was read: {}", tree.url);
    }
    while session.tabs().await.unwrap().len() > 1 {
        session.close_tab(1).await.unwrap();
    }
    let tab = session.page().await.unwrap();
    for path in ["/to-file", "/to-chrome"] {
        assert!(tab.navigate(&bench.url(path), WaitUntil::Load, TEST_TIMEOUT).await.is_err(), "{path}");
    }
    for path in ["/fresh", "/fresh-data"] {
        tab.navigate(&bench.url(path), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
        let _ = tab.settle(Duration::from_secs(1)).await;
        assert!(tab.location().await.unwrap().0.ends_with(path), "{:?}", tab.location().await);
        assert_eq!(eval(&tab, "document.querySelector('p').textContent").await, "stays");
    }
    // By the protocol itself, bypassing the check: the tab is closed.
    let page = session.open_tab().await.unwrap();
    let _ = page.cdp("Page.navigate", serde_json::json!({"url": "chrome://version"})).await;
    let begun = std::time::Instant::now();
    while page.location().await.is_ok_and(|(url, _)| url.starts_with("chrome:")) {
        assert!(begun.elapsed() < TEST_TIMEOUT, "it stays at a page of the browser's own");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
