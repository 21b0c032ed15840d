//! `openapi_call`.

use crate::document_cache::DocumentCache;
use crate::operation_match::OperationMatch;
use crate::request_preview::{self, RequestPreview};
use octo_openapi::{CredentialOutcome, Request, RequestValues};
use octo_toolkit::jq::MAX_INPUT_BYTES;
use octo_toolkit::net::NetRequest;
use octo_toolkit::{
    Apis, BodySelection, CallContext, Effect, Example, JqRunner, Json, Net, Tool, ToolError, select,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const MAX_TIMEOUT_S: u64 = 120;
const MAX_RESPONSE_BYTES: usize = 10 << 20;
const MAX_REDIRECTS: usize = 5;

/// Calls an operation of a loaded API with checked values and its credential, and returns status, headers and body,
/// also for an error status. Prefer dry_run first to see the exact request, http_request for URLs outside the document.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Name that the API was loaded under.
    name: String,
    /// Path as written in the document (/users/{id}) or with values (/users/7), or the operation_id.
    path: String,
    /// Method, such as GET.
    method: String,
    /// Values of the path parameters.
    #[serde(default)]
    path_params: Option<Map<String, Value>>,
    /// Query values, by name; serialized in the style that the document declares.
    #[serde(default)]
    query_params: Option<Map<String, Value>>,
    /// Headers to send, by name.
    #[serde(default)]
    headers: Option<Map<String, Value>>,
    /// Cookies to send, by name.
    #[serde(default)]
    cookie_params: Option<Map<String, Value>>,
    /// Body: a value for JSON, an object for forms, text for others. In forms a file is {"filename", "content" or "base64"}.
    #[serde(default)]
    #[schemars(with = "Value")]
    body: Option<Value>,
    /// Media type of the body; default: chosen from the document.
    #[serde(default)]
    content_type: Option<String>,
    /// Timeout in seconds, redirects and body included; at most 120.
    #[serde(default = "default_timeout_s")]
    timeout_s: u64,
    /// Maximum bytes of the response body to return, up to 10 MB.
    #[serde(default = "default_max_response_bytes")]
    max_response_bytes: usize,
    /// jq expression for a JSON body, such as `.items[] | {id, name}`: reply with what it selects instead of the body.
    #[serde(default)]
    jq: Option<String>,
    /// Only show the request that would be sent, without secrets.
    #[serde(default)]
    dry_run: bool,
}

fn default_timeout_s() -> u64 {
    30
}

