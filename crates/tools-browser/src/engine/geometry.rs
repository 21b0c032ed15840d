//! Positions of elements.

use super::{Node, Page, Rect};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Deserialize)]
struct ContentQuads {
    quads: Vec<[f64; 8]>,
}

#[derive(Deserialize)]
pub(super) struct BoxModelResult {
    pub model: BoxModel,
}

#[derive(Deserialize)]
pub(super) struct BoxModel {
    pub border: [f64; 8],
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FrameOwner {
    pub backend_node_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LayoutMetrics {
    pub css_visual_viewport: VisualViewport,
    pub css_content_size: Size,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct VisualViewport {
    pub page_x: f64,
    pub page_y: f64,
    pub client_width: f64,
    pub client_height: f64,
}

#[derive(Deserialize)]
pub(super) struct Size {
    pub width: f64,
    pub height: f64,
}

impl Page {
    /// Rectangle of an element; None if it is not shown.
    pub async fn rect(&self, node: &Node) -> Result<Option<Rect>, ToolError> {
        Ok(self.rects(std::slice::from_ref(node)).await?.pop().flatten())
    }

    /// Rectangles of elements, in the order of `nodes`, in one round trip per frame.
    pub async fn rects(&self, nodes: &[Node]) -> Result<Vec<Option<Rect>>, ToolError> {
        Ok(self.quads(nodes).await?.iter().map(|quads| bounding_rect(quads)).collect())
    }

    /// Corners of all boxes of each element, in the main frame's viewport.
    pub(super) async fn quads(&self, nodes: &[Node]) -> Result<Vec<Vec<[f64; 8]>>, ToolError> {
        let mut requests = Vec::new();
        for node in nodes {
            let params = json!({"backendNodeId": node.id});
            requests.push(self.send_command(&node.session, "DOM.getContentQuads", params).await);
        }
        let mut shifts: HashMap<Arc<str>, (f64, f64)> = HashMap::new();
        let mut all = Vec::new();
        for (node, answer) in nodes.iter().zip(requests) {
            let answer = match answer {
                Ok(answer) => answer.get::<ContentQuads>().await,
                Err(error) => Err(error),
            };
            let mut quads = match answer {
                Ok(ContentQuads { quads }) => quads,
                Err(error) if error.kind == Kind::Unavailable => return Err(error),
                Err(error) if error.kind == Kind::Timeout => return Err(error),
                // Not shown, or gone.
                Err(_) => Vec::new(),
            };
            if node.session != self.tab.session && !quads.is_empty() {
                let shift = match shifts.get(&node.session) {
                    Some(known) => *known,
                    None => Box::pin(self.frame_offset(&node.session)).await?,
                };
                shifts.insert(Arc::clone(&node.session), shift);
                for quad in &mut quads {
                    for (at, value) in quad.iter_mut().enumerate() {
                        *value += if at % 2 == 0 { shift.0 } else { shift.1 };
                    }
                }
            }
            all.push(quads);
        }
        self.tab.check()?;
        Ok(all)
    }

    /// Origin of the viewport of a frame in another process.
    pub(super) async fn frame_offset(&self, session: &Arc<str>) -> Result<(f64, f64), ToolError> {
        let Some(owner) = self.frame_owner(session).await? else { return Ok((0.0, 0.0)) };
        let quads = Box::pin(self.quads(std::slice::from_ref(&owner))).await?;
        let corner = quads.first().and_then(|quads| bounding_rect(quads)).map(|rect| (rect.x, rect.y));
        Ok(corner.unwrap_or_default())
    }

    /// The element that contains the frames of a session; None for the main frame's.
    pub(super) async fn frame_owner(&self, session: &Arc<str>) -> Result<Option<Node>, ToolError> {
        let frames = self.tab.frames();
        let root = frames.iter().find(|frame| {
            let outside =
                |parent: &String| frames.iter().any(|of| of.id == *parent && of.session != *session);
            frame.session == *session && frame.parent.as_ref().is_none_or(outside)
        });
        let around = root.and_then(|root| {
            let parent = root.parent.as_ref()?;
            frames.iter().find(|frame| frame.id == *parent).map(|around| (root, &around.session))
        });
        let Some((root, around)) = around else { return Ok(None) };
        let owner: FrameOwner =
            self.call_in(around, "DOM.getFrameOwner", json!({"frameId": root.id})).await?;
        Ok(Some(Node { session: Arc::clone(around), id: owner.backend_node_id }))
    }

    /// Elements, attributes, texts and boxes of all documents in the main process, as JSON; identical until something
    /// changes.
    pub async fn layout_snapshot(&self) -> Result<String, ToolError> {
        let params = json!({"computedStyles": ["visibility"]});
        let layout: Box<RawValue> = self.call("DOMSnapshot.captureSnapshot", params).await?;
        Ok(Box::<str>::from(layout).into_string())
    }

    /// Whether the page has no frames.
    pub fn has_single_frame(&self) -> bool {
        self.tab.state().frames.len() == 1
    }

    /// Width and height of the viewport in CSS pixels.
    pub async fn viewport(&self) -> Result<(f64, f64), ToolError> {
        let metrics = self.metrics().await?;
        Ok((metrics.css_visual_viewport.client_width, metrics.css_visual_viewport.client_height))
    }

    pub(super) async fn metrics(&self) -> Result<LayoutMetrics, ToolError> {
        self.call("Page.getLayoutMetrics", json!({})).await
    }
}

/// Bounding rectangle of all boxes.
pub(super) fn bounding_rect(quads: &[[f64; 8]]) -> Option<Rect> {
    let xs = || quads.iter().flat_map(|quad| quad.iter().step_by(2).copied());
    let ys = || quads.iter().flat_map(|quad| quad.iter().skip(1).step_by(2).copied());
    let (x, right) = (xs().reduce(f64::min)?, xs().reduce(f64::max)?);
    let (y, bottom) = (ys().reduce(f64::min)?, ys().reduce(f64::max)?);
    Some(Rect { x, y, width: right - x, height: bottom - y })
}
