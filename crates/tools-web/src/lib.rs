//! Web toolboxes: fetch, readability, search and weather. All requests go through the `Net` grant.

mod body_kind;
mod charset;
pub mod extract;
#[cfg(test)]
mod fake_server;
mod fetch_json;
mod fetch_url;
mod head_metadata;
mod html_limits;
mod html_to_markdown;
mod http_request;
mod json_body;
mod links;
mod outgoing_request;
mod page_document;
mod pdf;
mod pretty_json;
mod read_page;
mod render_body;
mod weather;
mod web_search;

use octo_toolkit::Toolbox;
pub use pdf::read_pdf;
pub use weather::WeatherSettings;
pub use web_search::SearchSettings;

/// Toolbox `fetch`.
pub fn fetch_toolbox() -> Toolbox {
    Toolbox::new("fetch", "Fetches URLs over HTTP.")
        .with(fetch_url::FetchUrl)
        .with(http_request::HttpRequest)
        .with(fetch_json::FetchJson)
}

/// Toolbox `readability`.
pub fn readability_toolbox() -> Toolbox {
    Toolbox::new("readability", "Reads web pages as text.")
        .with(read_page::ReadPage(page_document::DocumentCache::default()))
}

/// Toolbox `search`.
pub fn search_toolbox(settings: SearchSettings) -> Toolbox {
    let engine = settings.searxng_url.as_ref().and_then(|url| {
        url.host_str().zip(url.port_or_known_default()).map(|(host, port)| format!("{host}:{port}"))
    });
    Toolbox::new("search", "Searches the web.").with_egress(engine).with(web_search::WebSearch::new(settings))
}

/// Toolbox `weather`.
pub fn weather_toolbox(settings: WeatherSettings) -> Toolbox {
    Toolbox::new("weather", "Current weather and seven-day forecasts.").with(weather::Weather::new(settings))
}

#[cfg(test)]
mod tests;
