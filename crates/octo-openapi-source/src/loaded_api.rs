//! A loaded document: its tools, and where its calls go.

use crate::document_spec::{DocumentSource, DocumentSpec};
use crate::operation_names::tool_names;
use octo_grants::Net;
use octo_model::{Effect, EffectOrigin, Json, JsonObject, ToolError};
use octo_openapi::{ApiOperation, Credential, Document as Parsed, Param, ParamLocation, ServerOptions};
use octo_toolkit::{Definition, Listing};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use url::Url;

/// Maximum tools of one document, schemas per tool, and bytes in total; beyond that, tools have reduced schemas.
const MAX_TOOLS: usize = 5_000;
const MAX_SCHEMA_NODES: usize = 400;
const MAX_LISTING_BYTES: usize = 24 << 20;
const REDUCED_SCHEMA_NODES: usize = 40;

/// A document with everything derived from it and the settings.
pub(crate) struct LoadedApi {
    document: Parsed,
    /// Paths and methods by tool name.
    tools: HashMap<String, (String, String)>,
    pub(crate) lists: Arc<Listing>,
    reach: ServerOptions,
    /// The only destination of the credentials.
    pub(crate) api_url: Url,
    credentials: Vec<Credential>,
    /// Egress to the API itself, and to everything else.
    configured_net: Net,
    public_net: Net,
}

impl LoadedApi {
    /// Loads a document. `source` is its URL, if it has one. Blocks meanwhile.
    pub(crate) fn new(spec: &DocumentSpec, text: String, source: Option<Url>) -> Result<Self, ToolError> {
        let document = Parsed::parse(text)?;
        if document.operations().is_empty() {
            let why = document.skipped.first().map(|why| format!(" Skipped: {why}.")).unwrap_or_default();
            return Err(ToolError::invalid(format!("The document has no usable operation.{why}")));
        }
        let instead = spec.url.as_deref().map(parse_http_url).transpose()?;
        let reach =
            ServerOptions { base_url_override: instead, document_url: source, ..ServerOptions::default() };
        let home = document.base(None, &reach).map_err(|error| {
            error.hint(
                "Set the base URL of the API as the server's `url`, such as https://api.example.com/v1.",
            )
        })?;
        let is_ours = reach.base_url_override.is_some() || matches!(spec.document, DocumentSource::File(_));
        let is_at_home = reach.document_url.as_ref().is_some_and(|source| source.origin() == home.origin());
        if !is_ours && !is_at_home && spec.has_secrets() {
            return Err(ToolError::denied(format!(
                "The document places the API at {}, which is another host than its own, and there is a key.",
                home.origin().ascii_serialization()
            ))
            .hint("Set that URL as the server's `url` if the key is meant for it."));
        }
        // An untrusted document must not lead into the operator's own network.
        let named = if is_ours || is_at_home {
            spec.net.for_configured_host(home.as_str())?
        } else {
            spec.net.clone()
        };
        let credentials = spec.headers.iter().map(|(name, value)| {
            Credential::new(name, value, &home).map_err(|_| {
                ToolError::invalid(format!("The header `{name}` cannot be sent."))
                    .hint("Fix it in the server's `headers` or `auth`.")
            })
        });
        let credentials = credentials.collect::<Result<Vec<_>, _>>()?;
        let public = spec.net.clone();
        let mut loaded = Self {
            document,
            tools: HashMap::new(),
            lists: Arc::default(),
            reach,
            api_url: home,
            credentials,
            configured_net: named,
            public_net: public,
        };
        loaded.build_listing(spec);
        Ok(loaded)
    }

    fn build_listing(&mut self, spec: &DocumentSpec) {
        let operations = self.document.operations();
        let (mut tools, mut definitions, mut size) = (HashMap::new(), Vec::new(), 0);
        for (listed, name) in operations.iter().zip(tool_names(operations)).take(MAX_TOOLS) {
            let Ok(operation) = self.resolve_operation(spec, &listed.path, &listed.method) else { continue };
            let nodes = if size < MAX_LISTING_BYTES { MAX_SCHEMA_NODES } else { REDUCED_SCHEMA_NODES };
            let definition = definition(&self.document, &name, &operation, nodes);
            size += definition.members.iter().map(|(_, value)| value.bytes().len()).sum::<usize>();
            definitions.push(definition);
            tools.insert(name, (listed.path.clone(), listed.method.clone()));
        }
        let left_out = operations.len() - definitions.len() + self.document.skipped.len();
        if left_out > 0 {
            let first = self.document.skipped.first().map(String::as_str).unwrap_or("too many operations");
            tracing::warn!(target: "upstream", server = %spec.name, left_out, first, "operations skipped");
        }
        self.tools = tools;
        self.lists = Arc::new(Listing { tools: definitions, ..Listing::default() });
    }

