//! The mouse hits the intended element and nothing else.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use octo_model::Kind;
use serde_json::json;

async fn status_text(bench: &BrowserFixture) -> String {
    let said = bench.ok("browser_execute_js", json!({"script": "said.textContent"})).await;
    string_field(&said, "result")
}

#[tokio::test]
async fn a_menu_that_closes_when_the_pointer_leaves_does_not_move_the_click() {
    let bench = BrowserFixture::new().await;
    bench.open("/menu").await;
    bench.ok("browser_hover", json!({"selector": ".menu"})).await;
    bench.ok("browser_type", json!({"selector": "#cb", "text": "os"})).await;
    let clicked = bench.ok("browser_click", json!({"text": "Osaka"})).await;
    assert_eq!(status_text(&bench).await, "chosen Osaka", "{clicked}");
}

#[tokio::test]
async fn an_element_that_moves_away_is_followed_and_its_place_is_not_pressed() {
    let bench = BrowserFixture::new().await;
    bench.open("/swap").await;
    bench.ok("browser_click", json!({"selector": "#keep"})).await;
    assert_eq!(status_text(&bench).await, "kept");
    bench.open("/runaway").await;
    let error =
        bench.call("browser_click", json!({"selector": "#run", "timeout_ms": 1_500})).await.unwrap_err();
    assert_eq!(error.kind, Kind::Conflict, "{error}");
    assert_eq!(status_text(&bench).await, "nothing");
}

#[tokio::test]
async fn what_lies_over_a_frame_is_named_and_not_pressed() {
    let bench = BrowserFixture::new().await;
    bench.open("/veiled").await;
    let inner = find_ref(&bench.snapshot().await, "button \"Inner\"");
    let error = bench.call("browser_click", json!({"ref": inner, "timeout_ms": 800})).await.unwrap_err();
    assert!(error.kind == Kind::Conflict && error.message.contains("#veil"), "{error}");
    assert_eq!(status_text(&bench).await, "nothing");
    bench.ok("browser_execute_js", json!({"script": "veil.remove()"})).await;
    bench.ok("browser_click", json!({"ref": inner})).await;
    assert_eq!(status_text(&bench).await, "inner");
}

#[tokio::test]
async fn the_second_click_of_a_double_click_does_not_hit_another_element() {
    let bench = BrowserFixture::new().await;
    bench.open("/double").await;
    let error = bench.call("browser_click", json!({"selector": "#one", "double": true})).await.unwrap_err();
    assert!(error.kind == Kind::Conflict && error.message.contains("first click"), "{error}");
    assert_eq!(status_text(&bench).await, "nothing");
}

#[tokio::test]
async fn things_are_dragged_with_the_events_of_html() {
    let bench = BrowserFixture::new().await;
    bench.open("/drag").await;
    let page = bench.snapshot().await;
    let milk = find_ref(&page, "draggable \"Milk\"");
    let dragged = bench.ok("browser_drag", json!({"ref": milk, "to_selector": "#basket"})).await;
    assert!(string_field(&dragged, "changes").contains("milk"), "{dragged}");
    let again = bench.ok("browser_drag", json!({"text": "Sugar", "to_text": "Basket: milk"})).await;
    assert!(string_field(&again, "changes").contains("milk sugar"), "{again}");
    let log = bench.ok("browser_execute_js", json!({"script": "log.textContent"})).await;
    let once = "dragstart dragenter drop dragend ";
    assert_eq!(string_field(&log, "result"), format!("{once}{once}"));
    let missing = bench.call("browser_drag", json!({"ref": milk})).await.unwrap_err();
    assert!(missing.message.contains("No drop target"), "{missing}");
}

#[tokio::test]
async fn things_are_dragged_with_the_mouse_alone() {
    let bench = BrowserFixture::new().await;
    bench.open("/slide").await;
    bench.ok("browser_drag", json!({"selector": "#knob", "to_selector": "#goal"})).await;
    assert_eq!(status_text(&bench).await, "smooth 440,340");
    bench.ok("browser_drag", json!({"selector": "#knob", "by_x": -100, "by_y": 20})).await;
    assert_eq!(status_text(&bench).await, "smooth 340,360");
}

#[tokio::test]
async fn a_point_is_clicked() {
    let bench = BrowserFixture::new().await;
    bench.open("/board").await;
    let clicked = bench.ok("browser_click", json!({"x": 110, "y": 60})).await;
    assert!(string_field(&clicked, "changes").contains("move 100,50"), "{clicked}");
    assert!(clicked["events"].to_string().contains("canvas#board"), "{clicked}");
    for (input, wanted) in [
        (json!({"x": 5}), "x and y"),
        (json!({"x": 5, "y": 5, "selector": "#board"}), "only one of"),
        (json!({"x": 5_000, "y": 5}), "viewport"),
    ] {
        let error = bench.call("browser_click", input).await.unwrap_err();
        assert!(error.message.contains(wanted), "{error}");
    }
}

#[tokio::test]
async fn the_page_is_scrolled_until_a_text_shows() {
    let bench = BrowserFixture::new().await;
    bench.open("/feed").await;
    let found = bench.ok("browser_scroll", json!({"until_text": "Entry 57"})).await;
    assert!(string_field(&found, "page").contains("Entry 57"), "{found}");
    let rect = json!({"script": "[...document.querySelectorAll('p')].filter(p => { const r = p.getBoundingClientRect(); return r.bottom > 0 && r.top < innerHeight }).map(p => p.textContent)"});
    let shown = bench.ok("browser_execute_js", rect).await;
    assert!(shown["result"].to_string().contains("\"Entry 57\""), "{shown}");
    let error = bench.call("browser_scroll", json!({"until_text": "Entry 999"})).await.unwrap_err();
    assert!(error.kind == Kind::NotFound && error.message.contains("end"), "{error}");
}
