//! The settings that are in force, as a file with a note beside what is not the default.

use super::load::Loaded;
use super::problem::Origin;
use crate::telemetry::Redactor;
use serde_json::{Value, json};

/// The settings as JSON: `{settings, origins}`. Secrets are `***`.
pub fn show(loaded: &Loaded, redactor: &Redactor) -> Value {
    let mut settings = serde_json::to_value(&loaded.settings).unwrap_or_default();
    each_text(&mut settings, &|text| redactor.known(text));
    let origins = loaded.layers.origins().filter(|(_, origin)| **origin != Origin::Default);
    let origins: serde_json::Map<String, Value> =
        origins.map(|(path, origin)| (path.to_owned(), Value::from(origin.to_string()))).collect();
    json!({"settings": settings, "origins": origins})
}

fn each_text(value: &mut Value, change: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(members) => members.values_mut().for_each(|item| each_text(item, change)),
        _ => {}
    }
}