fn default_max_response_bytes() -> usize {
    200_000
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// Status of the response; 0 if nothing was sent.
    status_code: u16,
    /// Headers of the response, names in lower case.
    headers: BTreeMap<String, String>,
    /// Body: JSON as a value, or what jq selected (one value, or a list of several); other text as a string, anything else as its
    /// type and size.
    #[schemars(with = "Value")]
    body: Json,
    /// Whether the body was truncated at max_response_bytes; then it is text.
    truncated: bool,
    /// The request, for a dry_run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<RequestPreview>,
    /// Notices about this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct Call(pub Arc<DocumentCache>);

impl Tool for Call {
    const NAME: &'static str = "openapi_call";
    const TITLE: &'static str = "Call an operation";
    const KEYWORDS: &'static str = "invoke endpoint REST API request";
    const REQUESTS: &'static [&'static str] = &[
        "use the loaded pet store api to get pet 7",
        "invoke an endpoint of the api that we registered",
        "run createInvoice of the billing api with these values",
        "see the exact request first without sending it to the registered api",
        "send a file through a form operation of the imported api",
        "call the swagger-described service with its stored token",
    ];
    const EFFECT: Effect = Effect::destroys().open_world();
    type Input = Input;
    type Output = Output;
    type Grants = (Net, Apis, JqRunner);

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "The request that would be sent",
            json!({"name": "pets", "path": "/pets/{id}", "method": "GET", "path_params": {"id": 7}, "dry_run": true}),
        )]
    }

    async fn run(
        &self,
        input: Input,
        (net, apis, jq): (Net, Apis, JqRunner),
        cx: &CallContext,
    ) -> Result<Output, ToolError> {
        if input.timeout_s == 0 || input.max_response_bytes == 0 {
            return Err(ToolError::invalid("timeout_s and max_response_bytes must be 1 or more.")
                .hint("Omit them for 30 seconds and 200,000 bytes."));
        }
        let api = self.0.api(&input.name, &apis, cx).await?;
        let wanted = OperationMatch::find(&api.document, &input.path, &input.method)?;
        let (operation, mut path) = (wanted.operation, wanted.path_values);
        let params = input.path_params.unwrap_or_default();
        if let Some(name) = params.keys().find(|name| path.contains_key(*name)) {
            return Err(ToolError::invalid(format!("`{name}` is in the path and in path_params."))
                .hint("Pass it once."));
        }
        path.extend(params);
        let base = api.document.base(Some(&operation), &api.settings.server_options())?;
        let given = RequestValues {
            path,
            query: input.query_params.unwrap_or_default(),
            headers: input.headers.unwrap_or_default(),
            cookies: input.cookie_params.unwrap_or_default(),
            body: input.body,
            content_type: input.content_type,
        };
        let boundary = format!("octoprox-{}", cx.id);
        let mut request = api.document.request(&operation, &base, &given, &boundary)?;
        if let Some(credential) = &api.credential
            && credential.add(&mut request) == CredentialOutcome::Withheld
        {
            request.notices.push(format!(
                "The credential is for {} and was not sent to {}.",
                credential.origin(),
                request.url.origin().ascii_serialization()
            ));
        }
        let mut notices = std::mem::take(&mut request.notices);
        if input.dry_run {
            let notice = join_notices(&notices);
            let (headers, body) = (BTreeMap::new(), Json::null());
            let request = Some(RequestPreview::new(&request));
            return Ok(Output { status_code: 0, headers, body, truncated: false, request, notice });
        }
        let wait = Duration::from_secs(input.timeout_s.min(MAX_TIMEOUT_S)).min(cx.time_left());
        let most = input.max_response_bytes.min(MAX_RESPONSE_BYTES);
        let asked = if input.jq.is_some() { MAX_INPUT_BYTES } else { most };
        let method = request.method.clone();
        let mut answer = send(&net, request, wait, asked, cx).await?;
        octo_openapi::redact(&mut answer, api.credential.iter().filter_map(|credential| credential.value()));
        let mut part = None;
        if let Some(program) = &input.jq {
            match select(&jq, program, &method, &answer, cx, octo_openapi::parse_json_body).await? {
                BodySelection::Part(selection) => {
                    notices.extend(selection.notice);
                    part = Some(selection.json);
                }
                BodySelection::Whole(why) => {
                    notices.push(why);
                    answer.truncated |= answer.body.len() > most;
                    answer.body.truncate(most);
                }
            }
        }
        Ok(Output {
            status_code: answer.status.as_u16(),
            headers: request_preview::headers(&answer.headers),
            body: part.unwrap_or_else(|| octo_openapi::body(&answer)),
            truncated: answer.truncated,
            request: None,
            notice: join_notices(&notices),
        })
    }
}

fn join_notices(notices: &[String]) -> Option<String> {
    (!notices.is_empty()).then(|| notices.join(" "))
}

async fn send(
    net: &Net,
    request: Request,
    timeout: Duration,
    max_bytes: usize,
    cx: &CallContext,
) -> Result<octo_toolkit::net::NetResponse, ToolError> {
    let ask = NetRequest {
        method: request.method,
        headers: request.headers,
        body: request.body,
        timeout,
        max_bytes,
        max_redirects: MAX_REDIRECTS,
        ..NetRequest::get(request.url)
    };
    cx.run(net.send(ask)).await?
}
