//! Lists of tools and prompts, and the OpenAPI document.

use super::RestState;
use super::request_extractors::{CallerView, RequestRejection, bad_name};
use crate::error_response::json_response;
use crate::rest_openapi::openapi_document;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use octo_hub::{Hub, View};
use octo_model::{ItemKind, Json, JsonObject, Method, Operation, ToolError};
use std::sync::Arc;

pub async fn tools(
    State(rest): State<Arc<RestState>>,
    look: CallerView,
) -> Result<Response, RequestRejection> {
    list(&rest.hub, &look, ItemKind::Tool).await
}

pub async fn prompts(
    State(rest): State<Arc<RestState>>,
    look: CallerView,
) -> Result<Response, RequestRejection> {
    list(&rest.hub, &look, ItemKind::Prompt).await
}

/// Definition of one tool, by any name that a call would accept.
pub async fn tool(
    State(rest): State<Arc<RestState>>,
    path: Result<Path<String>, PathRejection>,
    look: CallerView,
) -> Result<Response, RequestRejection> {
    let Path(name) = path.map_err(|_| bad_name())?;
    let (all, view) = list_all_pages(&rest.hub, &look, ItemKind::Tool).await?;
    let op = Operation { method: Method::CallTool, name, params: JsonObject::new() };
    // A tool that the caller may not call looks like one that does not exist.
    let not_found = || rest.hub.not_found_error(&look.profile, &view, &look.caller, &op);
    let entry = view.find(&op).ok_or_else(not_found)?;
    let found = all.into_iter().find(|json| is_named(json, &entry.listed_name)).ok_or_else(not_found)?;
    Ok(json_response(with_tags(&view, ItemKind::Tool, found)))
}

pub async fn openapi(
    State(rest): State<Arc<RestState>>,
    look: CallerView,
) -> Result<Response, RequestRejection> {
    let (tools, _) = list_all_pages(&rest.hub, &look, ItemKind::Tool).await?;
    let (prompts, _) = list_all_pages(&rest.hub, &look, ItemKind::Prompt).await?;
    Ok(json_response(Json::from(openapi_document(&tools, &prompts, rest.tokens.are_required()))))
}

async fn list(hub: &Hub, look: &CallerView, kind: ItemKind) -> Result<Response, RequestRejection> {
    let (all, view) = list_all_pages(hub, look, kind).await?;
    let all: Vec<Json> = all.into_iter().map(|definition| with_tags(&view, kind, definition)).collect();
    Ok(json_response(JsonObject::new().with(kind.list_member(), Json::array(&all)).into()))
}

/// Adds tags to a definition.
fn with_tags(view: &View, kind: ItemKind, definition: Json) -> Json {
    let Ok(members) = definition.members() else { return definition };
    let entry = members.text("name").and_then(|name| view.by_name(kind, &name));
    match entry {
        Some(entry) if members.get("tags").is_none() => members.with("tags", entry.item.tags()).into(),
        _ => definition,
    }
}

/// All pages of a list that the caller may see.
async fn list_all_pages(
    hub: &Hub,
    look: &CallerView,
    kind: ItemKind,
) -> Result<(Vec<Json>, Arc<View>), ToolError> {
    let mut page = hub.list(&look.profile, kind, &look.caller, None).await?;
    let mut found = elements(&page.items)?;
    while let Some(next) = page.next.take() {
        page = hub.list(&look.profile, kind, &look.caller, Some(&next)).await?;
        found.append(&mut elements(&page.items)?);
    }
    Ok((found, page.view))
}

fn elements(items: &Json) -> Result<Vec<Json>, ToolError> {
    items.elements().map_err(ToolError::internal)
}

fn is_named(definition: &Json, name: &str) -> bool {
    definition.members().is_ok_and(|members| members.text("name").as_deref() == Some(name))
}
