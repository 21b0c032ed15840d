//! One call: arguments become a request by parts, and the answer a result.

use super::DocumentSpec;
use super::answer;
use super::loaded::{Loaded, gives_pictures};
use octo_grants::net::Ask;
use octo_model::{Json, Members, Op, ToolError};
use octo_openapi::{Request, is_secret_header, redact};
use octo_toolkit::Cx;

/// Bytes of an answer.
const LARGEST: usize = 16 << 20;
const REDIRECTS: usize = 5;

pub(super) async fn run(
    spec: &DocumentSpec,
    loaded: &Loaded,
    op: &Op,
    cx: &Cx,
) -> Result<Members, ToolError> {
    let operation = loaded.operation(spec, &op.name)?;
    let arguments = op.params.get("arguments").cloned().unwrap_or_else(Json::empty_object);
    let arguments = arguments.to().map_err(|error| {
        ToolError::invalid(format!("The arguments must be an object: {error}."))
            .hint("Compare them with the tool's schema.")
    })?;
    let given = operation.given(arguments)?;
    let base = loaded.base(&operation)?;
    let boundary = format!("octoprox-{}", cx.id);
    let mut request = loaded.document().request(&operation, &base, &given, &boundary)?;
    prove(spec, loaded, &mut request);
    let net = loaded.way(&request.url);
    let ask = Ask {
        method: request.method,
        headers: request.headers,
        body: request.body,
        timeout: spec.timeout.min(cx.time_left()),
        max_bytes: LARGEST,
        redirects: REDIRECTS,
        ..Ask::get(request.url)
    };
    let mut answer = cx.run(net.send(ask)).await??;
    let headers = loaded.credentials().iter().filter(|credential| is_secret_header(credential.header()));
    let headers = headers.filter_map(|credential| credential.value());
    redact(&mut answer, headers.chain(spec.query_key.iter().map(|(_, secret)| secret.expose())));
    answer::told(&spec.name, answer, gives_pictures(&operation))
}

/// Adds what proves who asks, at the API itself only.
fn prove(spec: &DocumentSpec, loaded: &Loaded, request: &mut Request) {
    for credential in loaded.credentials() {
        credential.add(request);
    }
    if let Some((name, secret)) = &spec.query_key
        && request.url.origin() == loaded.home.origin()
    {
        request.url.query_pairs_mut().append_pair(name, secret.expose());
    }
}
