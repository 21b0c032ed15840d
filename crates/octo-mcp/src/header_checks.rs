//! Checks headers of a modern request against its body: what proxies route by must be what is executed.

use crate::rpc_errors::rpc_error;
use http::HeaderMap;
use octo_hub::HeaderParam;
use octo_model::{Json, JsonObject, RpcError};
use octo_wire::{Revision, code, header, meta};

/// Value of a header that occurs exactly once and is readable.
pub fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut all = headers.get_all(name).iter();
    let only = all.next()?;
    if all.next().is_some() {
        return None;
    }
    only.to_str().ok().map(str::trim)
}

fn mismatch(what: &str) -> RpcError {
    rpc_error(code::HEADER_MISMATCH, format!("{what} The header and the body of a request must agree."))
}

/// Checks revision and context: present, equal in header and body, and supported.
pub fn check_context(headers: &HeaderMap, about: &JsonObject) -> Result<(), RpcError> {
    let missing = |key: &str| rpc_error(code::INVALID_PARAMS, format!("params._meta needs `{key}`."));
    let in_header = header_text(headers, header::REVISION);
    let in_body = about.text(meta::REVISION).ok_or_else(|| missing(meta::REVISION))?;
    if in_header != Some(in_body.as_str()) {
        return Err(mismatch("MCP-Protocol-Version differs."));
    }
    check_revision(&in_body)?;
    if !about.get(meta::CAPABILITIES).is_some_and(Json::is_object) {
        return Err(missing(meta::CAPABILITIES));
    }
    Ok(())
}

pub fn check_revision(revision: &str) -> Result<(), RpcError> {
    if revision == Revision::MODERN.as_str() {
        return Ok(());
    }
    let data = JsonObject::new()
        .with("supported", Json::of(&[Revision::MODERN.as_str()]))
        .with("requested", revision);
    let mut error = rpc_error(code::UNSUPPORTED_REVISION, "Unsupported protocol revision.");
    error.data = Some(data.to_json());
    Err(error)
}

/// Checks `Mcp-Method` and, if an item is named, `Mcp-Name`.
pub fn check_names(headers: &HeaderMap, method: &str, params: &JsonObject) -> Result<(), RpcError> {
    if header_text(headers, header::METHOD) != Some(method) {
        return Err(mismatch("Mcp-Method differs or is missing."));
    }
    let member = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return Ok(()),
    };
    let Some(name) = params.text(member) else {
        return Ok(());
    };
    let given = header_text(headers, header::NAME).and_then(header::decode);
    if given.as_deref() == Some(name.as_str()) {
        Ok(())
    } else {
        Err(mismatch("Mcp-Name differs or is missing."))
    }
}

/// Checks `Mcp-Param-*` for the parameters that the tool's schema marks.
pub fn check_params(
    headers: &HeaderMap,
    mirrored: &[HeaderParam],
    params: &JsonObject,
) -> Result<(), RpcError> {
    if mirrored.is_empty() {
        return Ok(());
    }
    let arguments = params.object("arguments");
    for HeaderParam { parameter, header } in mirrored {
        let name = format!("{}{header}", header::PARAM);
        let in_body = arguments.get(parameter).filter(|value| !value.is_null());
        let fits = match (in_body, headers.get(name.as_str())) {
            (None, None) => true,
            (Some(value), Some(_)) => header_text(headers, &name)
                .and_then(header::decode)
                .is_some_and(|given| equals_header(value, &given)),
            _ => false,
        };
        if !fits {
            return Err(mismatch(&format!("Mcp-Param-{header} differs or is missing.")));
        }
    }
    Ok(())
}

fn equals_header(value: &Json, given: &str) -> bool {
    match value.to_text() {
        Some(text) => text == given,
        None => value.as_str() == given,
    }
}
