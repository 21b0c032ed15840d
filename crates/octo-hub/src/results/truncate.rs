//! Shrinks a JSON value without changing its shape: strings and arrays lose their ends, and members are only
//! dropped if their names alone are too large.

use octo_model::json_len;
use serde_json::{Map, Value};

/// Truncates the value to about `budget` bytes of text. Numbers and booleans are never changed.
pub fn truncate_value(value: &mut Value, budget: usize) {
    if json_size(value) <= budget {
        return;
    }
    match value {
        Value::String(text) => truncate_string(text, budget),
        Value::Array(items) => truncate_array(items, budget),
        Value::Object(members) => {
            let mut keys: usize = members.keys().map(|key| key_size(key)).sum();
            if keys > budget / 2 {
                keys = drop_members(members, budget / 2);
            }
            let parts: Vec<&mut Value> = members.values_mut().collect();
            share_budget(parts, budget.saturating_sub(keys + 2));
        }
        _ => {}
    }
}

/// Keeps the first members whose names fit; returns the size of these names.
fn drop_members(members: &mut Map<String, Value>, budget: usize) -> usize {
    let (mut used, mut full) = (0, false);
    members.retain(|key, _| {
        full |= used + key_size(key) > budget;
        used += if full { 0 } else { key_size(key) };
        !full
    });
    used
}

/// Small members are kept whole; large ones share the rest.
fn share_budget(mut parts: Vec<&mut Value>, budget: usize) {
    parts.sort_by_cached_key(|part| json_size(part));
    let mut left = budget;
    let mut waiting = parts.len();
    for part in parts {
        let fair = left / waiting.max(1);
        truncate_value(part, fair);
        left = left.saturating_sub(json_size(part));
        waiting -= 1;
    }
}

/// Keeps whole items from the front; if even the first is too large, truncates that one.
fn truncate_array(items: &mut Vec<Value>, budget: usize) {
    let mut used = 2;
    let mut keep = 0;
    for item in items.iter() {
        used += json_size(item) + 1;
        if used > budget {
            break;
        }
        keep += 1;
    }
    items.truncate(keep.max(usize::from(budget > 8)));
    if keep == 0
        && let Some(first) = items.first_mut()
    {
        truncate_value(first, budget.saturating_sub(3));
    }
}

fn truncate_string(text: &mut String, budget: usize) {
    let mut used = 2;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        used += json_len(c.encode_utf8(&mut [0; 4]));
        if used > budget {
            break;
        }
        end = at + c.len_utf8();
    }
    text.truncate(end);
}

/// A key with its quotes, colon and comma.
fn key_size(key: &str) -> usize {
    4 + json_len(key)
}

/// Size of the value as compact JSON.
fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => 2 + json_len(text),
        Value::Array(items) => 2 + items.iter().map(|item| json_size(item) + 1).sum::<usize>(),
        Value::Object(members) => {
            2 + members.iter().map(|(key, item)| key_size(key) + json_size(item)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keeps_shape_within_the_budget() {
        let rows: Vec<Value> = (0..500).map(|n| json!({"n": n, "text": "x".repeat(50)})).collect();
        for (mut value, budget) in [
            (json!("é".repeat(1000)), 100),
            (json!({"a": 1, "b": "y".repeat(5000), "rows": rows}), 2_000),
            (json!([["z".repeat(1000)], 2]), 50),
            (json!({"s": "\n".repeat(1000), "keep": true}), 200),
        ] {
            truncate_value(&mut value, budget);
            let text = value.to_string();
            assert!(text.len() <= budget, "{} > {budget}", text.len());
            assert!(text.len() > budget / 3, "{} is far below {budget}", text.len());
        }
    }

    #[test]
    fn leaves_what_fits() {
        let mut value = json!({"a": [1, 2, {"b": "c"}]});
        let before = value.clone();
        truncate_value(&mut value, 100);
        assert_eq!(value, before);
    }
}
