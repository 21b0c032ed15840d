//! Replies contain what a model needs for its next step.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use serde_json::{Value, json};

#[tokio::test]
async fn a_function_is_called() {
    let bench = BrowserFixture::new().await;
    bench.open("/").await;
    for (script, wanted) in [
        ("() => 5", json!(5)),
        ("function () { return document.title }", json!("Home")),
        ("async () => { await null; return [1] }", json!([1])),
        ("(a = 3) => a * 2;", json!(6)),
        ("async function named() { return 'n' }", json!("n")),
        ("({f: 1}).f", json!(1)),
        ("return () => 7", json!(7)),
        ("class A {}", json!({})),
    ] {
        let ran = bench.ok("browser_execute_js", json!({"script": script})).await;
        assert_eq!(ran["result"], wanted, "{script}");
    }
}

#[tokio::test]
async fn a_file_field_is_called_one_and_says_what_it_holds() {
    let bench = BrowserFixture::new().await;
    bench.open("/files").await;
    let page = bench.snapshot().await;
    let field = find_ref(&page, "file field \"Attach\"");
    for (name, input) in [
        ("browser_click", json!({"ref": field})),
        ("browser_type", json!({"ref": field, "text": "notes.txt"})),
        ("browser_fill_form", json!({"fields": [{"label": "Attach", "value": "notes.txt"}]})),
    ] {
        let error = bench.call(name, input).await.unwrap_err();
        assert!(error.text().contains("browser_upload"), "{name}: {error} {:?}", error.hint);
    }
    let sent = bench.ok("browser_upload", json!({"ref": field, "paths": ["notes.txt"]})).await;
    assert!(sent["events"].to_string().contains("notes.txt (6 bytes)"), "{sent}");
    let page = bench.snapshot().await;
    assert!(page.lines().any(|line| line.contains("file field") && line.contains("notes.txt")), "{page}");
}

#[tokio::test]
async fn an_action_without_effect_says_so() {
    let bench = BrowserFixture::new().await;
    bench.open("/silent").await;
    let clicked = bench.ok("browser_click", json!({"text": "Nothing"})).await;
    assert!(string_field(&clicked, "changes").contains("Nothing on the page changed"), "{clicked}");
    let typed = bench.ok("browser_type", json!({"selector": "input", "text": "Ada"})).await;
    assert!(!string_field(&typed, "changes").contains("Nothing"), "{typed}");
}

#[tokio::test]
async fn what_is_left_out_is_counted() {
    let bench = BrowserFixture::new().await;
    let opened = bench.open("/article").await;
    assert_eq!(opened["truncated"], true);
    let note = string_field(&opened, "note");
    assert!(note.contains("browser_get_content") && note.contains("characters"), "{note}");
    let page = bench.ok("browser_snapshot", json!({})).await;
    assert!(page["truncated"] == true && string_field(&page, "note").contains("folded"), "{page}");
}

#[tokio::test]
async fn a_page_that_fills_itself_is_waited_for_and_an_empty_one_says_so() {
    let bench = BrowserFixture::new().await;
    let opened = bench.open("/spa").await;
    assert!(string_field(&opened, "content").contains("Three orders"), "{opened}");
    let empty = bench.open("/empty").await;
    assert!(string_field(&empty, "note").contains("no readable content"), "{empty}");
}

#[tokio::test]
async fn elements_that_say_the_same_are_told_apart() {
    let bench = BrowserFixture::new().await;
    bench.open("/rows").await;
    let error = bench.call("browser_click", json!({"text": "Remove"})).await.unwrap_err();
    let hint = error.hint.unwrap_or_default();
    for context in ["Tea", "Rice", "Salt"] {
        assert!(hint.contains(context), "{hint}");
    }
}

#[tokio::test]
async fn pictures_keep_their_size_until_they_are_too_large() {
    let bench = BrowserFixture::new().await;
    let url = format!("{}/photos", bench.base_url);
    let seen = bench.call_raw("browser_navigate", json!({"url": url, "screenshot": true})).await.unwrap();
    let (width, height) = size(&seen.images[0].base64);
    assert_eq!((width, height), (1280, 720));
    let view = bench.call_raw("browser_screenshot", json!({"marks": true})).await.unwrap();
    assert_eq!(size(&view.images[0].base64), (1280, 720));
    let whole = bench.call_raw("browser_screenshot", json!({"full_page": true})).await.unwrap();
    let facts: Value = whole.typed.to().unwrap();
    assert!(whole.images[0].base64.len() <= 2 << 20);
    let (width, _) = size(&whole.images[0].base64);
    assert_eq!(u64::from(width), facts["width"].as_u64().unwrap());
    assert!(width < 1280 && string_field(&facts, "note").contains("from 1280 by"), "{facts}");
}

/// Width and height, read from the image itself.
fn size(base64: &str) -> (u32, u32) {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(base64).unwrap();
    if bytes.starts_with(b"\x89PNG") {
        let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        return (side(16), side(20));
    }
    let mut at = 2;
    loop {
        let (kind, length) = (bytes[at + 1], usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]])));
        if matches!(kind, 0xc0..=0xc2) {
            let side = |at: usize| u32::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
            return (side(at + 7), side(at + 5));
        }
        at += 2 + length;
    }
}

#[tokio::test]
async fn requests_are_shown_with_their_bodies_and_without_credentials() {
    let bench = BrowserFixture::new().await;
    bench.open("/calls").await;
    bench.ok("browser_click", json!({"text": "Send"})).await;
    bench.ok("browser_wait", json!({"text": "Hello Ada"})).await;
    let listed = bench.ok("browser_network", json!({"url": "/api"})).await;
    let line = listed["requests"][0].as_str().unwrap();
    let number: u64 = line.trim_start_matches('#').split(' ').next().unwrap().parse().unwrap();
    let shown = bench.ok("browser_network", json!({"request": number})).await;
    let all = shown.to_string();
    assert!(all.contains("Ada") && all.contains("Hello Ada"), "{all}");
    for secret in
        ["hunter2hunter2", "ghp_abcdefghij", "0123456789abcdef", "verysecretcookie", "abc123456789secret"]
    {
        assert!(!all.contains(secret), "{secret}: {all}");
    }
    let error = bench.call("browser_network", json!({"request": 9_999})).await.unwrap_err();
    assert!(error.message.contains("9999"), "{error}");
}

#[tokio::test]
async fn a_page_that_was_read_is_read_again_once_anything_changed() {
    let bench = BrowserFixture::new().await;
    bench.open("/states").await;
    let first = bench.snapshot().await;
    assert_eq!(bench.snapshot().await, first);
    for (script, wanted, there) in [
        ("t.value = 'x1'", "x1", true),
        ("t.focus()", "focused", true),
        ("c.indeterminate = true", "partly checked", true),
        ("t.setCustomValidity('bad')", "invalid", true),
        ("p.style.visibility = 'hidden'", "Words here", false),
        ("b.disabled = true", "disabled", true),
        ("host.shadowRoot.firstChild.textContent = 'Deeper'", "Deeper", true),
        ("p.replaceWith(document.createElement('hr'), 'New words')", "New words", true),
    ] {
        bench.ok("browser_execute_js", json!({"script": script})).await;
        let page = bench.snapshot().await;
        assert_eq!(page.contains(wanted), there, "{script}\n{page}");
    }
}
