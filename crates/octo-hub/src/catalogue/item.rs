//! An item in the catalogue.

use crate::apps::app_tool::AppTool;
use crate::catalogue::header_params::{HeaderParam, parse_header_params};
use crate::catalogue::tool_override::ToolOverride;
use crate::pipeline::call_metrics::CallMetrics;
use crate::pipeline::compiled_schema::CompiledSchema;
use crate::skills::skill_prompt::skill_of_prompt;
use octo_model::{Effect, EffectOrigin, ItemKind, Json, JsonObject, listed_name};
use octo_toolkit::{Definition, Source, TEXT_ONLY_META_KEY};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

/// Label in metrics of all items without a definition, because callers could make up any number of names, and of all with a
/// URI.
const UNLISTED_LABEL: &str = "{unlisted}";

/// An item of one source. Its schemas are compiled on first use.
pub struct Item {
    pub source: Arc<dyn Source>,
    pub kind: ItemKind,
    pub key: String,
    /// The name at `/mcp`, without renaming: the name that rules, limits and profiles refer to.
    pub canonical_name: String,
    pub members: JsonObject,
    pub effect: Effect,
    pub effect_origin: EffectOrigin,
    pub app: AppTool,
    /// The skill behind a prompt.
    pub skill_uri: Option<String>,
    input: OnceLock<Option<CompiledSchema>>,
    output: OnceLock<Option<CompiledSchema>>,
    metrics: OnceLock<CallMetrics>,
    header_params: OnceLock<Vec<HeaderParam>>,
    /// The definition under the name by which it was listed first. Lists of other profiles and of later times share it.
    rendered: OnceLock<(Arc<str>, Json)>,
}

impl Item {
    pub fn new(source: &Arc<dyn Source>, kind: ItemKind, definition: &Definition) -> Self {
        Self {
            source: Arc::clone(source),
            kind,
            key: definition.key.clone(),
            canonical_name: canonical_name(source, kind, &definition.key),
            members: definition.members.clone(),
            effect: definition.effect,
            effect_origin: definition.effect_origin,
            app: AppTool::of(&definition.members),
            skill_uri: skill_of_prompt(&definition.members).filter(|_| kind == ItemKind::Prompt),
            input: OnceLock::new(),
            output: OnceLock::new(),
            metrics: OnceLock::new(),
            header_params: OnceLock::new(),
            rendered: OnceLock::new(),
        }
    }

    /// Returns whether its schemas are known to be right.
    pub fn is_native(&self) -> bool {
        self.effect_origin == EffectOrigin::Native
    }

    /// Whether its structured results are for programs only.
    pub fn is_text_only(&self) -> bool {
        self.is_native() && self.members.object("_meta").is_true(TEXT_ONLY_META_KEY)
    }

    /// Whether it returns a text that its caller asked for.
    pub fn is_reader(&self) -> bool {
        self.is_native() && self.source.listing().borrow().listing.readers.contains(&self.key)
    }

    pub fn input(&self) -> Option<&CompiledSchema> {
        self.input.get_or_init(|| self.compile("inputSchema")).as_ref()
    }

    /// Returns whether the input schema is compiled already. Only tools have one.
    pub fn has_compiled_input(&self) -> bool {
        self.kind != ItemKind::Tool || self.input.get().is_some()
    }

    pub fn output(&self) -> Option<&CompiledSchema> {
        self.output.get_or_init(|| self.compile("outputSchema")).as_ref()
    }

    fn compile(&self, member: &str) -> Option<CompiledSchema> {
        if self.kind != ItemKind::Tool {
            return None;
        }
        let schema: Value = self.members.get(member)?.to().ok()?;
        CompiledSchema::new(schema, &self.target())
    }

    /// Returns whether it is listed by its URI.
    pub fn has_uri(&self) -> bool {
        is_uri_kind(self.kind)
    }

    fn header_params(&self) -> &[HeaderParam] {
        self.header_params.get_or_init(|| parse_header_params(&self.members))
    }

    pub fn metrics(&self) -> &CallMetrics {
        self.metrics.get_or_init(|| CallMetrics::new(self.source.name(), self.metric_label()))
    }

    fn metric_label(&self) -> &str {
        // A URI is content.
        let is_named = matches!(self.kind, ItemKind::Tool | ItemKind::Prompt);
        if is_named && !self.members.is_empty() { &self.key } else { UNLISTED_LABEL }
    }

