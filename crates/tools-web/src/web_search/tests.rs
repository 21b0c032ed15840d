//! `web_search` against fake SearXNG, Brave and DuckDuckGo servers on loopback; a real searx in `real_searx`.

mod brave;
mod duckduckgo;
mod engine_fallback;
mod real_searx;
mod searxng;

use super::SearchSettings;
use crate::fake_server::bench;
use octo_toolkit::{ToolError, ToolFixture};
use serde_json::Value;

fn search(settings: SearchSettings) -> ToolFixture {
    bench(crate::search_toolbox(settings))
}

async fn call_search(settings: SearchSettings, input: Value) -> Result<Value, ToolError> {
    search(settings).call("web_search", input).await
}

fn urls(answer: &Value) -> Vec<&str> {
    answer["results"].as_array().unwrap().iter().map(|hit| hit["url"].as_str().unwrap()).collect()
}
