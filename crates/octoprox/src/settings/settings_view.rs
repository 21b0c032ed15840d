//! Effective settings, with the origin of every value that is not the default.

use crate::settings::check::settings_problem::SettingOrigin;
use crate::settings::load::load_settings::LoadedSettings;
use crate::telemetry::Redactor;
use serde_json::{Value, json};

/// Returns the settings as JSON: `{settings, origins}`. Secrets are shown as `***`.
pub fn settings_view(loaded: &LoadedSettings, redactor: &Redactor) -> Value {
    let mut settings = serde_json::to_value(&loaded.settings).unwrap_or_default();
    for_each_text(&mut settings, &|text| redactor.redact_known(text));
    let origins = loaded.layers.origins().filter(|(_, origin)| **origin != SettingOrigin::Default);
    let origins: serde_json::Map<String, Value> =
        origins.map(|(path, origin)| (path.to_owned(), Value::from(origin.to_string()))).collect();
    json!({"settings": settings, "origins": origins})
}

fn for_each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| for_each_text(item, change)),
        Value::Object(members) => members.values_mut().for_each(|item| for_each_text(item, change)),
        _ => {}
    }
}
