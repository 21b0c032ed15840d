//! Toolbox `openapi`: calls any API with an OpenAPI document.

mod document_cache;
mod get_operation;
mod list_apis;
mod list_endpoints;
mod openapi_call;
mod openapi_load;
mod openapi_unload;
mod operation_match;
mod request_preview;
mod spec_source;

use document_cache::DocumentCache;
use octo_toolkit::Toolbox;
use std::sync::Arc;

/// Tools of the domain `openapi`.
pub fn toolbox() -> Toolbox {
    let shelf = Arc::new(DocumentCache::default());
    Toolbox::new("openapi", "Calls APIs that have an OpenAPI document.")
        .with(openapi_load::Load(Arc::clone(&shelf)))
        .with(list_endpoints::ListEndpoints(Arc::clone(&shelf)))
        .with(get_operation::GetOperation(Arc::clone(&shelf)))
        .with(openapi_call::Call(shelf))
        .with(list_apis::ListApis)
        .with(openapi_unload::Unload)
}

#[cfg(test)]
mod tests;
