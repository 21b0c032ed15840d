//! `weather_get`.

mod forecast;
mod geocoding;
mod open_meteo;
mod weather_codes;

use geocoding::{GeocodeResult, Place};
use octo_toolkit::{CallContext, Effect, Example, Net, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;

/// URLs that replace those of Open-Meteo.
#[derive(Debug, Clone, Default)]
pub struct WeatherSettings {
    /// Base URL of `/v1/search`.
    pub geocoding_url: Option<Url>,
    /// Base URL of `/v1/forecast`.
    pub forecast_url: Option<Url>,
}

/// Gets the current weather of a place and a seven-day forecast from Open-Meteo. An ambiguous name uses the best match
/// and lists the alternatives; an unknown one fails with similar names.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// A place such as Berlin or Paris, Texas; a postal code; or latitude and longitude such as 48.85,2.35.
    location: String,
    /// metric: °C, km/h, mm. imperial: °F, mph, inch.
    #[serde(default)]
    units: Units,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    #[default]
    Metric,
    Imperial,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The place that was found.
    location: Place,
    /// Current weather.
    current: forecast::Current,
    /// Today and the next six days.
    daily: Vec<forecast::Day>,
    /// Units of the values.
    units: forecast::UnitLabels,
    /// Other places with this name; use one of them as location if it was meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    alternatives: Vec<Place>,
}

pub struct Weather {
    settings: WeatherSettings,
}

impl Weather {
    pub fn new(settings: WeatherSettings) -> Self {
        Self { settings }
    }
}

impl Tool for Weather {
    const NAME: &'static str = "weather_get";
    const TITLE: &'static str = "Get the weather";
    const KEYWORDS: &'static str = "forecast temperature rain umbrella sunny climate wind tomorrow";
    const REQUESTS: &'static [&'static str] = &[
        "will it rain tomorrow in Lisbon",
        "how warm is it outside in Oslo",
        "do i need an umbrella this week",
        "wind and uv index for the beach at 48.85,2.35",
        "when does the sun set in Paris today",
        "temperature in fahrenheit for Austin",
        "snow forecast for the weekend in the alps",
    ];
    const EFFECT: Effect = Effect::reads().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = Net;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A city", json!({"location": "Berlin"})),
            Example::new(
                "An ambiguous name, in imperial units",
                json!({"location": "Paris, Texas", "units": "imperial"}),
            ),
            Example::new("A point on the map", json!({"location": "48.85,2.35"})),
        ]
    }

    async fn run(&self, input: Input, net: Net, cx: &CallContext) -> Result<Output, ToolError> {
        let meteo = open_meteo::OpenMeteo { net: &net, settings: &self.settings, time_left: cx.time_left() };
        let GeocodeResult { mut place, alternatives } = geocoding::geocode(&meteo, &input.location).await?;
        let forecast = forecast::fetch(&meteo, &place, input.units).await?;
        place.timezone = forecast.timezone;
        place.elevation = place.elevation.or(forecast.elevation);
        Ok(Output {
            location: place,
            current: forecast.current,
            daily: forecast.daily,
            units: forecast.unit_labels,
            alternatives,
        })
    }
}

#[cfg(test)]
mod tests;
