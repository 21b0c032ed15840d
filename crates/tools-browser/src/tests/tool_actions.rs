//! Each tool, on pages made for it.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use crate::BrowserSettings;
use octo_model::Kind;
use serde_json::{Value, json};

#[tokio::test]
async fn an_app_is_used_by_what_changes() {
    let bench = BrowserFixture::new().await;
    let opened = bench.open("/app").await;
    assert_eq!(opened["title"], "Tasks");
    let page = bench.snapshot().await;
    let field = find_ref(&page, "textbox \"New task\"");
    let add = find_ref(&page, "button \"Add\"");
    bench.ok("browser_type", json!({"ref": field, "text": "Tea"})).await;
    let added = bench.ok("browser_click", json!({"ref": add})).await;
    let changes = string_field(&added, "changes");
    assert!(changes.contains("button \"Done Tea\" [ref=") && changes.contains("1 tasks"), "{changes}");
    assert!(string_field(&added, "url").ends_with("#1"), "{added}");
    assert!(added.get("page").is_none() && added.get("title").is_none(), "{added}");
    // Refs remain valid although the page changed.
    let more = bench.ok("browser_type", json!({"ref": field, "text": "Rice", "press_enter": true})).await;
    assert!(string_field(&more, "changes").contains("Done Rice"), "{more}");
    let page = bench.snapshot().await;
    assert_eq!(find_ref(&page, "button \"Add\""), add);
    // An element that was recreated is another one.
    let old = find_ref(&page, "button \"Done Rice\"");
    bench.ok("browser_click", json!({"text": "Done Tea"})).await;
    let gone = bench.call("browser_click", json!({"ref": old})).await.unwrap_err();
    assert_eq!(gone.kind, Kind::NotFound);
    assert!(gone.message.contains("Done Rice") && gone.message.contains("no longer on the page"), "{gone}");
    let now = find_ref(&bench.snapshot().await, "button \"Done Rice\"");
    assert!(gone.hint.unwrap().contains(&format!("button \"Done Rice\" [ref={now}]")));
    // An element with only a listener can be clicked, too.
    let clicked = bench.ok("browser_click", json!({"text": "Click me"})).await;
    assert!(string_field(&clicked, "changes").contains("Clicked"), "{clicked}");
}

#[tokio::test]
async fn an_element_is_meant_by_exactly_one_way_and_near_ones_are_named() {
    let bench = BrowserFixture::new().await;
    bench.open("/").await;
    let rows = [
        (json!({}), "No element"),
        (json!({"ref": "e1", "text": "App"}), "only one of"),
        (json!({"ref": "e999"}), "Ref not found"),
        (json!({"text": "Formular", "timeout_ms": 100}), "has text \"Formular\""),
        (json!({"selector": "#nothing", "timeout_ms": 100}), "matches `#nothing`"),
    ];
    for (input, wanted) in rows {
        let error = bench.call("browser_click", input).await.unwrap_err();
        assert!(error.message.contains(wanted), "{error}");
    }
    let error =
        bench.call("browser_click", json!({"text": "Formular", "timeout_ms": 100})).await.unwrap_err();
    assert!(error.hint.unwrap().contains("link \"Form\" [ref="));
    let found = bench.ok("browser_find", json!({"role": "link"})).await;
    assert_eq!(found["total"], 3);
    let found = bench.ok("browser_find", json!({"text": "many"})).await;
    assert!(found["found"][0].as_str().unwrap().starts_with("link \"many links\" [ref="), "{found}");
}

#[tokio::test]
async fn dialogs_are_answered_as_told_and_reported() {
    let bench = BrowserFixture::new().await;
    bench.open("/dialogs").await;
    let rows = [
        (json!({"text": "Warn"}), "alert \"Look out\" was accepted.", "told"),
        (json!({"text": "Ask"}), "confirm \"Sure?\" was dismissed.", "no"),
        (json!({"text": "Ask", "dialog": "accept"}), "confirm \"Sure?\" was accepted.", "yes"),
        (
            json!({"text": "Name", "dialog": "accept", "dialog_text": "Ada"}),
            "prompt \"Who?\" was accepted.",
            "name Ada",
        ),
    ];
    for (input, event, said) in rows {
        let done = bench.ok("browser_click", input).await;
        assert_eq!(done["events"][0], event, "{done}");
        assert!(string_field(&done, "changes").contains(said), "{done}");
    }
}

