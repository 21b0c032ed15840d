//! Toolboxes, and type-erased tools with everything that is derived from their files.

use crate::plain_text::plain_text;
use crate::tool_schema::take_path_params;
use crate::{
    BoxFuture, CallContext, Definition, Example, Image, Listing, ListingState, SearchTexts, Source,
    SourceState, Tool, schema_of,
};
use octo_grants::{Capabilities, Grant};
use octo_model::{Effect, EffectOrigin, Json, JsonObject, Operation, ToolError};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;

type Run = dyn for<'a> Fn(Json, &'a Capabilities, &'a CallContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>
    + Send
    + Sync;

/// Marks definitions and results whose structure is not for models.
pub const TEXT_ONLY_META_KEY: &str = "octoprox/text_only";

/// Larger results are written as text on a blocking thread.
const MAX_INLINE_BYTES: usize = 256 << 10;

/// Output of a tool: the structured reply, its text and its images.
pub struct ToolOutput {
    pub typed: Json,
    /// The tool's own text for models.
    pub text: Option<String>,
    pub images: Vec<Image>,
}

/// A native tool with its types erased.
#[derive(Clone)]
pub struct ErasedTool {
    pub name: &'static str,
    pub effect: Effect,
    pub definition: JsonObject,
    pub examples: Vec<Example>,
    /// Parameters that are workspace paths.
    pub path_params: Vec<String>,
    /// Whether the reply has an output schema.
    pub typed: bool,
    pub search_texts: SearchTexts,
    pub is_reader: bool,
    run: Arc<Run>,
}

impl ErasedTool {
    fn of<T: Tool>(tool: T) -> Self {
        let tool = Arc::new(tool);
        let (definition, paths) = build_definition::<T>();
        Self {
            name: T::NAME,
            effect: T::EFFECT,
            definition,
            examples: T::examples(),
            path_params: paths,
            typed: T::HAS_OUTPUT_SCHEMA,
            search_texts: SearchTexts {
                keywords: T::KEYWORDS.to_owned(),
                requests: T::REQUESTS.iter().map(|request| (*request).to_owned()).collect(),
            },
            is_reader: T::IS_READER,
            run: Arc::new(move |input, doors, cx| {
                let tool = Arc::clone(&tool);
                Box::pin(async move {
                    let input = input.to::<T::Input>().map_err(invalid_arguments)?;
                    let grants = T::Grants::open(doors)?.for_caller(&cx.caller).for_profile(&cx.profile);
                    let output = tool.run(input, grants, cx).await?;
                    let typed = Json::try_of(&output).map_err(ToolError::internal)?;
                    Ok(ToolOutput { typed, text: T::text(&output), images: T::images(&output) })
                })
            }),
        }
    }

    /// Runs the tool and returns its structured reply.
    pub async fn run(&self, input: Json, doors: &Capabilities, cx: &CallContext) -> Result<Json, ToolError> {
        Ok(self.run_with_images(input, doors, cx).await?.typed)
    }

    /// Runs the tool and returns its images, too.
    pub fn run_with_images<'a>(
        &self,
        input: Json,
        doors: &'a Capabilities,
        cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.run)(input, doors, cx)
    }
}

impl ToolOutput {
    /// The same content as text for models and as structure for programs; for an image only the text, after it.
    fn into_result(self, typed: bool) -> JsonObject {
        let text = self.text.or_else(|| plain_text(&self.typed));
        let text = Json::text(text.as_deref().unwrap_or(self.typed.as_str()));
        let text = JsonObject::new().with("type", "text").with("text", text).to_json();
        let mut blocks: Vec<Json> = self.images.iter().map(Image::to_content_block).collect();
        blocks.insert(if typed { 0 } else { blocks.len() }, text);
        let mut result = JsonObject::new().with("content", Json::array(&blocks));
        if typed {
            result.set("structuredContent", self.typed);
        }
        result.with("isError", false)
    }
}

fn invalid_arguments(error: serde_json::Error) -> ToolError {
    ToolError::invalid(format!("Invalid arguments: {error}.")).hint("Compare them with the tool's schema.")
}

fn build_definition<T: Tool>() -> (JsonObject, Vec<String>) {
    let mut input = schema_of::<T::Input>();
    let paths = take_path_params(&mut input);
    let description = match &mut input {
        Value::Object(root) => root.remove("description"),
        _ => None,
    };
    let description = description.as_ref().and_then(Value::as_str).unwrap_or_default();
    let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut output = schema_of::<T::Output>();
    if let Value::Object(root) = &mut output {
        root.remove("description");
    }
    let mut members = JsonObject::new()
        .with("name", T::NAME)
        .with("title", T::TITLE)
        .with("description", description.as_str())
        .with("inputSchema", Json::from(input));
    if T::HAS_OUTPUT_SCHEMA {
        members.set("outputSchema", Json::from(with_truncation_fields(output)));
    }
    members.set("annotations", T::EFFECT.annotations(T::TITLE));
    if !T::SHOWS_STRUCTURE {
        members.set("_meta", JsonObject::new().with(TEXT_ONLY_META_KEY, true));
    }
    if T::LONG_RUNNING {
        members.set("execution", JsonObject::new().with("taskSupport", "optional"));
    }
    (members, paths)
}

