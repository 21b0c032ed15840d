//! The web toolboxes: fetching, reading, searching, the weather. Everything goes out through the `Net` grant.

mod about;
mod asking;
mod charset;
mod depth;
mod document;
pub mod extract;
#[cfg(test)]
mod fake;
mod fetch_json;
mod fetch_url;
mod http_request;
mod json_body;
mod kind;
mod links;
mod markdown;
mod pdf;
mod pretty;
mod read_page;
mod reading;
mod search;
mod weather;

use octo_toolkit::Toolbox;
pub use pdf::read_pdf;
pub use search::{ApiKey, SearchSettings};
pub use weather::WeatherSettings;

/// The tools of the domain `fetch`.
pub fn fetch_toolbox() -> Toolbox {
    Toolbox::new("fetch", "Fetches addresses over HTTP.")
        .with(fetch_url::FetchUrl)
        .with(http_request::HttpRequest)
        .with(fetch_json::FetchJson)
}

/// The tools of the domain `readability`.
pub fn readability_toolbox() -> Toolbox {
    Toolbox::new("readability", "Reads web pages as text.")
        .with(read_page::ReadPage(document::Documents::default()))
}

/// The tools of the domain `search`.
pub fn search_toolbox(settings: SearchSettings) -> Toolbox {
    Toolbox::new("search", "Searches the web.").with(search::Search::new(settings))
}

/// The tools of the domain `weather`.
pub fn weather_toolbox(settings: WeatherSettings) -> Toolbox {
    Toolbox::new("weather", "The weather of places, now and for a week.")
        .with(weather::Weather::new(settings))
}

#[cfg(test)]
mod tests;