#[tokio::test]
async fn tabs_are_followed_listed_and_closed() {
    let bench = BrowserFixture::new().await;
    bench.open("/tabs").await;
    let here = find_ref(&bench.snapshot().await, "link \"Open the app\"");
    let opened = bench.ok("browser_click", json!({"text": "Open the app"})).await;
    assert!(opened["events"][0].as_str().unwrap().starts_with("Tab 1 ("), "{opened}");
    assert!(string_field(&opened, "page").contains("button \"Add\""), "{opened}");
    // A ref of another tab is not resolved to an element of this one.
    let other = bench.call("browser_click", json!({"ref": here})).await.unwrap_err();
    assert!(other.message.contains("another tab"), "{other}");
    let tabs = bench.ok("browser_tabs", json!({})).await;
    assert_eq!(tabs["tabs"].as_array().unwrap().len(), 2);
    assert_eq!(tabs["tabs"][1]["active"], true);
    let back = bench.ok("browser_tabs", json!({"action": "select", "index": 0})).await;
    assert_eq!(back["tabs"][0]["active"], true);
    bench.ok("browser_hover", json!({"ref": here})).await;
    let closed = bench.ok("browser_tabs", json!({"action": "close", "index": 1})).await;
    assert_eq!(closed["tabs"].as_array().unwrap().len(), 1);
    let url = format!("{}/form", bench.base_url);
    let new = bench.ok("browser_tabs", json!({"action": "new", "url": url})).await;
    assert!(string_field(&new, "page").contains("First name"), "{new}");
    assert!(bench.call("browser_tabs", json!({"action": "select"})).await.is_err());
    assert_eq!(bench.ok("browser_close", json!({})).await["closed"], true);
    assert_eq!(bench.ok("browser_close", json!({})).await["closed"], false);
}

#[tokio::test]
async fn waiting_ends_when_it_has_come_and_says_so_when_it_has_not() {
    let bench = BrowserFixture::new().await;
    let url = format!("{}/slow", bench.base_url);
    bench.ok("browser_navigate", json!({"url": url, "wait_until": "load"})).await;
    let ready = bench.ok("browser_wait", json!({"text": "Ready now"})).await;
    assert!(
        string_field(&ready, "changes").contains("Ready now")
            || string_field(&ready, "page").contains("Ready now"),
        "{ready}"
    );
    bench.ok("browser_wait", json!({"selector": "#there"})).await;
    bench.ok("browser_wait", json!({"text": "Loading", "gone": true})).await;
    bench.ok("browser_wait", json!({"url": "/slow"})).await;
    let late = bench.call("browser_wait", json!({"text": "Never", "timeout_ms": 300})).await.unwrap_err();
    assert_eq!(late.kind, Kind::Timeout);
    let console = bench.ok("browser_console", json!({"errors_only": true})).await;
    assert!(console["lines"][0].as_str().unwrap().starts_with("error: late"), "{console}");
    let requests = bench.ok("browser_network", json!({"url": "/slow"})).await;
    assert!(requests["requests"][0].as_str().unwrap().contains("200"), "{requests}");
    // A page that never settles can be used anyway.
    let url = format!("{}/busy", bench.base_url);
    bench.ok("browser_navigate", json!({"url": url, "timeout_ms": 2_000})).await;
    let pressed = bench.ok("browser_click", json!({"text": "Press"})).await;
    assert!(string_field(&pressed, "changes").contains("pressed"), "{pressed}");
}

