//! Open-Meteo API client.

use super::WeatherSettings;
use http::StatusCode;
use octo_toolkit::net::NetRequest;
use octo_toolkit::{Net, ToolError};
use serde_json::Value;
use std::time::Duration;
use url::Url;

const GEOCODING_URL: &str = "https://geocoding-api.open-meteo.com";
const FORECAST_URL: &str = "https://api.open-meteo.com";
const MAX_REQUEST_TIME: Duration = Duration::from_secs(15);
const RETRY_HINT: &str = "Try again later.";

pub struct OpenMeteo<'a> {
    pub net: &'a Net,
    pub settings: &'a WeatherSettings,
    pub time_left: Duration,
}

impl OpenMeteo<'_> {
    /// Places with similar names, best first.
    pub async fn places(&self, name: &str, count: u8) -> Result<Vec<Value>, ToolError> {
        let mut url = endpoint(self.settings.geocoding_url.as_ref(), GEOCODING_URL, "/v1/search")?;
        let count = count.to_string();
        url.query_pairs_mut().extend_pairs([
            ("name", name),
            ("count", &count),
            ("language", "en"),
            ("format", "json"),
        ]);
        let mut found = self.get_json(url).await?;
        match found.get_mut("results").map(Value::take) {
            Some(Value::Array(places)) => Ok(places),
            _ => Ok(Vec::new()),
        }
    }

    pub async fn forecast(&self, query: &[(&str, &str)]) -> Result<Value, ToolError> {
        let mut url = endpoint(self.settings.forecast_url.as_ref(), FORECAST_URL, "/v1/forecast")?;
        url.query_pairs_mut().extend_pairs(query);
        self.get_json(url).await
    }

    async fn get_json(&self, url: Url) -> Result<Value, ToolError> {
        let mut ask = NetRequest::get(url);
        ask.timeout = self.time_left.min(MAX_REQUEST_TIME);
        ask.max_bytes = 1 << 20;
        ask.max_redirects = 3;
        let answer = self.net.send(ask).await?;
        let body = serde_json::from_slice::<Value>(&answer.body);
        match (answer.status, body) {
            (StatusCode::OK, Ok(body)) => Ok(body),
            (StatusCode::OK, Err(error)) => {
                Err(ToolError::unavailable("The response of the weather service is not JSON.")
                    .hint(RETRY_HINT)
                    .detail(error))
            }
            (StatusCode::TOO_MANY_REQUESTS, _) => Err(answer
                .rate_limited("The weather service is rate limiting requests.", Duration::from_secs(60))),
            (status, body) => {
                let reason = body.ok().and_then(|body| Some(body.get("reason")?.as_str()?.to_owned()));
                let error = ToolError::unavailable(format!(
                    "The weather service returned status {}.",
                    status.as_u16()
                ));
                Err(error.hint(RETRY_HINT).detail(reason.unwrap_or_default()))
            }
        }
    }
}

fn endpoint(given: Option<&Url>, own: &str, path: &str) -> Result<Url, ToolError> {
    let mut url = match given {
        Some(url) => url.clone(),
        None => Url::parse(own).map_err(ToolError::internal)?,
    };
    let under = format!("{}{path}", url.path().trim_end_matches('/'));
    url.set_path(&under);
    Ok(url)
}
