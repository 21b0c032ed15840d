//! An item in the catalogue.

use crate::apps::app_tool::AppTool;
use crate::catalogue::header_params::{HeaderParam, parse_header_params};
use crate::catalogue::tool_override::ToolOverride;
use crate::pipeline::call_metrics::CallMetrics;
use crate::pipeline::compiled_schema::CompiledSchema;
use crate::skills::skill_prompt::skill_of_prompt;
use octo_model::{Effect, EffectOrigin, ItemKind, Json, JsonObject, listed_name};
use octo_toolkit::{Definition, Source};
use serde_json::Value;
use std::sync::{Arc, OnceLock};

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
        }
    }

    /// Returns whether its schemas are known to be right.
    pub fn is_native(&self) -> bool {
        self.effect_origin == EffectOrigin::Native
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

    /// Returns whether it is listed by its own URI.
    pub fn is_resource(&self) -> bool {
        self.kind == ItemKind::Resource
    }

    fn header_params(&self) -> &[HeaderParam] {
        self.header_params.get_or_init(|| parse_header_params(&self.members))
    }

    pub fn metrics(&self) -> &CallMetrics {
        self.metrics.get_or_init(|| CallMetrics::new(self.source.name(), &self.key))
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

fn canonical_name(source: &Arc<dyn Source>, kind: ItemKind, key: &str) -> String {
    if source.is_native() || matches!(kind, ItemKind::Resource | ItemKind::Template | ItemKind::Skill) {
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
}
