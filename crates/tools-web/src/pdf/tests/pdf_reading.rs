//! Replies for valid and invalid files.
#![expect(clippy::disallowed_methods, reason = "the test prints a file with Chromium")]

use super::{bench, fetch, pdf_capability, pdf_files};
use crate::fake_server::FakeServer;
use crate::pdf::read;
use bytes::Bytes;
use octo_toolkit::{Kind, ToolError};
use serde_json::json;
use std::process::Command;
use std::time::Duration;

const TEST_TIMEOUT: Duration = Duration::from_secs(20);

async fn text(file: Vec<u8>) -> Result<String, ToolError> {
    Ok(read(&pdf_capability(), Bytes::from(file), true, TEST_TIMEOUT).await?.text(true))
}

#[tokio::test]
async fn pages_are_read_packed_or_not_and_with_a_broken_table() {
    let texts = ["First page\nsecond line", "# no heading", "Last page"];
    let expected =
        "## Page 1\n\nFirst page\nsecond line\n\n## Page 2\n\n\\# no heading\n\n## Page 3\n\nLast page\n";
    let plain = pdf_files::with_pages(&texts, pdf_files::plain, "");
    let place = plain.windows(9).rposition(|window| window == b"startxref").unwrap();
    let mut astray = plain.clone();
    astray.splice(place.., *b"startxref\n17\n%%EOF\n");
    let mut without = plain.clone();
    without.truncate(plain.windows(5).rposition(|window| window == b"xref\n").unwrap() - 200);
    for (what, file) in [
        ("plain", plain),
        ("packed", pdf_files::with_pages(&texts, pdf_files::deflated, "")),
        ("a table that is elsewhere", astray),
    ] {
        assert_eq!(text(file).await.unwrap(), expected, "{what}");
    }
    assert!(text(without).await.unwrap().contains("First page"), "without a table");
}

#[tokio::test]
async fn title_and_author_are_told_with_the_pages() {
    let trailer = "/Info << /Title (About  tea) /Author <FEFF004100F6> >>";
    let file = pdf_files::with_pages(&["Words", ""], pdf_files::plain, trailer);
    let paper = read(&pdf_capability(), Bytes::from(file), true, TEST_TIMEOUT).await.unwrap();
    assert_eq!(
        (paper.title.as_deref(), paper.author.as_deref(), paper.page_count),
        (Some("About tea"), Some("Aö"), 2)
    );
    assert_eq!((paper.pages, paper.is_truncated), (vec!["Words".to_owned(), String::new()], false));
}

#[tokio::test]
async fn what_has_no_text_to_give_says_why() {
    let scanned = pdf_files::from_commands(&[b"0 0 612 792 re f", b"0 0 1 1 re f"]);
    let locked = "/ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>] \
        /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -3904 \
        /O <00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff> \
        /U <ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100> >>";
    let pages = pdf_files::with_pages(&["secret"], pdf_files::plain, locked);
    for (what, file, said) in [
        ("scanned", scanned, "no text on its pages (2): its pages are probably scanned"),
        ("locked", pages, "password"),
        ("noise", b"%PDF-1.7\nnothing of a file".to_vec(), "damaged"),
        ("empty", b"%PDF-".to_vec(), "damaged"),
    ] {
        let error = text(file).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid, "{what}: {error}");
        assert!(error.message.contains(said), "{what}: {error}");
        assert!(error.hint.is_some(), "{what}");
    }
}

#[tokio::test]
async fn fetch_url_gives_text_by_page_and_describes_what_it_cannot_read() {
    let fake = FakeServer::serve_bytes(|seen| match seen.path.as_str() {
        "/tea.pdf" => pdf_files::with_pages(
            &["Green tea", "Black tea"],
            pdf_files::deflated,
            "/Info << /Title (Tea) >>",
        ),
        "/large.pdf" => {
            let mut file = pdf_files::with_pages(&["At the end of a large file"], pdf_files::plain, "");
            let comment = "% nothing\n".repeat(70_000);
            file.splice(9..9, comment.bytes());
            file
        }
        _ => b"%PDF-1.7 broken".to_vec(),
    })
    .await;
    let bench = bench();
    let at = |path: &str| fake.url.join(path).unwrap().to_string();
    let found = fetch(&bench, &at("tea.pdf")).await;
    assert_eq!(found["content"], "## Page 1\n\nGreen tea\n\n## Page 2\n\nBlack tea\n");
    assert_eq!((&found["pages"], &found["title"]), (&json!(2), &json!("Tea")));
    assert_eq!((&found["truncated"], found.get("notice")), (&json!(false), None));
    let text =
        json!({"url": at("tea.pdf"), "output_format": "text", "include_metadata": false, "max_bytes": 12});
    let text = bench.call("fetch_url", text).await.unwrap();
    assert_eq!((&text["content"], &text["truncated"]), (&json!("Page 1\n\nGree"), &json!(true)));
    assert!(text.get("title").is_none(), "{text}");
    let large = fetch(&bench, &at("large.pdf")).await;
    assert!(large["content"].as_str().unwrap().contains("At the end of a large file"), "{large}");
    assert!(large["byte_count"].as_u64().unwrap() > 700_000 && large["truncated"] == false, "{large}");
    let broken = fetch(&bench, &at("broken.pdf")).await;
    assert_eq!((&broken["content"], &broken["status_code"]), (&json!("PDF 1.7, 15 bytes."), &json!(200)));
    assert!(broken["notice"].as_str().unwrap().contains("damaged"), "{broken}");
}

#[tokio::test]
async fn what_a_browser_prints_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let (page, file) = (folder.path().join("p.html"), folder.path().join("p.pdf"));
    let html = "<meta charset=utf-8><title>Tea Ω</title><h1>Tea in the morning</h1><p>Größe, “quoted”, fine offices, Привет.</p>\
        <table><tr><td>green</td><td>2</td></tr></table><div style='break-before: page'>Second</div>";
    std::fs::write(&page, html).unwrap();
    let printed = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"])
        .arg(format!("--user-data-dir={}", folder.path().display()))
        .arg(format!("--print-to-pdf={}", file.display()))
        .arg(&page)
        .output();
    assert!(printed.unwrap().status.success());
    let paper =
        read(&pdf_capability(), Bytes::from(std::fs::read(file).unwrap()), true, TEST_TIMEOUT).await.unwrap();
    assert_eq!((paper.title.as_deref(), paper.page_count), (Some("Tea Ω"), 2));
    let first = &paper.pages[0];
    for words in ["Tea in the morning\n", "Größe, “quoted”, fine offices, Привет.", "green 2"] {
        assert!(first.contains(words), "{words} in {first}");
    }
    assert_eq!(paper.pages[1], "Second");
}
