//! A real searx, started for the test; its only working engine reads a page on loopback.
#![expect(clippy::disallowed_methods, reason = "the test starts a server and writes its settings")]

use super::super::SearchSettings;
use super::{search, urls};
use crate::fake_server::{FakeServer, RecordedRequest, html, unused_url};
use serde_json::json as value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use url::Url;

/// Killed at the end of the test.
struct Searx {
    url: Url,
    _process: Child,
    _folder: TempDir,
}

/// Complete, since Debian's package has no defaults; the two directories are where Debian puts them.
fn settings(port: u16, page: &Url) -> String {
    format!(
        r#"general:
  debug: false
  instance_name: "test"
search:
  safe_search: 0
  autocomplete: ""
  default_lang: ""
server:
  port: {port}
  bind_address: "127.0.0.1"
  secret_key: "only for a test on loopback"
  base_url: false
  image_proxy: false
  http_protocol_version: "1.0"
  method: "GET"
ui:
  static_path: "/usr/share/python3-searx/static"
  templates_path: "/usr/share/python3-searx/templates"
  default_theme: oscar
  default_locale: "en"
outgoing:
  request_timeout: 5.0
  useragent_suffix: ""
  pool_connections: 10
  pool_maxsize: 10
locales:
  en: English
doi_resolvers:
  doi.org: "https://doi.org/"
default_doi_resolver: doi.org
engines:
  - name: shelf
    engine: xpath
    shortcut: sh
    categories: general
    enable_http: true
    paging: true
    search_url: {page}find?q={{query}}&page={{pageno}}
    results_xpath: //li
    url_xpath: ./a/@href
    title_xpath: ./a
    content_xpath: ./p
  - name: broken
    engine: xpath
    shortcut: br
    categories: science
    enable_http: true
    search_url: {page}broken?q={{query}}
    results_xpath: //li
    url_xpath: ./a/@href
    title_xpath: ./a
    content_xpath: ./p
"#
    )
}

impl Searx {
    async fn start(page: &Url) -> Self {
        let program =
            std::env::var("SEARX").expect("SEARX is not set: run eval \"$(scripts/services env)\" first");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("settings.yml");
        let url = unused_url();
        std::fs::write(&file, settings(url.port().unwrap(), page)).unwrap();
        let process = Command::new(program)
            .env("SEARX_SETTINGS_PATH", &file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut searx = Self { url, _process: process, _folder: folder };
        searx.wait().await;
        searx
    }

    async fn wait(&mut self) {
        let until = Instant::now() + Duration::from_secs(60);
        let address = (self.url.host_str().unwrap(), self.url.port().unwrap());
        while tokio::net::TcpStream::connect(address).await.is_err() {
            let log = || std::fs::read_to_string(self._folder.path().join("log")).unwrap_or_default();
            assert!(self._process.try_wait().unwrap().is_none(), "searx ended: {}", log());
            assert!(Instant::now() < until, "searx does not listen: {}", log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn settings(&self) -> SearchSettings {
        SearchSettings {
            searxng_url: Some(self.url.clone()),
            duckduckgo_url: Some(unused_url()),
            ..SearchSettings::default()
        }
    }
}

/// Five entries a page, three pages.
fn paged_list(seen: &RecordedRequest) -> (u16, (&'static str, String), String) {
    let page: u32 = seen.get("page").parse().unwrap_or(1);
    if seen.path == "/broken" {
        return html(500, "");
    }
    let entry = |number: u32| {
        format!(
            r#"<li><a href="https://shelf.example/{q}/{number}?utm_source=s">Book {number} &amp; more</a><p>About {q} {number}</p></li>"#,
            q = seen.get("q"),
        )
    };
    let first = (page - 1) * 5 + 1;
    let list: String = if page <= 3 { (first..first + 5).map(entry).collect() } else { String::new() };
    html(200, &format!("<html><body><ul>{list}</ul></body></html>"))
}

#[tokio::test]
async fn a_real_searx_is_searched_page_by_page() {
    let page = FakeServer::serve(paged_list).await;
    let searx = Searx::start(&page.url).await;
    let bench = search(searx.settings());
    let answer = bench.call("web_search", value!({"query": "whales", "num_results": 12})).await.unwrap();
    let expected: Vec<String> =
        (1..=12).map(|number| format!("https://shelf.example/whales/{number}")).collect();
    assert_eq!(urls(&answer), expected);
    assert_eq!(answer["results"][0]["title"], "Book 1 & more");
    assert_eq!(answer["results"][0]["snippet"], "About whales 1");
    assert_eq!(answer["results"][0]["engine"], "shelf");
    assert_eq!(answer["engine"], "searxng");
    assert_eq!(answer["failed_engines"], value!([]));
    assert_eq!(answer["next"], 2);
    let rest =
        bench.call("web_search", value!({"query": "whales", "num_results": 12, "page": 2})).await.unwrap();
    assert_eq!(rest["total_results"], 3);
    assert!(rest.get("next").is_none());
    let pages: Vec<String> = page.requests().iter().map(|seen| seen.get("page").to_owned()).collect();
    assert_eq!(pages, ["1", "2", "3", "4"]);

    let error =
        bench.call("web_search", value!({"query": "whales", "categories": ["science"]})).await.unwrap_err();
    assert!(
        error.message.contains("searxng: it found nothing because its engines failed: broken ("),
        "{error}"
    );
}
