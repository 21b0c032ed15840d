//! Methods common to both eras.

pub(crate) mod operation_metrics;
mod text_results;

use self::text_results::without_structure;
use crate::client_context::ClientContext;
use crate::discover::method_not_found;
use crate::mcp::Mcp;
use crate::rpc_errors::{map_error, rpc_error};
use octo_hub::{CallOutcome, ClientFeatures, ListRequest, Request, Structure, supports_apps};
use octo_model::{ItemKind, Json, JsonObject, Method, Operation, RpcError};
use octo_toolkit::Peer;
use octo_wire::{Era, code};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// What a method requests.
pub enum RoutedMethod {
    List(ItemKind),
    Operation(Method),
}

pub fn route_method(method: &str) -> Option<RoutedMethod> {
    Some(match method {
        "tools/call" => RoutedMethod::Operation(Method::CallTool),
        "tools/list" => RoutedMethod::List(ItemKind::Tool),
        "prompts/get" => RoutedMethod::Operation(Method::GetPrompt),
        "prompts/list" => RoutedMethod::List(ItemKind::Prompt),
        "resources/read" => RoutedMethod::Operation(Method::ReadResource),
        "resources/list" => RoutedMethod::List(ItemKind::Resource),
        "resources/templates/list" => RoutedMethod::List(ItemKind::Template),
        "skills/list" => RoutedMethod::List(ItemKind::Skill),
        "skills/get" => RoutedMethod::Operation(Method::GetSkill),
        "completion/complete" => RoutedMethod::Operation(Method::Complete),
        _ => return None,
    })
}

impl Mcp {
    pub(crate) async fn handle_list(
        &self,
        client: &ClientContext,
        kind: ItemKind,
        params: &JsonObject,
    ) -> Result<JsonObject, RpcError> {
        let cursor = params.text("cursor");
        if params.get("cursor").is_some() && cursor.is_none() {
            return Err(rpc_error(code::INVALID_PARAMS, "The cursor is not a string."));
        }
        let request = ListRequest {
            kind,
            caller: &client.caller,
            features: ClientFeatures::of(&client.capabilities),
            options: client.options,
            cursor: cursor.as_deref(),
        };
        let page = self.hub.list_in_epoch(&client.epoch, &client.profile, request);
        let page = page.await.map_err(|error| {
            error.rpc.map_or_else(|| rpc_error(code::INVALID_PARAMS, error.message.clone()), |error| *error)
        })?;
        let mut result = JsonObject::new().with(kind.list_member(), page.items);
        if let Some(next) = page.next {
            result.set("nextCursor", next.as_str());
        }
        if client.revision.era() == Era::Modern {
            let ttl = if page.view.is_starting { 0 } else { page.view.ttl_ms.min(60_000) };
            // What is listed depends on the extensions of the client.
            let is_private = page.view.has_apps() || page.view.has_skills();
            let scope = if is_private { "private" } else { self.cache_scope() };
            result.set("ttlMs", Json::of(&ttl)).set("cacheScope", scope);
        }
        Ok(result)
    }

    /// Converts the outcome of a call to a result or a protocol error.
    pub(crate) fn rpc_result(
        &self,
        method: Method,
        called: CallOutcome,
        client: &ClientContext,
    ) -> Result<JsonObject, RpcError> {
        match called.outcome {
            Ok(result) if method == Method::CallTool => {
                let structure = match called.from_app {
                    true => Structure::On,
                    false => self
                        .hub
                        .view(&client.profile)
                        .map(|view| view.structure(client.options))
                        .unwrap_or_default(),
                };
                let is_native = called.entry.is_some_and(|entry| entry.item.source.is_native());
                Ok(without_structure(result, structure, is_native))
            }
            Ok(result) => Ok(result),
            Err(error) => map_error(method, &error, client.revision),
        }
    }

    /// Builds a hub request from the params of a client's request.
    pub(crate) fn hub_request(
        &self,
        client: &ClientContext,
        method: Method,
        mut params: JsonObject,
        peer: Arc<dyn Peer>,
        cancel: CancellationToken,
    ) -> Result<Request, RpcError> {
        let mut name = item_name(method, &params)?;
        let kind = match method {
            Method::CallTool => Some(ItemKind::Tool),
            Method::GetPrompt => Some(ItemKind::Prompt),
            _ => None,
        };
        let in_epoch =
            kind.and_then(|kind| self.hub.name_in_epoch(&client.epoch, &client.profile, kind, &name));
        name = in_epoch.unwrap_or(name);
        let mut from_app = false;
        if supports_apps(&client.capabilities) {
            from_app = self.resolve_for_app(client, method, &mut name);
            if from_app && method == Method::ReadResource {
                params.set("uri", name.as_str());
            }
        }
        let trace = params.inner_text("_meta", "traceparent");
        Ok(Request {
            op: Operation { method, name, params },
            caller: Arc::clone(&client.caller),
            frontend: client.frontend,
            profile: client.profile.clone(),
            peer,
            cancel,
            timeout: None,
            trace,
            depth: 0,
            from_app,
        })
    }

    /// Replaces a name from inside an app, which is the server's own, by that of the hub. Returns whether it did. Apps only
    /// call tools and read apps.
    fn resolve_for_app(&self, client: &ClientContext, method: Method, name: &mut String) -> bool {
        let known = match method {
            Method::CallTool => {
                self.hub.open_app_of_tool(&client.epoch, &client.profile, name);
                self.hub.tool_of_app(&client.epoch, &client.profile, name)
            }
            Method::ReadResource => self.hub.open_app(&client.epoch, &client.profile, name),
            _ => None,
        };
        let is_from_app = known.is_some();
        known.into_iter().for_each(|known| *name = known);
        is_from_app
    }
}

fn item_name(method: Method, params: &JsonObject) -> Result<String, RpcError> {
    let name = match method {
        Method::CallTool | Method::GetPrompt => params.text("name"),
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe | Method::GetSkill => {
            params.text("uri")
        }
        Method::Complete => {
            let reference = params.object("ref");
            reference.text("name").or_else(|| reference.text("uri"))
        }
    };
    let member = if method.names_resource() { "uri" } else { "name" };
    name.ok_or_else(|| rpc_error(code::INVALID_PARAMS, format!("{} needs a {member}.", method.as_str())))
}

/// Error for an unknown method.
pub fn unknown_method(method: &str) -> RpcError {
    method_not_found(method)
}
