//! Worker processes of the binary: PDF extraction, and pages that need JavaScript.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start the program and serve pages, and fail where they must"
)]

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use serde_json::Value;
use std::process::Command;

const APP: &str = "<!doctype html><title>App</title><div id=root></div><script>fetch('/data').then(r => r.text()).then(text => {
    document.getElementById('root').innerHTML = '<main><article><h1>Shown</h1><p>' + (text + ' ').repeat(9) + '</p></article></main>'
})</script>";
const DATA: &str = "These words were fetched by a script and by nobody else.";

/// PDF page with a line of text and no cross-reference table; it must still be read.
const PDF: &str = "%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n\
    3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>\nendobj\n\
    4 0 obj\n<< /Length 42 >>\nstream\nBT /F1 12 Tf 72 720 Td (Words in it) Tj ET\nendstream\nendobj\n\
    5 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n";

async fn start_site() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let home = format!("http://{}", listener.local_addr().unwrap());
    let pages = Router::new()
        .route("/app", get(|| async { Html(APP) }))
        .route("/data", get(|| async { DATA }))
        .route("/a.pdf", get(|| async { ([("content-type", "application/pdf")], PDF) }));
    tokio::spawn(async move { axum::serve(listener, pages).await });
    home
}

/// Result of a call, with the browser on or off.
async fn call(tool: &str, url: String, browser: bool) -> Value {
    call_in_dir(tool, format!("url={url}"), browser, |_| {}).await
}

/// The same, in a directory with files.
async fn call_in_dir(tool: &str, argument: String, browser: bool, fill: fn(&std::path::Path)) -> Value {
    let tool = tool.to_owned();
    let called = tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("octoprox.yaml");
        // Settings in a directory that tools cannot write.
        let work = folder.path().join("work");
        std::fs::create_dir(&work).unwrap();
        fill(&work);
        std::fs::write(&settings, format!("toolboxes:\n  browser: {browser}\n")).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_octoprox"))
            .args(["call", &tool, &argument, "--json", "--config"])
            .arg(&settings)
            .env("OCTOPROX_NET_ALLOW", "127.0.0.1")
            .env("HOME", folder.path())
            .env("OCTOPROX_STATE_DIR", folder.path().join("state"))
            .current_dir(&work)
            .output()
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    });
    called.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_is_read_by_the_binary_itself() {
    let home = start_site().await;
    let read = call("fetch_url", format!("{home}/a.pdf"), false).await;
    assert_eq!(read["result"]["content"], "## Page 1\n\nWords in it\n", "{read}");
    let read = call("read_page", format!("{home}/a.pdf"), false).await;
    assert_eq!(read["result"]["title"], "a.pdf", "{read}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pictures_and_pdfs_of_the_workspace_are_read() {
    let fill = |folder: &std::path::Path| {
        std::fs::write(folder.join("a.pdf"), PDF).unwrap();
        // Larger than the result limit.
        let picture = [b"\x89PNG\r\n\x1a\n".to_vec(), vec![0; 300_000]].concat();
        std::fs::write(folder.join("a.png"), picture).unwrap();
    };
    let paper = call_in_dir("fs_read_media", "path=a.pdf".to_owned(), false, fill).await;
    let text = paper["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.contains("Page 1\n\nWords in it"), "{paper}");
    let picture = call_in_dir("fs_read_media", "path=a.png".to_owned(), false, fill).await;
    let block = &picture["result"]["content"][0];
    assert_eq!(
        (&block["type"], &block["mimeType"]),
        (&"image".into(), &"image/png".into()),
        "{:.500}",
        picture.to_string()
    );
    assert_eq!(block["data"].as_str().map(str::len), Some(400_012));
    let refused = call_in_dir("fs_read_text", "path=a.png".to_owned(), false, fill).await;
    assert!(
        refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("fs_read_media")),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_scripts_fill_is_read_through_the_browser_when_that_is_on() {
    let home = start_site().await;
    let read = call("read_page", format!("{home}/app"), true).await;
    let said = read["result"]["content"].as_str().unwrap_or_default();
    assert!(said.contains(DATA), "{read}");
    assert!(
        read["result"]["note"].as_str().is_some_and(|note| note.contains("through the browser")),
        "{read}"
    );
    let without = call("read_page", format!("{home}/app"), false).await;
    assert!(without["error"]["hint"].as_str().is_some_and(|hint| hint.contains("`browser`")), "{without}");
}
