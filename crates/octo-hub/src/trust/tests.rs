//! Definitions of all kinds, and what passes the review.

mod added_words;
mod drift_cases;
mod effect_cases;
mod harmless_changes;
mod poisoning_cases;
mod reviewed_source;

use super::review::{Review, review};
use super::{ChangePolicy, TrustSettings};
use octo_model::{Effect, EffectOrigin, Json};
use octo_ports::{PinKind, PinSet, ServerIdentity};
use octo_toolkit::{Definition, Listing};
use serde_json::{Map, Value, json};

pub fn server_identity() -> ServerIdentity {
    ServerIdentity {
        server: "evil".into(),
        identity: "behind evil".into(),
        others: vec!["notion".into(), "mail".into()],
    }
}

pub fn settings_with(changes: ChangePolicy) -> TrustSettings {
    TrustSettings { changes, ..TrustSettings::default() }
}

/// Listing as a server sends it: `{tools, prompts, resources, resourceTemplates, instructions}`.
pub fn listing_from(all: &Value) -> Listing {
    let of = |member: &str, key: &str| -> Vec<Definition> {
        let entries = all.get(member).and_then(Value::as_array).cloned().unwrap_or_default();
        let one = |entry: Value| Definition {
            key: entry[key].as_str().unwrap().to_owned(),
            members: Json::from(entry).members().unwrap(),
            effect: Effect::unknown(),
            effect_origin: EffectOrigin::Assumed,
        };
        entries.into_iter().map(one).collect()
    };
    Listing {
        tools: of("tools", "name"),
        prompts: of("prompts", "name"),
        resources: of("resources", "uri"),
        templates: of("resourceTemplates", "uriTemplate"),
        instructions: all.get("instructions").and_then(Value::as_str).map(str::to_owned),
        ..Listing::default()
    }
}

/// Listing as JSON, for comparison.
pub fn listing_json(lists: &Listing) -> Value {
    let of = |definitions: &[Definition]| -> Vec<Value> {
        definitions.iter().map(|one| one.members.to_json().to().unwrap()).collect()
    };
    let mut all = Map::new();
    for (member, entries) in [
        ("tools", of(&lists.tools)),
        ("prompts", of(&lists.prompts)),
        ("resources", of(&lists.resources)),
        ("resourceTemplates", of(&lists.templates)),
    ] {
        if !entries.is_empty() {
            all.insert(member.to_owned(), Value::from(entries));
        }
    }
    if let Some(text) = &lists.instructions {
        all.insert("instructions".to_owned(), Value::from(text.as_str()));
    }
    Value::Object(all)
}

/// Pins after a first listing that was accepted as a whole.
pub fn pinned(all: &Value) -> PinSet {
    let first = review(
        &listing_from(all),
        &PinSet::default(),
        &server_identity(),
        settings_with(ChangePolicy::Hold),
        None,
    );
    assert!(first.held.is_empty(), "{:?}", first.held);
    PinSet { pins: first.news.new_pins, ..PinSet::default() }
}

pub fn reviewed(before: &Value, after: &Value, settings: TrustSettings) -> Review {
    review(&listing_from(after), &pinned(before), &server_identity(), settings, None)
}

pub fn search() -> Value {
    json!({
        "name": "search",
        "title": "Search",
        "description": "Finds pages by their words. Answers with at most fifty.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Words to look for.", "maxLength": 200},
                "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                "sort": {"type": "string", "enum": ["new", "old"]},
                "filter": {"type": "object", "properties": {"by": {"type": ["string", "null"]}}, "required": ["by"]},
            },
            "required": ["query"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"pages": {"type": "array", "items": {"type": "string"}}},
            "required": ["pages"],
        },
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
    })
}

/// A server with one item of every kind.
pub fn everything() -> Value {
    json!({
        "tools": [search(), {"name": "save", "description": "Saves a page.", "inputSchema": {"type": "object"}}],
        "prompts": [{"name": "sum_up", "description": "Sums up a page.", "arguments": [
            {"name": "page", "description": "Page to read.", "required": true},
            {"name": "style", "description": "Long or short."},
        ]}],
        "resources": [{"uri": "pages://1", "name": "First", "description": "The first page.", "mimeType": "text/plain", "size": 10,
            "annotations": {"audience": ["user"], "lastModified": "2026-01-01T00:00:00Z", "priority": 0.5}}],
        "resourceTemplates": [{"uriTemplate": "pages://{id}", "name": "Page", "description": "One page."}],
        "instructions": "Search first, then save.",
    })
}

/// Sets or removes the value at a JSON pointer.
pub fn with_change(all: &Value, pointer: &str, value: Option<Value>) -> Value {
    let mut all = all.clone();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match (all.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}")), value) {
        (Value::Object(members), Some(value)) => drop(members.insert(key.to_owned(), value)),
        (Value::Object(members), None) => drop(members.shift_remove(key).expect(pointer)),
        (Value::Array(parts), Some(value)) => match key {
            "-" => parts.push(value),
            at => parts[at.parse::<usize>().unwrap()] = value,
        },
        (Value::Array(parts), None) => drop(parts.remove(key.parse::<usize>().unwrap())),
        _ => panic!("{pointer}"),
    }
    all
}

#[test]
fn the_first_listing_is_taken_on_as_it_is() {
    let known = pinned(&everything());
    assert_eq!(known.pins.len(), 6);
    let again = reviewed(&everything(), &everything(), settings_with(ChangePolicy::Hold));
    assert!(again.news.is_empty() && again.held.is_empty());
    assert_eq!(listing_json(&again.lists), everything());
    assert!(known.pins.iter().any(|pin| pin.kind == PinKind::Instructions && pin.hash.len() == 64));
}
