//! The toolbox of the domain `openapi`: any API with an OpenAPI document becomes a handful of tools.

mod call;
mod get_operation;
mod list_apis;
mod list_endpoints;
mod load;
mod reply;
mod shelf;
mod source;
mod unload;
mod wanted;

use octo_toolkit::Toolbox;
use shelf::Shelf;
use std::sync::Arc;

/// The tools of the domain `openapi`.
pub fn toolbox() -> Toolbox {
    let shelf = Arc::new(Shelf::default());
    Toolbox::new("openapi", "Calls APIs that have an OpenAPI document.")
        .with(load::Load(Arc::clone(&shelf)))
        .with(list_endpoints::ListEndpoints(Arc::clone(&shelf)))
        .with(get_operation::GetOperation(Arc::clone(&shelf)))
        .with(call::Call(shelf))
        .with(list_apis::ListApis)
        .with(unload::Unload)
}

#[cfg(test)]
mod tests;
