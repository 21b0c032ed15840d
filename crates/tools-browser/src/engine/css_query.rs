//! Elements by CSS selector.

use super::cdp_connection::COMMAND_TIMEOUT;
use super::script_eval::EvaluateResult;
use super::{Node, Page};
use octo_toolkit::ToolError;
use serde_json::{Value, json};
use std::sync::Arc;

impl Page {
    /// Elements that match a CSS selector, in the main frame first, then in the others; at most `max_nodes`.
    pub async fn query(&self, selector: &str, max_nodes: usize) -> Result<Vec<Node>, ToolError> {
        let mut found = Vec::new();
        for frame in self.tab.frames() {
            let main = frame.id == self.tab.id;
            match self.query_frame(&frame.session, &frame.id, selector, max_nodes - found.len()).await {
                Ok(nodes) => found.extend(nodes),
                Err(error) if main => return Err(error),
                Err(_) => {}
            }
            if found.len() >= max_nodes {
                break;
            }
        }
        Ok(found)
    }

    async fn query_frame(
        &self,
        session: &Arc<str>,
        frame: &str,
        selector: &str,
        max_nodes: usize,
    ) -> Result<Vec<Node>, ToolError> {
        let context = self.isolated_world(session, frame, COMMAND_TIMEOUT).await?;
        let text = Value::from(selector).to_string();
        let script = format!("Array.from(document.querySelectorAll({text})).slice(0, {max_nodes})");
        let params = json!({"expression": script, "contextId": context});
        let evaluated: EvaluateResult = self.call_in(session, "Runtime.evaluate", params).await?;
        if evaluated.exception_details.is_some() {
            return Err(ToolError::invalid(format!("`{selector}` is not a CSS selector.")).hint(
                "Use a selector such as `#id`, `.class` or `button[type=submit]`, or a ref from a snapshot.",
            ));
        }
        let Some(list) = evaluated.result.object_id else { return Ok(Vec::new()) };
        self.resolve_nodes(session, &list).await
    }

    /// Resolves the elements of an array in a frame and releases the array.
    pub(super) async fn resolve_nodes(&self, session: &Arc<str>, list: &str) -> Result<Vec<Node>, ToolError> {
        let params = json!({"objectId": list, "ownProperties": true});
        let listed: Value = self.call_in(session, "Runtime.getProperties", params).await?;
        let objects =
            listed.get("result").and_then(Value::as_array).into_iter().flatten().filter_map(|entry| {
                entry.get("name")?.as_str()?.parse::<usize>().ok()?;
                Some(entry.get("value")?.get("objectId")?.as_str()?.to_owned())
            });
        let mut requests = Vec::new();
        for object in objects {
            requests.push(self.send_command(session, "DOM.describeNode", json!({"objectId": object})).await?);
        }
        let mut nodes = Vec::new();
        for answer in requests {
            let described: Value = answer.get().await?;
            let id = described.get("node").and_then(|node| node.get("backendNodeId")).and_then(Value::as_i64);
            nodes.extend(id.map(|id| Node { session: Arc::clone(session), id }));
        }
        self.tab.cdp.post(Some(session), "Runtime.releaseObject", json!({"objectId": list}));
        Ok(nodes)
    }
}
