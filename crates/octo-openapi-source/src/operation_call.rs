//! One call: arguments to request, response to result.

use crate::document_spec::DocumentSpec;
use crate::loaded_api::{LoadedApi, returns_image};
use crate::operation_result;
use octo_grants::net::NetRequest;
use octo_model::{Json, JsonObject, Operation, ToolError};
use octo_openapi::{Request, is_secret_header, redact};
use octo_toolkit::CallContext;

/// Maximum size of a response, in bytes.
const MAX_RESPONSE_BYTES: usize = 16 << 20;
const MAX_REDIRECTS: usize = 5;

pub(crate) async fn run(
    spec: &DocumentSpec,
    loaded: &LoadedApi,
    op: &Operation,
    cx: &CallContext,
) -> Result<JsonObject, ToolError> {
    let operation = loaded.operation(spec, &op.name)?;
    let arguments = op.params.get("arguments").cloned().unwrap_or_else(Json::empty_object);
    let arguments = arguments.to().map_err(|error| {
        ToolError::invalid(format!("The arguments must be an object: {error}."))
            .hint("Compare them with the tool's schema.")
    })?;
    let given = operation.to_request_values(arguments)?;
    let base = loaded.base(&operation)?;
    let boundary = format!("octoprox-{}", cx.id);
    let mut request = loaded.document().request(&operation, &base, &given, &boundary)?;
    add_credentials(spec, loaded, &mut request);
    let net = loaded.net_for(&request.url);
    let ask = NetRequest {
        method: request.method,
        headers: request.headers,
        body: request.body,
        timeout: spec.timeout.min(cx.time_left()),
        max_bytes: MAX_RESPONSE_BYTES,
        max_redirects: MAX_REDIRECTS,
        ..NetRequest::get(request.url)
    };
    let mut answer = cx.run(net.send(ask)).await??;
    let headers = loaded.credentials().iter().filter(|credential| is_secret_header(credential.header()));
    let headers = headers.filter_map(|credential| credential.value());
    redact(&mut answer, headers.chain(spec.query_key.iter().map(|(_, secret)| secret.expose())));
    operation_result::tool_result(&spec.name, answer, returns_image(&operation))
}

/// Adds the credentials, for the API itself only.
fn add_credentials(spec: &DocumentSpec, loaded: &LoadedApi, request: &mut Request) {
    for credential in loaded.credentials() {
        credential.add(request);
    }
    if let Some((name, secret)) = &spec.query_key
        && request.url.origin() == loaded.api_url.origin()
    {
        request.url.query_pairs_mut().append_pair(name, secret.expose());
    }
}
