//! `openapi_load`.

use crate::document_cache::{ApiSettings, DocumentCache, parse_document};
use crate::spec_source::{WorkspaceFiles, fetch_document};
use octo_openapi::{Credential, Document, bundle};
use octo_toolkit::Secret;
use octo_toolkit::apis::StoredApi;
use octo_toolkit::{Apis, CallContext, Effect, Example, Net, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use url::Url;

/// Loads an OpenAPI document (2.0, 3.0 or 3.1, JSON or YAML) under a name and stores it, with its credential, for later
/// calls. Fails with the position of an error in the document. Prefer openapi_list_apis to see what is loaded already.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name to use the API under: letters, digits, dots, hyphens, underscores. Replaces one of the same name.
    name: String,
    /// URL of the document; excludes spec_content and spec_path.
    #[serde(default)]
    spec_url: Option<String>,
    /// The document itself; excludes spec_url and spec_path.
    #[serde(default)]
    spec_content: Option<String>,
    /// Workspace file with the document; excludes spec_url and spec_content.
    #[serde(default)]
    spec_path: Option<WorkPath>,
    /// Secret that calls send in auth_header_name, such as "Bearer TOKEN". It is never shown again.
    #[serde(default)]
    auth_header: Option<String>,
    /// Header that auth_header is sent in.
    #[serde(default = "default_auth_header_name")]
    auth_header_name: String,
    /// Origin that auth_header may be sent to, such as https://api.example.com; default: the document's own server.
    #[serde(default)]
    auth_origin: Option<String>,
    /// URL to use instead of the document's servers.
    #[serde(default)]
    base_url_override: Option<String>,
    /// Values of variables in the document's server URL, by name.
    #[serde(default)]
    server_variables: Option<BTreeMap<String, String>>,
    /// Fetch other files that a document from spec_url refers to; otherwise what needs them is skipped.
    #[serde(default)]
    external_refs: bool,
}

fn default_auth_header_name() -> String {
    "Authorization".to_owned()
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Name to use the API under.
    name: String,
    /// Title of the API.
    title: String,
    /// Version of the API.
    version: String,
    /// Number of operations.
    endpoint_count: usize,
    /// Base URL of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_url: Option<String>,
    /// The only origin that the credential is sent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth_origin: Option<String>,
    /// What was skipped or needs attention.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct Load(pub Arc<DocumentCache>);

impl Tool for Load {
    const NAME: &'static str = "openapi_load";
    const TITLE: &'static str = "Load an API";
    const KEYWORDS: &'static str = "import register add swagger specification service";
    const REQUESTS: &'static [&'static str] = &[
        "register the api from this swagger url",
        "import openapi.yaml from the workspace",
        "make a rest service callable through its description",
        "add our internal api with its access token",
        "store the spec under the name billing",
        "connect a service for which i have an openapi file",
        "point a registered api at another base url",
    ];
    const EFFECT: Effect = Effect::writes().idempotent().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Net, Apis, WorkspaceFiles);

    fn examples() -> Vec<Example> {
        let document = "openapi: 3.1.0\ninfo: {title: Pets, version: '1'}\nservers: [{url: 'https://api.example.com'}]\npaths:\n  /pets/{id}:\n    get:\n      operationId: getPet\n      parameters: [{name: id, in: path, schema: {type: integer}}]\n      responses: {'200': {description: A pet}}\n";
        vec![Example::new("A document as text", json!({"name": "pets", "spec_content": document}))]
    }

    async fn run(&self, input: Input, grants: Self::Grants, cx: &CallContext) -> Result<Output, ToolError> {
        let (net, apis, files) = grants;
        let name = check_name(&input.name)?;
        let base_url_override =
            input.base_url_override.as_deref().map(|text| base(&net, text)).transpose()?;
        let auth_origin = input.auth_origin.as_deref().map(|text| base(&net, text)).transpose()?;
        let (text, source) = text(&input, &net, &files, cx).await?;
        let document = parse_document(text, cx).await?;
        if document.operations().is_empty() {
            return Err(empty(&document));
        }
        let mut settings = ApiSettings {
            title: document.title.clone(),
            version: document.api_version.clone(),
            endpoint_count: document.operations().len(),
            source,
            base_url: None,
            base_url_override,
            server_variables: input.server_variables.unwrap_or_default(),
            auth_header_name: input.auth_header_name,
            auth_origin,
        };
        let mut notices = Vec::new();
        let base_url = document.base(None, &settings.server_options());
        settings.base_url = base_url.as_ref().ok().cloned();
        let secret = input.auth_header.filter(|secret| !secret.trim().is_empty());
        if let Some(secret) = &secret {
            bind(&document, secret, &mut settings, &mut notices)?;
        }
        if let Err(error) = &base_url {
            notices.push(error.text());
        }
        if let [first, ..] = document.skipped.as_slice() {
            let more = document.skipped.len();
            notices.push(format!("Skipped {more} paths or operations, the first: {first}."));
        }
        let output = Output {
            name: name.clone(),
            title: settings.title.clone(),
            version: settings.version.clone(),
            endpoint_count: settings.endpoint_count,
            base_url: base_url.ok().map(|url| url.to_string()),
            auth_origin: settings.auth_origin.as_ref().filter(|_| secret.is_some()).map(origin),
            notice: (!notices.is_empty()).then(|| notices.join(" ")),
        };
        let kept = StoredApi {
            name,
            revision: cx.id.to_string(),
            settings: serde_json::to_string(&settings).map_err(ToolError::internal)?,
            secret: secret.map(Secret::new),
        };
        let revision = kept.revision.clone();
        apis.put(&cx.caller, kept, document.text().to_owned()).await?;
        self.0.put(&revision, document);
        Ok(output)
    }
}