    /// Operation behind a tool, with the parameters that the caller can set.
    pub(crate) fn operation(&self, spec: &DocumentSpec, tool: &str) -> Result<ApiOperation, ToolError> {
        let (path, method) = self.tools.get(tool).ok_or_else(|| {
            ToolError::not_found(format!("{} has no tool {tool}.", spec.name))
                .hint("List the tools again: the document has changed.")
        })?;
        self.resolve_operation(spec, path, method)
    }

    fn resolve_operation(
        &self,
        spec: &DocumentSpec,
        path: &str,
        method: &str,
    ) -> Result<ApiOperation, ToolError> {
        let mut operation = self.document.operation(path, method)?;
        operation.retain_caller_params(|param| is_configured(spec, param));
        Ok(operation)
    }

    pub(crate) fn document(&self) -> &Parsed {
        &self.document
    }

    pub(crate) fn base(&self, operation: &ApiOperation) -> Result<Url, ToolError> {
        self.document.base(Some(operation), &self.reach)
    }

    pub(crate) fn credentials(&self) -> &[Credential] {
        &self.credentials
    }

    /// An operation may be on another host than the API, which is not configured.
    pub(crate) fn net_for(&self, url: &Url) -> &Net {
        if url.origin() == self.api_url.origin() { &self.configured_net } else { &self.public_net }
    }
}

/// Whether the settings provide the parameter.
fn is_configured(spec: &DocumentSpec, param: &Param) -> bool {
    match param.location {
        ParamLocation::Header => spec.headers.keys().any(|name| name.eq_ignore_ascii_case(&param.name)),
        ParamLocation::Query => spec.query_key.as_ref().is_some_and(|(name, _)| *name == param.name),
        ParamLocation::Path | ParamLocation::Cookie => false,
    }
}

pub(crate) fn parse_http_url(text: &str) -> Result<Url, ToolError> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.ok_or_else(|| ToolError::invalid("Not an http or https URL."))
}

fn definition(document: &Parsed, name: &str, operation: &ApiOperation, nodes: usize) -> Definition {
    let shape = document.to_tool(operation, nodes);
    let effect = effect(&operation.method);
    let mut members = JsonObject::new()
        .with("name", name)
        .with("title", shape.title.as_str())
        .with("description", shape.description.as_str())
        .with("inputSchema", Json::from(shape.input_schema));
    if !returns_image(operation) {
        members.set("outputSchema", Json::from(output_schema()));
    }
    members.set("annotations", effect.annotations(&shape.title));
    // Copied into one buffer: parts of many small buffers would cost more than they hold.
    Definition {
        key: name.to_owned(),
        members: members.detached(),
        effect,
        effect_origin: EffectOrigin::Assumed,
    }
}

/// The method determines the effect, whatever the document says.
fn effect(method: &str) -> Effect {
    let effect = match method {
        "GET" | "HEAD" | "OPTIONS" => Effect::reads(),
        "PUT" => Effect::writes().idempotent(),
        "DELETE" => Effect::destroys().idempotent(),
        _ => Effect::writes(),
    };
    effect.open_world()
}

/// The responses of an API do not always match its document, so the body has no schema.
fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"type": "integer", "description": "HTTP status."},
            "body": {"description": "The API's response: JSON as a value, other text as a string."},
            "truncated": {"type": "boolean"},
            "result_handle": {"type": "string"},
        },
        "required": ["status"],
    })
}

/// Clients drop images beside structured content, so such a tool has none.
pub(crate) fn returns_image(operation: &ApiOperation) -> bool {
    let good = operation.responses.iter().find(|answer| answer.status.starts_with('2'));
    good.and_then(|answer| answer.media.first()).is_some_and(|media| media.content_type.starts_with("image/"))
}