    /// Its tags: its own, or the name of its toolbox or server.
    pub fn tags(&self) -> Json {
        let own = self.members.inner("_meta", "octoprox/tags");
        own.unwrap_or_else(|| Json::array([&Json::text(self.source.name())]))
    }

    /// Source and key: the target in the audit log.
    pub fn target(&self) -> String {
        format!("{}/{}", self.source.name(), self.key)
    }
}

fn is_uri_kind(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::Resource | ItemKind::Template | ItemKind::Skill)
}

fn canonical_name(source: &Arc<dyn Source>, kind: ItemKind, key: &str) -> String {
    if source.is_native() || is_uri_kind(kind) {
        key.to_owned()
    } else {
        listed_name(&format!("{}__{key}", source.name()))
    }
}

/// An item under the name that a profile lists it by.
#[derive(Clone)]
pub struct Entry {
    pub listed_name: Arc<str>,
    pub item: Arc<Item>,
    /// Present if the profile changes more than the name.
    pub tool_override: Option<Arc<ToolOverride>>,
}

impl Entry {
    pub fn effect(&self) -> Effect {
        self.item.effect
    }

    pub fn source_name(&self) -> &str {
        self.item.source.name()
    }

    /// The parameters that a modern client repeats in headers.
    pub fn header_params(&self) -> &[HeaderParam] {
        self.tool_override.as_ref().map_or_else(|| self.item.header_params(), |recast| recast.header_params())
    }

    /// The definition with the listed name; everything else as the source wrote it.
    pub fn definition(&self) -> JsonObject {
        let members = self.tool_override.as_ref().map_or(&self.item.members, |recast| &recast.members);
        let mut members = members.clone();
        if matches!(self.item.kind, ItemKind::Tool | ItemKind::Prompt) {
            members.set("name", &*self.listed_name);
        }
        members
    }

    /// The definition as text.
    pub fn rendered(&self) -> Json {
        if self.tool_override.is_none() {
            let first = || (Arc::clone(&self.listed_name), self.definition().to_json());
            let (name, json) = self.item.rendered.get_or_init(first);
            if *name == self.listed_name {
                return json.clone();
            }
        }
        self.definition().to_json()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use octo_model::{Operation, ToolError};
    use octo_toolkit::{BoxFuture, CallContext, ListingState, SourceState};
    use serde_json::json;
    use tokio::sync::watch;

    struct StubSource(&'static str);

    impl Source for StubSource {
        fn name(&self) -> &str {
            self.0
        }

        fn is_native(&self) -> bool {
            false
        }

        fn listing(&self) -> watch::Receiver<ListingState> {
            watch::channel(ListingState { state: SourceState::Ready, listing: Arc::default(), version: 0 }).1
        }

        fn run<'a>(
            &'a self,
            _: Operation,
            _: &'a CallContext,
        ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
            Box::pin(async { Ok(JsonObject::new()) })
        }
    }

    /// An upstream server without a listing.
    pub(crate) fn stub_source(name: &'static str) -> Arc<dyn Source> {
        Arc::new(StubSource(name))
    }

    /// An item of that server with these members.
    pub(crate) fn stub_item(source: &Arc<dyn Source>, kind: ItemKind, key: &str, members: Value) -> Item {
        let definition = Definition {
            key: key.to_owned(),
            members: Json::from(members).members().unwrap(),
            effect: Effect::unknown(),
            effect_origin: EffectOrigin::Assumed,
        };
        Item::new(source, kind, &definition)
    }

    #[test]
    fn items_without_a_name_of_their_own_share_a_label() {
        let source = stub_source("up");
        for (kind, key, members, expected) in [
            (ItemKind::Tool, "search", json!({"name": "search"}), "search"),
            (ItemKind::Tool, "made_up_1", json!({}), UNLISTED_LABEL),
            (ItemKind::Prompt, "made_up_2", json!({}), UNLISTED_LABEL),
            (ItemKind::Resource, "{+uri}", json!({}), UNLISTED_LABEL),
            (ItemKind::Resource, "db://x?iban=1", json!({"name": "x"}), UNLISTED_LABEL),
            (ItemKind::Template, "db://{x}", json!({"name": "x"}), UNLISTED_LABEL),
        ] {
            assert_eq!(stub_item(&source, kind, key, members).metric_label(), expected, "{key}");
        }
    }
}
