//! Forecast of a point, in the output format of the tool.

use super::geocoding::Place;
use super::open_meteo::OpenMeteo;
use super::{Units, weather_codes};
use jiff::tz::Offset;
use octo_toolkit::ToolError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

const CURRENT: &str = "temperature_2m,apparent_temperature,relative_humidity_2m,precipitation,weather_code,cloud_cover,\
                       pressure_msl,wind_speed_10m,wind_direction_10m,wind_gusts_10m,is_day";
const DAILY: &str = "weather_code,temperature_2m_max,temperature_2m_min,precipitation_sum,\
                     precipitation_probability_max,wind_speed_10m_max,uv_index_max,sunrise,sunset";

/// Current weather. Unknown values are absent.
#[derive(Serialize, JsonSchema)]
pub struct Current {
    /// Time of the values, local time with its offset.
    time: String,
    /// Description of the weather.
    weather: String,
    /// WMO weather code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weather_code: Option<u64>,
    /// Air temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    /// Apparent temperature with wind and humidity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feels_like: Option<f64>,
    /// Relative humidity in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    humidity: Option<f64>,
    /// Rain, showers and snow in the last 15 minutes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    precipitation: Option<f64>,
    /// Cloud cover in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cloud_cover: Option<f64>,
    /// Air pressure at sea level in hPa.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pressure: Option<f64>,
    /// Wind ten metres above ground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wind_speed: Option<f64>,
    /// Direction the wind comes from: N, NE, E, SE, S, SW, W or NW.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wind_direction: Option<&'static str>,
    /// Wind gusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wind_gusts: Option<f64>,
    /// True between sunrise and sunset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is_day: Option<bool>,
}

/// Weather of one day. Unknown values are absent.
#[derive(Serialize, JsonSchema)]
pub struct Day {
    /// Date, such as 2027-03-05.
    date: String,
    /// Description of the day's worst weather.
    weather: String,
    /// WMO weather code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weather_code: Option<u64>,
    /// Lowest temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature_min: Option<f64>,
    /// Highest temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature_max: Option<f64>,
    /// Rain, showers and snow of the day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    precipitation: Option<f64>,
    /// Probability of precipitation in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    precipitation_probability: Option<f64>,
    /// Maximum wind speed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wind_speed_max: Option<f64>,
    /// Maximum UV index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uv_index_max: Option<f64>,
    /// Sunrise, local time with its offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sunrise: Option<String>,
    /// Sunset, local time with its offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sunset: Option<String>,
}

/// Units of the values.
#[derive(Serialize, JsonSchema)]
pub struct UnitLabels {
    /// Unit of temperatures.
    temperature: &'static str,
    /// Unit of wind speeds.
    wind_speed: &'static str,
    /// Unit of precipitation.
    precipitation: &'static str,
}

pub struct Forecast {
    pub timezone: Option<String>,
    pub elevation: Option<f64>,
    pub current: Current,
    pub daily: Vec<Day>,
    pub unit_labels: UnitLabels,
}

pub async fn fetch(meteo: &OpenMeteo<'_>, place: &Place, units: Units) -> Result<Forecast, ToolError> {
    let (latitude, longitude) = (place.latitude.to_string(), place.longitude.to_string());
    let mut query = vec![
        ("latitude", latitude.as_str()),
        ("longitude", longitude.as_str()),
        ("current", CURRENT),
        ("daily", DAILY),
        ("timezone", "auto"),
        ("forecast_days", "7"),
    ];
    let measures = match units {
        Units::Metric => UnitLabels { temperature: "°C", wind_speed: "km/h", precipitation: "mm" },
        Units::Imperial => {
            query.extend([
                ("temperature_unit", "fahrenheit"),
                ("wind_speed_unit", "mph"),
                ("precipitation_unit", "inch"),
            ]);
            UnitLabels { temperature: "°F", wind_speed: "mph", precipitation: "inch" }
        }
    };
    let found = meteo.forecast(&query).await?;
    let zone = ForecastZone::from_answer(&found);
    let current =
        found.get("current").and_then(|current| parse_current(current, &zone)).ok_or_else(|| {
            ToolError::unavailable("The response of the weather service has no weather data.")
                .hint("Try again later.")
        })?;
    let daily = found.get("daily").map(|daily| parse_days(daily, &zone)).unwrap_or_default();
    let elevation = found.get("elevation").and_then(Value::as_f64);
    Ok(Forecast { timezone: zone.name, elevation, current, daily, unit_labels: measures })
}

fn parse_current(current: &Value, zone: &ForecastZone) -> Option<Current> {
    let number = |name: &str| current.get(name).and_then(Value::as_f64);
    let code = current.get("weather_code").and_then(Value::as_u64);
    Some(Current {
        time: zone.time(current.get("time")?.as_str()?),
        weather: code.map_or("unknown", weather_codes::describe).to_owned(),
        weather_code: code,
        temperature: number("temperature_2m"),
        feels_like: number("apparent_temperature"),
        humidity: number("relative_humidity_2m"),
        precipitation: number("precipitation"),
        cloud_cover: number("cloud_cover"),
        pressure: number("pressure_msl"),
        wind_speed: number("wind_speed_10m"),
        wind_direction: number("wind_direction_10m").map(weather_codes::compass),
        wind_gusts: number("wind_gusts_10m"),
        is_day: number("is_day").map(|day| day != 0.0),
    })
}

/// Open-Meteo returns a column for each variable.
fn parse_days(daily: &Value, zone: &ForecastZone) -> Vec<Day> {
    let dates = daily.get("time").and_then(Value::as_array).into_iter().flatten();
    dates
        .enumerate()
        .filter_map(|(at, date)| {
            let cell = |name: &str| daily.get(name)?.get(at);
            let number = |name: &str| cell(name).and_then(Value::as_f64);
            let time = |name: &str| cell(name).and_then(Value::as_str).map(|time| zone.time(time));
            let code = cell("weather_code").and_then(Value::as_u64);
            Some(Day {
                date: date.as_str()?.to_owned(),
                weather: code.map_or("unknown", weather_codes::describe).to_owned(),
                weather_code: code,
                temperature_min: number("temperature_2m_min"),
                temperature_max: number("temperature_2m_max"),
                precipitation: number("precipitation_sum"),
                precipitation_probability: number("precipitation_probability_max"),
                wind_speed_max: number("wind_speed_10m_max"),
                uv_index_max: number("uv_index_max"),
                sunrise: time("sunrise"),
                sunset: time("sunset"),
            })
        })
        .collect()
}

/// Time zone of the forecast; times have no zone of their own.
struct ForecastZone {
    name: Option<String>,
    offset: Offset,
}

impl ForecastZone {
    fn from_answer(found: &Value) -> Self {
        let seconds = found.get("utc_offset_seconds").and_then(Value::as_i64).unwrap_or_default();
        let offset = i32::try_from(seconds).ok().and_then(|seconds| Offset::from_seconds(seconds).ok());
        let name = found.get("timezone").and_then(Value::as_str).map(str::to_owned);
        Self { name, offset: offset.unwrap_or(Offset::UTC) }
    }

    fn time(&self, local: &str) -> String {
        let seconds = self.offset.seconds();
        let sign = if seconds < 0 { '-' } else { '+' };
        let minutes = seconds.abs() / 60;
        format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}