#[tokio::test]
async fn files_come_and_go() {
    let bench = BrowserFixture::new().await;
    bench.open("/files").await;
    let sent =
        bench.ok("browser_upload", json!({"selector": "input[type=file]", "paths": ["notes.txt"]})).await;
    assert!(string_field(&sent, "changes").contains("notes.txt: alpha"), "{sent}");
    let clicked = bench.ok("browser_click", json!({"text": "Report"})).await;
    let listed = bench.ok("browser_downloads", json!({})).await;
    let id = listed["downloads"][0]["id"].as_str().unwrap_or_else(|| panic!("{listed} {clicked}"));
    let saved = bench.ok("browser_downloads", json!({"id": id, "path": "in/report.csv"})).await;
    assert_eq!(saved["saved"], "in/report.csv");
    let file = bench.folder.path().join("work/in/report.csv");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "a,b\n1,2\n");
    assert!(bench.call("browser_upload", json!({"selector": "input", "paths": ["../x"]})).await.is_err());
}

#[tokio::test]
async fn pictures_are_pictures() {
    let bench = BrowserFixture::new().await;
    bench.open("/form").await;
    for input in
        [json!({}), json!({"full_page": true}), json!({"selector": "button"}), json!({"marks": true})]
    {
        let said = input.to_string();
        let answer = bench
            .call_raw("browser_screenshot", input)
            .await
            .unwrap_or_else(|error| panic!("{said}: {error}"));
        let picture = &answer.images[0];
        assert!(picture.base64.starts_with("iVBOR") || picture.mime == "image/jpeg", "{said}");
        assert!(picture.base64.len() <= 90_000);
        let facts: Value = answer.typed.to().unwrap();
        assert!(facts["width"].as_u64().unwrap() > 10, "{said}: {facts}");
    }
    // Marks do not stay on the page.
    assert!(
        !string_field(&bench.ok("browser_get_content", json!({"output_format": "html"})).await, "content")
            .contains("octoprox-marks")
    );
    let url = format!("{}/", bench.base_url);
    let seen = bench.call_raw("browser_navigate", json!({"url": url, "screenshot": true})).await.unwrap();
    assert_eq!(seen.images.len(), 1);
}

#[tokio::test]
async fn scripts_run_only_where_they_may() {
    let bench = BrowserFixture::new().await;
    bench.open("/").await;
    let rows = [
        (json!("document.title"), json!("Home")),
        (json!("const a = 2; return a * 3"), json!(6)),
        (json!("await Promise.resolve([1, {b: 2}])"), json!([1, {"b": 2}])),
        (json!("[1, 2].map(n => { return n + 1 })"), json!([2, 3])),
        (json!("let x = 4; x"), json!(4)),
    ];
    for (script, wanted) in rows {
        assert_eq!(bench.ok("browser_execute_js", json!({"script": script})).await["result"], wanted);
    }
    let failed = bench.call("browser_execute_js", json!({"script": "nothing.here"})).await.unwrap_err();
    assert!(failed.message.contains("nothing is not defined"), "{failed}");
    let off = BrowserFixture::with(BrowserSettings { allow_javascript: false }).await;
    let denied = off.call("browser_execute_js", json!({"script": "1"})).await.unwrap_err();
    assert_eq!(denied.kind, Kind::Denied);
}

#[tokio::test]
async fn frames_are_seen_and_hidden_text_is_not() {
    let bench = BrowserFixture::new().await;
    bench.open("/frame").await;
    let page = bench.snapshot().await;
    let field = find_ref(&page, "textbox \"New task\"");
    bench.ok("browser_type", json!({"ref": field, "text": "Inside"})).await;
    let done = bench.ok("browser_click", json!({"ref": find_ref(&page, "button \"Add\"")})).await;
    assert!(string_field(&done, "changes").contains("Done Inside"), "{done}");
    let hidden = bench.open("/hidden").await;
    assert_eq!(hidden["title"], "Hidden");
    let all = format!("{hidden}");
    assert!(all.contains("Pay now") && !all.contains("Secret order"), "{all}");
}
