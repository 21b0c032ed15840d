//! Token costs of large pages and of a task of ten steps.

use super::browser_fixture::{BrowserFixture, find_ref, string_field};
use crate::snapshot::tokens;
use serde_json::{Value, json};

#[tokio::test]
async fn snapshots_of_large_pages_are_small_and_the_viewport_can_be_acted_on() {
    let bench = BrowserFixture::new().await;
    for (path, most, first) in
        [("/links", 2_500, "Story 1 "), ("/table", 1_000, "Item 0"), ("/article", 1_100, "Octopus")]
    {
        bench.open(path).await;
        let page = bench.snapshot().await;
        println!("{path}: {} tokens", tokens(&page));
        assert!(tokens(&page) <= most, "{path}: {} tokens\n{page}", tokens(&page));
        assert!(page.contains(first) && page.contains('…'), "{page}");
        let in_view = bench.ok("browser_execute_js", json!({"script": IN_VIEW})).await;
        for name in in_view["result"].as_array().unwrap() {
            let name: String = name.as_str().unwrap().chars().take(30).collect();
            let line = page.lines().find(|line| line.contains(&name));
            assert!(line.is_some_and(|line| line.contains("[ref=")), "{path}: {name} is not there\n{page}");
        }
    }
    let full = bench.ok("browser_snapshot", json!({"full": true})).await;
    assert_eq!(full["truncated"], false);
    assert!(string_field(&full, "snapshot").contains("Chapter 19"));
}

const IN_VIEW: &str = "[...document.querySelectorAll('a,button,input')].filter(e => { const r = e.getBoundingClientRect(); return r.width > 0 && r.bottom > 1 && r.top < innerHeight - 1 && r.left < innerWidth }).map(e => e.textContent.trim())";

/// Search, open, filter, fill, submit, read.
#[tokio::test]
async fn a_task_of_ten_steps_costs_less_than_ten_thousand_tokens() {
    let bench = BrowserFixture::new().await;
    let mut cost = TokenMeter { bench: &bench, tokens: 0, calls: 0 };
    let url = format!("{}/shop", bench.base_url);
    let page = cost.call("browser_navigate", json!({"url": url, "output_format": "accessibility"})).await;
    let page = string_field(&page, "content");
    let search = find_ref(&page, "searchbox \"Search\"");
    let found = cost.call("browser_type", json!({"ref": search, "text": "Teapot 4"})).await;
    assert!(found.to_string().contains("11 found"), "{found}");
    let found = cost.call("browser_click", json!({"ref": find_ref(&page, "checkbox \"In stock\"")})).await;
    assert!(found.to_string().contains("5 found"), "{found}");
    cost.call("browser_select_option", json!({"selector": "#sort", "values": ["Price"]})).await;
    let item = cost.call("browser_click", json!({"text": "Teapot 47"})).await;
    assert_eq!(item["title"], "Item 47");
    let form = string_field(&item, "page");
    cost.call("browser_scroll", json!({})).await;
    let fields = json!([
        {"ref": find_ref(&form, "textbox \"Name\""), "value": "Ada"},
        {"label": "Amount", "value": 3},
        {"label": "Country", "value": "Sweden"},
        {"label": "Gift", "value": true},
    ]);
    cost.call("browser_fill_form", json!({"fields": fields})).await;
    let done = cost.call("browser_click", json!({"text": "Order"})).await;
    assert!(string_field(&done, "page").contains("Order 4711: 3 to Sweden, gift on."), "{done}");
    let read = cost.call("browser_get_content", json!({"output_format": "markdown"})).await;
    assert!(string_field(&read, "content").contains("# Thank you, Ada"), "{read}");
    cost.call("browser_back", json!({})).await;
    println!("{} tokens in {} calls", cost.tokens, cost.calls);
    assert_eq!(cost.calls, 10);
    assert!(cost.tokens < 10_000, "{} tokens", cost.tokens);
}

struct TokenMeter<'a> {
    bench: &'a BrowserFixture,
    tokens: usize,
    calls: usize,
}

impl TokenMeter<'_> {
    async fn call(&mut self, name: &str, input: Value) -> Value {
        self.tokens += tokens(&input.to_string()) + 10;
        self.calls += 1;
        let answer = self.bench.ok(name, input).await;
        self.tokens += tokens(&answer.to_string());
        answer
    }
}
