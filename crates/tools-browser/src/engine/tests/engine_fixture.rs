//! An engine, and a site on loopback that it may visit.

use crate::engine::{Engine, NavigationResult, Node, Page, Session, WaitUntil, World};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use octo_toolkit::chromium::{BrowserSandbox, Chromium, ChromiumSpec};
use octo_toolkit::net::{Net, NetSpec};
use octo_toolkit::{Caller, ToolError};
use serde_json::Value;
use std::time::{Duration, Instant};

pub const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub struct EngineFixture {
    pub engine: Engine,
    pub chromium: Chromium,
    pub port: u16,
    /// Dropped with the fixture.
    _folder: tempfile::TempDir,
}

pub fn page(body: &'static str) -> axum::routing::MethodRouter {
    get(move || async move { Html(format!("<!doctype html><title>T</title>{body}")) })
}

pub fn site() -> Router {
    let file = || async {
        ([(header::CONTENT_DISPOSITION, "attachment; filename=\"report.csv\"")], "a,b\n1,2\n").into_response()
    };
    Router::new()
        .route("/", page("<h1>Home</h1><a href=/second>second</a>"))
        .route("/second", page("<h1>Second</h1><title>Two</title>"))
        .route("/file", get(file))
        .route("/missing", get(|| async { StatusCode::NOT_FOUND }))
        .route("/slow", get(|| async { tokio::time::sleep(Duration::from_secs(60)).await }))
}

impl EngineFixture {
    pub async fn new(site: Router) -> Self {
        Self::with_enclosure(site, BrowserSandbox::Auto).await
    }

    pub async fn with_enclosure(site: Router, enclosure: BrowserSandbox) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, site).await });
        let folder = tempfile::tempdir().unwrap();
        let allow = vec![format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let spec = ChromiumSpec {
            path: "/usr/local/bin:/usr/bin:/bin".into(),
            state: folder.path().join("state"),
            launcher: octo_toolkit::exec::launcher::test_launcher("engine::tests::launcher").unwrap(),
            sandbox: enclosure,
            net: Net::new(NetSpec { allow, ..NetSpec::default() }).unwrap(),
        };
        Self { engine: Engine::new(), chromium: Chromium::new(spec).unwrap(), port, _folder: folder }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub async fn session(&self) -> Session {
        self.engine.session(&self.chromium, &Caller::local(), "default").await.unwrap()
    }

    pub async fn visit(&self, path: &str) -> (Session, Page, NavigationResult) {
        let session = self.session().await;
        let page = session.page().await.unwrap();
        let at = page.navigate(&self.url(path), WaitUntil::Load, TEST_TIMEOUT).await.unwrap();
        (session, page, at)
    }
}

pub async fn query_one(page: &Page, selector: &str) -> Node {
    page.query(selector, 1).await.unwrap().pop().unwrap_or_else(|| panic!("no {selector}"))
}

pub async fn eval(page: &Page, script: &str) -> Value {
    page.evaluate(script, World::Main, TEST_TIMEOUT).await.unwrap()
}

/// Waits until a script returns true.
pub async fn wait_until(page: &Page, script: &str) {
    let begun = Instant::now();
    while page.evaluate(script, World::Main, TEST_TIMEOUT).await.ok() != Some(Value::Bool(true)) {
        assert!(begun.elapsed() < TEST_TIMEOUT, "never: {script}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub fn error_kind<T>(result: Result<T, ToolError>) -> Option<octo_toolkit::Kind> {
    result.err().map(|error| error.kind)
}
