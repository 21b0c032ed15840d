//! The trait behind the catalogue: toolboxes, declared tools, upstreams.

use crate::{BoxFuture, CallContext, JsonObject};
use octo_model::{Caller, Effect, EffectOrigin, Operation, Principal, Remedy, ToolError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

/// State of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// The first listing is in progress.
    Starting,
    Ready,
    /// The listing, if any, is outdated; the text is the reason.
    Down(String),
    /// Listed only on request (`octoprox tools --all`); the text tells what the operator can do.
    Off(String),
}

/// A tool, prompt, resource or template as its source defines it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Definition {
    /// Name, URI or URI template.
    pub key: String,
    /// The whole definition, including unknown members.
    pub members: JsonObject,
    pub effect: Effect,
    pub effect_origin: EffectOrigin,
}

/// What the search for tools reads beside the definition of a tool.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SearchTexts {
    /// Other words for what it does.
    pub keywords: String,
    /// Requests that it fulfils, in the words of people.
    pub requests: Vec<String>,
}

/// What a source offers at one moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Listing {
    pub tools: Vec<Definition>,
    pub prompts: Vec<Definition>,
    pub resources: Vec<Definition>,
    pub templates: Vec<Definition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<Definition>,
    /// What the server says about itself; for a toolbox what its tools are for.
    pub instructions: Option<String>,
    /// What the search for tools reads beside the definitions, by the keys of the tools.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub search_texts: BTreeMap<String, SearchTexts>,
    /// Keys of the tools that return a text which their caller asked for.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub readers: BTreeSet<String>,
    /// How long the lists may be cached, if the source specifies it.
    pub ttl_ms: Option<u64>,
    /// Whether it supports `completion/complete` and `resources/subscribe`.
    pub supports_completion: bool,
    pub supports_subscribe: bool,
    /// How often a person has approved changed definitions. Clients see those at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub approvals: u64,
    /// Extensions that the server declares, with their settings.
    #[serde(default, skip_serializing_if = "JsonObject::is_empty")]
    pub extensions: JsonObject,
}

impl Listing {
    /// The tools that another listing has, too, as this one defines them.
    #[must_use]
    pub fn only_tools_of(&self, other: &Self) -> Self {
        let is_listed = |tool: &&Definition| other.tools.iter().any(|listed| listed.key == tool.key);
        Self { tools: self.tools.iter().filter(is_listed).cloned().collect(), ..Self::default() }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListingState {
    pub state: SourceState,
    pub listing: Arc<Listing>,
    /// Increases with every change of the above.
    pub version: u64,
}

/// An event of a source.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    ResourceUpdated {
        uri: String,
    },
    /// A warning for people.
    Warning {
        audience: Audience,
        text: String,
        remedy: Remedy,
    },
}

/// Recipients of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Audience {
    Everybody,
    Principal(Principal),
}

impl Audience {
    pub fn includes(&self, caller: &Caller) -> bool {
        match self {
            Self::Everybody => true,
            Self::Principal(principal) => *principal == caller.principal,
        }
    }
}

/// Lists items and runs operations on them.
pub trait Source: Send + Sync {
    /// The name in the settings; for upstreams the prefix of listed names.
    fn name(&self) -> &str;

    /// Native tools are listed under their own names.
    fn is_native(&self) -> bool;

    /// The current listing and its changes.
    fn listing(&self) -> watch::Receiver<ListingState>;

    /// Runs `op`, whose `name` is the source's own name of the item. Returns the whole result object.
    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>>;

    fn events(&self) -> Option<broadcast::Receiver<Event>> {
        None
    }

    /// Starts (`true`) or stops watching a resource.
    fn watch<'a>(&'a self, _uri: &'a str, _on: bool) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async {
            Err(ToolError::invalid("This resource does not support subscriptions.")
                .hint("Read it again instead."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;

    /// Reads each text and checks that the value writes the same.
    fn assert_wire_forms<T: Serialize + DeserializeOwned>(texts: &[&str]) -> Vec<T> {
        let read = |text: &&str| {
            let value: T = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&value).unwrap(), *text);
            value
        };
        texts.iter().map(read).collect()
    }

    const DEFINITION: &str = r#"{"key":"echo","members":{"name":"echo","vendor":[1.50]},"effect":{"read_only":true,"destructive":false,"idempotent":true,"open_world":false},"effect_origin":"native"}"#;

    fn listing_text() -> String {
        format!(
            r#"{{"tools":[{DEFINITION}],"prompts":[],"resources":[],"templates":[],"instructions":"Be kind.","ttl_ms":5,"supports_completion":true,"supports_subscribe":false}}"#
        )
    }

    #[test]
    fn states_on_the_wire() {
        let read: Vec<SourceState> =
            assert_wire_forms(&[r#""starting""#, r#""ready""#, r#"{"down":"lost"}"#, r#"{"off":"no key"}"#]);
        let [lost, key] = ["lost", "no key"].map(str::to_owned);
        assert_eq!(
            read,
            [SourceState::Starting, SourceState::Ready, SourceState::Down(lost), SourceState::Off(key)]
        );
    }

    #[test]
    fn definitions_on_the_wire() {
        let read: Vec<Definition> = assert_wire_forms(&[DEFINITION]);
        assert_eq!((read[0].key.as_str(), read[0].effect), ("echo", Effect::reads()));
    }

    #[test]
    fn listings_on_the_wire() {
        let none = serde_json::to_string(&Listing::default()).unwrap();
        let read: Vec<Listing> = assert_wire_forms(&[&none, &listing_text()]);
        assert_eq!((read[1].tools.len(), read[1].ttl_ms), (1, Some(5)));
    }

    #[test]
    fn listing_states_on_the_wire() {
        let text = format!(r#"{{"state":"ready","listing":{},"version":7}}"#, listing_text());
        let read: Vec<ListingState> = assert_wire_forms(&[&text]);
        assert_eq!((&read[0].state, read[0].version), (&SourceState::Ready, 7));
    }

    #[test]
    fn events_on_the_wire() {
        let read: Vec<Event> = assert_wire_forms(&[
            r#"{"resource_updated":{"uri":"file:///a"}}"#,
            r#"{"warning":{"audience":"everybody","text":"Mind.","remedy":"add_server"}}"#,
        ]);
        assert!(matches!(&read[0], Event::ResourceUpdated { uri } if uri == "file:///a"));
        assert!(
            matches!(&read[1], Event::Warning { audience: Audience::Everybody, text, remedy: Remedy::AddServer } if text == "Mind.")
        );
    }

    #[test]
    fn audiences_on_the_wire() {
        let read: Vec<Audience> =
            assert_wire_forms(&[r#""everybody""#, r#"{"principal":{"tenant":"t","subject":"ada"}}"#]);
        assert_eq!(read, [Audience::Everybody, Audience::Principal(Principal::new("t", "ada"))]);
    }
}
