//! Accessibility trees of a page's frames.

use super::geometry::FrameOwner;
use super::tab::FrameSnapshot;
use super::{AxNode, FrameTree, Node, Page};
use octo_toolkit::ToolError;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Deserialize)]
struct AxTreeResult {
    nodes: Vec<RawAxNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAxNode {
    node_id: String,
    #[serde(default)]
    ignored: bool,
    role: Option<AxValue>,
    name: Option<AxValue>,
    value: Option<AxValue>,
    description: Option<AxValue>,
    #[serde(default)]
    properties: Vec<AxProperty>,
    parent_id: Option<String>,
    #[serde(default)]
    child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    backend: Option<i64>,
}

#[derive(Deserialize)]
struct AxValue {
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct AxProperty {
    name: String,
    value: AxValue,
}

impl Page {
    /// Accessibility trees of all frames, the main one first, parents before children.
    pub async fn ax_trees(&self) -> Result<Vec<FrameTree>, ToolError> {
        self.touch();
        let frames = self.tab.frames();
        let sessions: HashMap<String, Arc<str>> =
            frames.iter().map(|frame| (frame.id.clone(), Arc::clone(&frame.session))).collect();
        let mut requests = Vec::new();
        for FrameSnapshot { id: frame, session, parent, url } in frames {
            let tree =
                self.send_command(&session, "Accessibility.getFullAXTree", json!({"frameId": frame})).await;
            let parent_frame = match parent.as_ref().and_then(|parent| sessions.get(parent)) {
                Some(around) => {
                    let owner =
                        self.send_command(around, "DOM.getFrameOwner", json!({"frameId": frame})).await;
                    owner.ok().map(|owner| (Arc::clone(around), owner))
                }
                None => None,
            };
            requests.push((frame, session, url, tree, parent_frame));
        }
        let mut trees = Vec::new();
        for (frame, session, url, tree, around) in requests {
            let owner = match around {
                Some((around, owner)) => owner
                    .get::<FrameOwner>()
                    .await
                    .ok()
                    .map(|owner| Node { session: around, id: owner.backend_node_id }),
                None => None,
            };
            let tree = match tree {
                Ok(tree) => tree.get::<AxTreeResult>().await,
                Err(error) => Err(error),
            };
            match tree {
                Ok(AxTreeResult { nodes }) => {
                    let nodes = nodes.into_iter().map(AxNode::from).collect();
                    // The frame may have navigated since its tree was requested.
                    let url = self.tab.state().frames.get(&frame).map_or(url, |now| now.url.clone());
                    trees.push(FrameTree { session, frame, url, owner, nodes });
                }
                // A frame that is gone or does not respond leaves the others readable.
                Err(error) if trees.is_empty() => return Err(error),
                Err(error) => tracing::debug!(frame, url, %error, "cannot read a frame"),
            }
        }
        for FrameTree { frame, url, nodes, .. } in &trees {
            tracing::trace!(frame, url, nodes = nodes.len(), "read a frame");
        }
        Ok(trees)
    }
}

impl From<RawAxNode> for AxNode {
    fn from(raw: RawAxNode) -> Self {
        let text = |held: Option<AxValue>| match held?.value {
            Value::String(text) => Some(text),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        Self {
            id: raw.node_id,
            parent: raw.parent_id,
            children: raw.child_ids,
            ignored: raw.ignored,
            role: text(raw.role).unwrap_or_default(),
            name: text(raw.name).unwrap_or_default(),
            value: text(raw.value),
            description: text(raw.description).filter(|text| !text.is_empty()),
            properties: raw
                .properties
                .into_iter()
                .map(|property| (property.name, property.value.value))
                .collect(),
            backend: raw.backend,
        }
    }
}