/// Any reply may be truncated, so every output schema has members for that.
fn with_truncation_fields(mut schema: Value) -> Value {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.entry("truncated").or_insert_with(|| {
            serde_json::json!({"type": "boolean", "description": "True when parts were left out; see result_handle."})
        });
        properties.entry("result_handle").or_insert_with(|| {
            serde_json::json!({"type": "string", "description": "Give it to result_read for the whole answer."})
        });
    }
    schema
}

/// What must be configured before the tools of a toolbox are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// At least one upstream server.
    Server,
    LanguageModel,
}

/// The tools of one domain.
pub struct Toolbox {
    pub name: &'static str,
    pub description: &'static str,
    pub tools: Vec<ErasedTool>,
    /// The toolbox whose switch in the settings applies; usually itself.
    pub switch: &'static str,
    pub requirement: Option<Requirement>,
    /// Whether its tools may use any upstream server.
    pub uses_servers: bool,
    /// Whether its tools need a directory to work in.
    pub uses_workspace: bool,
    /// Whether its tools run where the files, the programs or the browser are.
    pub is_machine_bound: bool,
    /// `host:port` that its settings name. It may be private, and only this toolbox may connect to it.
    pub egress: Option<String>,
}

impl Toolbox {
    pub fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            description: about,
            tools: Vec::new(),
            switch: name,
            requirement: None,
            uses_servers: false,
            uses_workspace: false,
            is_machine_bound: false,
            egress: None,
        }
    }

    #[must_use]
    pub fn switched_by(mut self, toolbox: &'static str) -> Self {
        self.switch = toolbox;
        self
    }

    #[must_use]
    pub fn requires(mut self, requirement: Requirement) -> Self {
        self.requirement = Some(requirement);
        self
    }

    #[must_use]
    pub fn using_servers(mut self) -> Self {
        self.uses_servers = true;
        self
    }

    #[must_use]
    pub fn using_workspace(mut self) -> Self {
        self.uses_workspace = true;
        self
    }

    #[must_use]
    pub fn bound_to_machine(mut self) -> Self {
        self.is_machine_bound = true;
        self
    }

    #[must_use]
    pub fn with_egress(mut self, host_and_port: Option<String>) -> Self {
        self.egress = host_and_port;
        self
    }

    #[must_use]
    pub fn with<T: Tool>(mut self, tool: T) -> Self {
        self.tools.push(ErasedTool::of(tool));
        self
    }

    /// What the toolbox lists.
    pub fn listing(&self) -> Listing {
        let tools = self.tools.iter().map(|tool| Definition {
            key: tool.name.to_owned(),
            members: tool.definition.clone(),
            effect: tool.effect,
            effect_origin: EffectOrigin::Native,
        });
        let search_texts = self.tools.iter().map(|tool| (tool.name.to_owned(), tool.search_texts.clone()));
        let search_texts = search_texts.collect();
        let readers = self.tools.iter().filter(|tool| tool.is_reader);
        let readers = readers.map(|tool| tool.name.to_owned()).collect();
        let instructions = Some(self.description.to_owned());
        Listing { tools: tools.collect(), search_texts, readers, instructions, ..Listing::default() }
    }

    /// The toolbox as a source for the catalogue.
    pub fn into_source(self, doors: Capabilities, state: SourceState) -> Arc<dyn Source> {
        let lists = Arc::new(self.listing());
        let (listing, _) = watch::channel(ListingState { state, listing: lists, version: 1 });
        Arc::new(ToolboxSource { toolbox: self, doors, listing })
    }
}

struct ToolboxSource {
    toolbox: Toolbox,
    doors: Capabilities,
    listing: watch::Sender<ListingState>,
}

impl Source for ToolboxSource {
    fn name(&self) -> &str {
        self.toolbox.name
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.listing.subscribe()
    }

    fn run<'a>(&'a self, op: Operation, cx: &'a CallContext) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move {
            let tool = self.toolbox.tools.iter().find(|tool| tool.name == op.name).ok_or_else(|| {
                ToolError::not_found(format!("Tool not found: `{}`.", op.name))
                    .hint("List the available tools.")
            })?;
            let input = op.params.get("arguments").cloned().unwrap_or_else(Json::empty_object);
            let answer = tool.run_with_images(input, &self.doors, cx).await?;
            let typed = tool.typed;
            if answer.typed.bytes().len() <= MAX_INLINE_BYTES {
                return Ok(answer.into_result(typed));
            }
            let written = tokio::task::spawn_blocking(move || answer.into_result(typed));
            written.await.map_err(ToolError::internal)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
    struct Nothing {}

    struct Timed<const LONG: bool>;

    impl<const LONG: bool> Tool for Timed<LONG> {
        const NAME: &'static str = "timed";
        const TITLE: &'static str = "Timed";
        const EFFECT: Effect = Effect::reads();
        const LONG_RUNNING: bool = LONG;
        type Input = Nothing;
        type Output = Nothing;
        type Grants = ();

        fn examples() -> Vec<Example> {
            Vec::new()
        }

        async fn run(&self, input: Nothing, (): (), _: &CallContext) -> Result<Nothing, ToolError> {
            Ok(input)
        }
    }

    #[test]
    fn a_tool_that_may_take_long_says_so() {
        let said = |native: ErasedTool| native.definition.inner_text("execution", "taskSupport");
        assert_eq!(said(ErasedTool::of(Timed::<true>)).as_deref(), Some("optional"));
        assert_eq!(said(ErasedTool::of(Timed::<false>)), None);
    }
}
