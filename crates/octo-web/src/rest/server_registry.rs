//! The registry API (version 0.1) over the catalogue of servers, for clients that list servers from a registry.

use crate::error_response::json_response;
use crate::rest::request_extractors::RequestRejection;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use axum::response::Response;
use octo_catalogue::{Catalogue, RegistryQuery};
use octo_model::{Json, ToolError};
use serde_json::Value;

pub async fn list(query: Result<Query<RegistryQuery>, QueryRejection>) -> Result<Response, RequestRejection> {
    let Query(query) = query.map_err(|error| {
        ToolError::invalid(format!("{}.", error.body_text()))
            .hint("Use cursor, limit, search, version and updated_since.")
    })?;
    Ok(reply(catalogue()?.registry_list(&query)))
}

pub async fn versions(name: Result<Path<String>, PathRejection>) -> Result<Response, RequestRejection> {
    let Path(name) = name.map_err(|_| unknown_server())?;
    Ok(reply(catalogue()?.registry_versions(&name).ok_or_else(unknown_server)?))
}

pub async fn version(
    path: Result<Path<(String, String)>, PathRejection>,
) -> Result<Response, RequestRejection> {
    let Path((name, version)) = path.map_err(|_| unknown_server())?;
    Ok(reply(catalogue()?.registry_version(&name, &version).ok_or_else(unknown_server)?))
}

fn catalogue() -> Result<&'static Catalogue, ToolError> {
    Catalogue::shipped().map_err(ToolError::internal)
}

fn reply(value: Value) -> Response {
    json_response(Json::from(value))
}

fn unknown_server() -> ToolError {
    ToolError::not_found("The catalogue has no such server.")
        .hint("GET /v0.1/servers lists them. Encode the slash of a name as %2F.")
}
