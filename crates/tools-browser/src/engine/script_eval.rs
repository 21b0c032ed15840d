//! JavaScript evaluation.

use super::cdp_call::{detail_contains, navigated_away_error};
use super::cdp_connection::COMMAND_TIMEOUT;
use super::{Node, Page, World};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Name of the isolated world.
const ISOLATED_WORLD_NAME: &str = "octoprox";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EvaluateResult {
    pub result: RemoteObject,
    pub exception_details: Option<ExceptionDetails>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RemoteObject {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    value: Value,
    unserializable_value: Option<String>,
    pub object_id: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct ExceptionDetails {
    text: String,
    exception: Option<RemoteObject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IsolatedWorldResult {
    execution_context_id: i64,
}

#[derive(Deserialize)]
struct ResolveNodeResult {
    object: RemoteObject,
}

impl Page {
    pub(super) async fn isolated_world(
        &self,
        session: &str,
        frame: &str,
        timeout: Duration,
    ) -> Result<i64, ToolError> {
        let params = json!({"frameId": frame, "worldName": ISOLATED_WORLD_NAME});
        let reply = self.send_command(session, "Page.createIsolatedWorld", params).await?;
        Ok(reply.get_with_timeout::<IsolatedWorldResult>(timeout).await?.execution_context_id)
    }

    /// Evaluates an expression in the main frame (or the body of an async function: `(async () => {…})()`), awaits it
    /// and returns its value as JSON. An exception is an `invalid` error with its text.
    pub async fn evaluate(&self, script: &str, world: World, timeout: Duration) -> Result<Value, ToolError> {
        let deadline = Instant::now() + timeout;
        let mut params = json!({
            "expression": script,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
            "timeout": timeout.as_millis() as u64,
        });
        if world == World::Isolated {
            let context = self.isolated_world(&self.tab.session, &self.tab.id, timeout).await?;
            if let Value::Object(members) = &mut params {
                members.insert("contextId".to_owned(), context.into());
            }
        }
        let reply_timeout = timeout + Duration::from_millis(100);
        let evaluated: EvaluateResult =
            match self.call_within("Runtime.evaluate", params, reply_timeout).await {
                Ok(evaluated) => evaluated,
                // Chromium terminates a busy script with an error without a message; a waiting one is abandoned.
                Err(error)
                    if error.kind == Kind::Timeout
                        || (error.kind == Kind::Internal && Instant::now() >= deadline) =>
                {
                    self.tab.cdp.post(Some(&self.tab.session), "Runtime.terminateExecution", json!({}));
                    return Err(ToolError::new(Kind::Timeout, "The script timed out.")
                        .hint("Use a longer timeout_ms, or do less in the script."));
                }
                // The promise was collected together with its document.
                Err(error) if detail_contains(&error, "Promise was collected") => {
                    return Err(navigated_away_error());
                }
                Err(error) if error.kind == Kind::TooLarge => {
                    return Err(ToolError::new(Kind::TooLarge, "The script's value is too large.")
                        .hint("Return less from the script."));
                }
                Err(error) => return Err(error),
            };
        into_value(evaluated)
    }

    /// Calls `function` (the text of a JavaScript function) with the element as `this`, in the isolated world.
    pub async fn call_on(&self, node: &Node, function: &str, args: &[Value]) -> Result<Value, ToolError> {
        let object = self.resolve_object(node).await?;
        self.call_object(node, &object, function, args).await
    }

    /// The same for an object that is already resolved, which is released.
    pub(super) async fn call_object(
        &self,
        node: &Node,
        object: &str,
        function: &str,
        args: &[Value],
    ) -> Result<Value, ToolError> {
        let args: Vec<Value> = args.iter().map(|arg| json!({"value": arg})).collect();
        let params = json!({
            "objectId": object,
            "functionDeclaration": function,
            "arguments": args,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let evaluated = self.call_in(&node.session, "Runtime.callFunctionOn", params).await;
        self.tab.cdp.post(Some(&node.session), "Runtime.releaseObject", json!({"objectId": object}));
        into_value(evaluated?)
    }

    /// The element as an object of the isolated world in its frame.
    pub(super) async fn resolve_object(&self, node: &Node) -> Result<String, ToolError> {
        let mut last = None;
        // Outer frames first.
        for frame in self.tab.frames().into_iter().filter(|frame| frame.session == node.session) {
            let Ok(context) = self.isolated_world(&node.session, &frame.id, COMMAND_TIMEOUT).await else {
                continue;
            };
            let params = json!({"backendNodeId": node.id, "executionContextId": context});
            match self.call_in::<ResolveNodeResult>(&node.session, "DOM.resolveNode", params).await {
                Ok(ResolveNodeResult { object: RemoteObject { object_id: Some(id), .. } }) => return Ok(id),
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
        self.tab.check()?;
        let gone = || ToolError::not_found("The element is no longer on the page.");
        let error = last.filter(|error| error.kind != Kind::Internal).unwrap_or_else(gone);
        Err(error.hint("Take a new snapshot and use its refs."))
    }

    /// Whether the node is still part of a document.
    pub async fn is_attached(&self, node: &Node) -> bool {
        self.call_on(node, "function() { return this.isConnected; }", &[])
            .await
            .is_ok_and(|alive| alive == true)
    }
}

fn into_value(evaluated: EvaluateResult) -> Result<Value, ToolError> {
    if let Some(exception) = evaluated.exception_details {
        let text = exception
            .exception
            .and_then(|thrown| thrown.description.or_else(|| thrown.value.as_str().map(str::to_owned)));
        let text = super::ring_buffer::truncate(text.unwrap_or(exception.text));
        return Err(
            ToolError::invalid(format!("The script failed: {text}")).hint("Fix the script and try again.")
        );
    }
    let RemoteObject { kind, value, unserializable_value, .. } = evaluated.result;
    Ok(match (kind.as_str(), unserializable_value) {
        // NaN, Infinity and large integers, which JSON does not have.
        (_, Some(text)) => Value::String(text),
        ("undefined", None) => Value::Null,
        _ => value,
    })
}