async fn text(
    input: &Input,
    net: &Net,
    files: &WorkspaceFiles,
    cx: &CallContext,
) -> Result<(String, Option<Url>), ToolError> {
    match (&input.spec_url, &input.spec_content, &input.spec_path) {
        (Some(url), None, None) => {
            let (text, url) = fetch_document(net, net.url(url.trim())?, cx).await?;
            if !input.external_refs {
                return Ok((text, Some(url)));
            }
            let whole = bundle(text, &url, |other: Url| async move {
                let other = net.url(other.as_str())?;
                fetch_document(net, other, cx).await.map(|(text, _)| text)
            });
            Ok((whole.await?.text, Some(url)))
        }
        (None, Some(text), None) => Ok((text.clone(), None)),
        (None, None, Some(path)) => Ok((files.read_text(path.clone()).await?, None)),
        _ => Err(ToolError::invalid("Exactly one of spec_url, spec_content and spec_path is required.")
            .hint("Pass the URL of the document, its text, or its file.")),
    }
}

/// Decides where the credential is sent: to the document's own server, even if overridden, unless the caller names
/// another origin. A document without its own server has none to protect.
fn bind(
    document: &Document,
    secret: &str,
    settings: &mut ApiSettings,
    notices: &mut Vec<String>,
) -> Result<(), ToolError> {
    let reach = settings.server_options();
    let own = document.document_base_url(None, &reach).ok();
    let goes = settings.auth_origin.clone().or(own).or_else(|| reach.base_url_override.clone());
    let Some(goes) = goes else {
        return Err(ToolError::invalid("The document names no server to send auth_header to.")
            .hint("Set base_url_override as well."));
    };
    // Checked now, so that an invalid name or value does not surface in the first call.
    Credential::new(&settings.auth_header_name, secret, &goes)?;
    if let Some(instead) = &reach.base_url_override
        && instead.origin() != goes.origin()
    {
        notices.push(format!(
            "Calls go to {} without the credential, which is for {}; set auth_origin to send it there.",
            origin(instead),
            origin(&goes)
        ));
    }
    settings.auth_origin = Some(goes);
    Ok(())
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn check_name(name: &str) -> Result<String, ToolError> {
    let name = name.trim();
    let fine = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
        return Err(ToolError::invalid(
            "The name must be 1 to 64 letters, digits, dots, hyphens or underscores.",
        )
        .hint("Use a short one, such as github."));
    }
    Ok(name.to_owned())
}

fn base(net: &Net, text: &str) -> Result<Url, ToolError> {
    let mut url = net.url(text.trim())?;
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

fn empty(document: &Document) -> ToolError {
    let error = ToolError::invalid("The document has no usable operation.");
    match document.skipped.first() {
        Some(why) => {
            error.hint(format!("Skipped: {why}. If it refers to other files, set external_refs to true."))
        }
        None => error.hint("Its `paths` must have at least one method."),
    }
}
