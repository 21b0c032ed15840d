//! Looking at a page: JavaScript, accessibility trees, places and pictures.

use super::wire::PATIENCE;
use super::{AxNode, FrameTree, Node, Page, Picture, Rect, Shot, World};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Our world beside the page's.
const WORLD: &str = "octoprox";

/// Pictures are not larger than this in either direction.
const LONGEST_SIDE: f64 = 16_000.0;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluated {
    result: Remote,
    exception_details: Option<Exception>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Remote {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    value: Value,
    unserializable_value: Option<String>,
    object_id: Option<String>,
    description: Option<String>,
}

#[derive(Deserialize)]
struct Exception {
    text: String,
    exception: Option<Remote>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorldMade {
    execution_context_id: i64,
}

#[derive(Deserialize)]
struct Resolved {
    object: Remote,
}

#[derive(Deserialize)]
struct Quads {
    quads: Vec<[f64; 8]>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner {
    backend_node_id: i64,
}

#[derive(Deserialize)]
struct Trees {
    nodes: Vec<RawAx>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAx {
    node_id: String,
    #[serde(default)]
    ignored: bool,
    role: Option<Held>,
    name: Option<Held>,
    value: Option<Held>,
    description: Option<Held>,
    #[serde(default)]
    properties: Vec<Property>,
    parent_id: Option<String>,
    #[serde(default)]
    child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    backend: Option<i64>,
}

#[derive(Deserialize)]
struct Held {
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct Property {
    name: String,
    value: Held,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    css_visual_viewport: Visual,
    css_content_size: Size,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Visual {
    page_x: f64,
    page_y: f64,
    client_width: f64,
    client_height: f64,
}

#[derive(Deserialize)]
struct Size {
    width: f64,
    height: f64,
}

#[derive(Deserialize)]
struct Captured {
    data: String,
}

impl Page {
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
    ) -> Result<T, ToolError> {
        self.call_within(method, params, PATIENCE).await
    }

    /// A page that is gone answers nothing any more.
    pub(super) async fn call_within<T: DeserializeOwned>(
        &self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> Result<T, ToolError> {
        self.tab.check()?;
        let sent = self.tab.wire.send(Some(&self.tab.session), method, params).await?;
        tokio::select! {
            biased;
            answer = sent.get_within(patience) => answer,
            gone = self.tab.lost() => Err(gone),
        }
    }

    /// Any other method of the protocol, in the main frame's session.
    pub async fn cdp(&self, method: &str, params: Value) -> Result<Value, ToolError> {
        self.call(method, params).await
    }

    async fn world(&self, session: &str, frame: &str) -> Result<i64, ToolError> {
        let params = json!({"frameId": frame, "worldName": WORLD});
        let making = self.tab.wire.call(Some(session), "Page.createIsolatedWorld", params);
        let made: WorldMade = tokio::select! {
            biased;
            made = making => made?,
            gone = self.tab.lost() => return Err(gone),
        };
        Ok(made.execution_context_id)
    }

    /// Runs an expression in the main frame (or the body of an async function: `(async () => {…})()`), awaits it and
    /// gives its value as JSON. An exception is an `invalid` error with its text.
    pub async fn evaluate(&self, script: &str, world: World, timeout: Duration) -> Result<Value, ToolError> {
        self.tab.check()?;
        let mut params = json!({
            "expression": script,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
            "timeout": timeout.as_millis() as u64,
        });
        if world == World::Isolated {
            let context = self.world(&self.tab.session, &self.tab.id).await?;
            if let Value::Object(members) = &mut params {
                members.insert("contextId".to_owned(), context.into());
            }
        }
        let patience = timeout + Duration::from_millis(100);
        let deadline = Instant::now() + timeout;
        let evaluated: Evaluated = match self.call_within("Runtime.evaluate", params, patience).await {
            Ok(evaluated) => evaluated,
            // Chromium ends a script that is busy, as an error without words; one that waits we leave.
            Err(error)
                if error.kind == Kind::Timeout
                    || (error.kind == Kind::Internal && Instant::now() >= deadline) =>
            {
                self.tab.wire.post(Some(&self.tab.session), "Runtime.terminateExecution", json!({}));
                return Err(ToolError::new(Kind::Timeout, "The script did not end in time.")
                    .hint("Give it a longer timeout_ms, or let it do less."));
            }
            // What promised a value went with its document.
            Err(error) if says(&error, "Promise was collected") => {
                return Err(ToolError::new(Kind::Conflict, "The page went elsewhere meanwhile.")
                    .hint("Take a new snapshot and go on."));
            }
            Err(error) => return Err(error),
        };
        value(evaluated)
    }

    /// Calls `function` (the text of a JavaScript function) with `this` being the element, in the isolated world.
    pub async fn call_on(&self, node: &Node, function: &str, args: &[Value]) -> Result<Value, ToolError> {
        let object = self.object(node).await?;
        let args: Vec<Value> = args.iter().map(|arg| json!({"value": arg})).collect();
        let params = json!({
            "objectId": object,
            "functionDeclaration": function,
            "arguments": args,
            "awaitPromise": true,
            "returnByValue": true,
            "userGesture": true,
        });
        let evaluated = self.tab.wire.call(Some(&node.session), "Runtime.callFunctionOn", params).await;
        self.tab.wire.post(Some(&node.session), "Runtime.releaseObject", json!({"objectId": object}));
        value(evaluated?)
    }

    /// The element as an object of our world in its frame.
    async fn object(&self, node: &Node) -> Result<String, ToolError> {
        self.tab.check()?;
        let mut last = None;
        for frame in self.frames_of(&node.session) {
            let Ok(context) = self.world(&node.session, &frame).await else { continue };
            let params = json!({"backendNodeId": node.id, "executionContextId": context});
            match self.tab.wire.call::<Resolved>(Some(&node.session), "DOM.resolveNode", params).await {
                Ok(Resolved { object: Remote { object_id: Some(id), .. } }) => return Ok(id),
                Ok(_) => {}
                Err(error) => last = Some(error),
            }
        }
        let gone = || ToolError::not_found("The element is no longer on the page.");
        let error = last.filter(|error| error.kind != Kind::Internal).unwrap_or_else(gone);
        Err(error.hint("Take a new snapshot and use its refs."))
    }

    /// The frames of a session, outer ones first.
    fn frames_of(&self, session: &str) -> Vec<String> {
        let state = self.tab.state();
        let mut frames: Vec<_> =
            state.frames.iter().filter(|(_, frame)| *frame.session == *session).collect();
        frames.sort_by_key(|(_, frame)| frame.serial);
        frames.into_iter().map(|(id, _)| id.clone()).collect()
    }

    /// All frames, the main one first, parents before children.
    fn frames(&self) -> Vec<(String, Arc<str>, Option<String>, String)> {
        let state = self.tab.state();
        let mut frames: Vec<_> = state.frames.iter().collect();
        frames.sort_by_key(|(id, frame)| (**id != self.tab.id, frame.serial));
        let whole = |(id, frame): (&String, &super::tab::Frame)| {
            (id.clone(), Arc::clone(&frame.session), frame.parent.clone(), frame.url.clone())
        };
        frames.into_iter().map(whole).collect()
    }

    /// The elements that fit a CSS selector, in the main frame first, then in the others; at most `most`.
    pub async fn query(&self, selector: &str, most: usize) -> Result<Vec<Node>, ToolError> {
        let mut found = Vec::new();
        for (frame, session, ..) in self.frames() {
            let main = frame == self.tab.id;
            match self.query_in(&session, &frame, selector, most - found.len()).await {
                Ok(nodes) => found.extend(nodes),
                Err(error) if main => return Err(error),
                Err(_) => {}
            }
            if found.len() >= most {
                break;
            }
        }
        Ok(found)
    }

    async fn query_in(
        &self,
        session: &Arc<str>,
        frame: &str,
        selector: &str,
        most: usize,
    ) -> Result<Vec<Node>, ToolError> {
        let context = self.world(session, frame).await?;
        let wire = &self.tab.wire;
        let text = Value::from(selector).to_string();
        let script = format!("Array.from(document.querySelectorAll({text})).slice(0, {most})");
        let params = json!({"expression": script, "contextId": context});
        let evaluated: Evaluated = wire.call(Some(session), "Runtime.evaluate", params).await?;
        if evaluated.exception_details.is_some() {
            return Err(ToolError::invalid(format!("`{selector}` is not a CSS selector.")).hint(
                "Use a selector such as `#id`, `.class` or `button[type=submit]`, or a ref of a snapshot.",
            ));
        }
        let Some(list) = evaluated.result.object_id else { return Ok(Vec::new()) };
        let params = json!({"objectId": list, "ownProperties": true});
        let listed: Value = wire.call(Some(session), "Runtime.getProperties", params).await?;
        let objects =
            listed.get("result").and_then(Value::as_array).into_iter().flatten().filter_map(|entry| {
                entry.get("name")?.as_str()?.parse::<usize>().ok()?;
                Some(entry.get("value")?.get("objectId")?.as_str()?.to_owned())
            });
        let mut asked = Vec::new();
        for object in objects {
            asked.push(wire.send(Some(session), "DOM.describeNode", json!({"objectId": object})).await?);
        }
        let mut nodes = Vec::new();
        for answer in asked {
            let described: Value = answer.get().await?;
            let id = described.get("node").and_then(|node| node.get("backendNodeId")).and_then(Value::as_i64);
            nodes.extend(id.map(|id| Node { session: Arc::clone(session), id }));
        }
        wire.post(Some(session), "Runtime.releaseObject", json!({"objectId": list}));
        Ok(nodes)
    }

    /// The accessibility trees of all frames, the main one first, parents before children.
    pub async fn ax_trees(&self) -> Result<Vec<FrameTree>, ToolError> {
        self.tab.check()?;
        self.touch();
        let wire = &self.tab.wire;
        let frames = self.frames();
        let sessions: HashMap<String, Arc<str>> =
            frames.iter().map(|(id, session, ..)| (id.clone(), Arc::clone(session))).collect();
        let mut asked = Vec::new();
        for (frame, session, parent, url) in frames {
            let tree =
                wire.send(Some(&session), "Accessibility.getFullAXTree", json!({"frameId": frame})).await?;
            let around = match parent.as_ref().and_then(|parent| sessions.get(parent)) {
                Some(around) => {
                    let owner =
                        wire.send(Some(around), "DOM.getFrameOwner", json!({"frameId": frame})).await?;
                    Some((Arc::clone(around), owner))
                }
                None => None,
            };
            asked.push((frame, session, url, tree, around));
        }
        let mut trees = Vec::new();
        for (frame, session, url, tree, around) in asked {
            let owner = match around {
                Some((around, owner)) => owner
                    .get::<Owner>()
                    .await
                    .ok()
                    .map(|owner| Node { session: around, id: owner.backend_node_id }),
                None => None,
            };
            match tree.get::<Trees>().await {
                Ok(Trees { nodes }) => {
                    let nodes = nodes.into_iter().map(AxNode::from).collect();
                    trees.push(FrameTree { session, frame, url, owner, nodes });
                }
                // A frame that went away, or one that does not react, leaves the others readable.
                Err(error) if trees.is_empty() => return Err(error),
                Err(error) => tracing::debug!(frame, url, %error, "a frame cannot be read"),
            }
        }
        for FrameTree { frame, url, nodes, .. } in &trees {
            tracing::trace!(frame, url, nodes = nodes.len(), "a frame was read");
        }
        Ok(trees)
    }

    /// Whether the node is still part of a document.
    pub async fn is_alive(&self, node: &Node) -> bool {
        self.call_on(node, "function() { return this.isConnected; }", &[])
            .await
            .is_ok_and(|alive| alive == true)
    }

    /// Where an element is shown; none when it is not.
    pub async fn rect(&self, node: &Node) -> Result<Option<Rect>, ToolError> {
        Ok(self.rects(std::slice::from_ref(node)).await?.pop().flatten())
    }

    /// Where many elements are shown, in the order of `nodes`, in one round trip per frame.
    pub async fn rects(&self, nodes: &[Node]) -> Result<Vec<Option<Rect>>, ToolError> {
        Ok(self.quads(nodes).await?.iter().map(|quads| around(quads)).collect())
    }

    /// The corners of all boxes of each element, in the main frame's viewport.
    pub(super) async fn quads(&self, nodes: &[Node]) -> Result<Vec<Vec<[f64; 8]>>, ToolError> {
        self.tab.check()?;
        let mut asked = Vec::new();
        for node in nodes {
            let params = json!({"backendNodeId": node.id});
            asked.push(self.tab.wire.send(Some(&node.session), "DOM.getContentQuads", params).await?);
        }
        let mut shifts: HashMap<Arc<str>, (f64, f64)> = HashMap::new();
        let mut all = Vec::new();
        for (node, answer) in nodes.iter().zip(asked) {
            let mut quads = match answer.get::<Quads>().await {
                Ok(Quads { quads }) => quads,
                Err(error) if error.kind == Kind::Unavailable => return Err(error),
                // Not shown, or gone.
                Err(_) => Vec::new(),
            };
            if node.session != self.tab.session && !quads.is_empty() {
                let shift = match shifts.get(&node.session) {
                    Some(known) => *known,
                    None => Box::pin(self.shift(&node.session)).await?,
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
        Ok(all)
    }

    /// Where the viewport of a frame in another process begins.
    async fn shift(&self, session: &Arc<str>) -> Result<(f64, f64), ToolError> {
        let frames = self.frames();
        let root = frames.iter().find(|(_, of, parent, _)| {
            let outside = |parent: &String| frames.iter().any(|(id, of, ..)| id == parent && of != session);
            of == session && parent.as_ref().is_none_or(outside)
        });
        let Some((frame, _, Some(parent), _)) = root else { return Ok((0.0, 0.0)) };
        let Some((_, around, ..)) = frames.iter().find(|(id, ..)| id == parent) else {
            return Ok((0.0, 0.0));
        };
        let params = json!({"frameId": frame});
        let owner: Owner = self.tab.wire.call(Some(around), "DOM.getFrameOwner", params).await?;
        let owner = Node { session: Arc::clone(around), id: owner.backend_node_id };
        let quads = self.quads(std::slice::from_ref(&owner)).await?;
        let corner = quads.first().and_then(|quads| around_first(quads));
        Ok(corner.unwrap_or_default())
    }

    /// Width and height of the viewport in CSS pixels.
    pub async fn viewport(&self) -> Result<(f64, f64), ToolError> {
        let metrics: Metrics = self.call("Page.getLayoutMetrics", json!({})).await?;
        Ok((metrics.css_visual_viewport.client_width, metrics.css_visual_viewport.client_height))
    }

    pub async fn screenshot(&self, shot: Shot) -> Result<Picture, ToolError> {
        self.touch();
        let Metrics { css_visual_viewport: view, css_content_size: content } =
            self.call("Page.getLayoutMetrics", json!({})).await?;
        let clip = match &shot {
            Shot::Viewport => {
                Rect { x: view.page_x, y: view.page_y, width: view.client_width, height: view.client_height }
            }
            Shot::FullPage => Rect { x: 0.0, y: 0.0, width: content.width, height: content.height },
            Shot::Element(node) => {
                let rect = self.rect(node).await?.filter(|rect| rect.width >= 1.0 && rect.height >= 1.0);
                let rect = rect.ok_or_else(|| {
                    ToolError::new(Kind::Conflict, "The element is not shown, so there is no picture of it.")
                        .hint("Choose an element that is visible, or take the whole page.")
                })?;
                Rect { x: rect.x + view.page_x, y: rect.y + view.page_y, ..rect }
            }
        };
        let (width, height) = (clip.width.ceil().min(LONGEST_SIDE), clip.height.ceil().min(LONGEST_SIDE));
        let params = json!({
            "format": "png",
            "captureBeyondViewport": shot != Shot::Viewport,
            "clip": {"x": clip.x, "y": clip.y, "width": width, "height": height, "scale": 1},
        });
        let captured: Captured = self.call("Page.captureScreenshot", params).await?;
        Ok(Picture { base64: captured.data, width: width as u32, height: height as u32 })
    }

    /// HTML of the main frame as it is now.
    pub async fn html(&self) -> Result<String, ToolError> {
        let script = "document.documentElement ? document.documentElement.outerHTML : ''";
        let html = self.evaluate(script, World::Isolated, Duration::from_secs(10)).await?;
        serde_json::from_value(html).map_err(ToolError::internal)
    }
}

impl From<RawAx> for AxNode {
    fn from(raw: RawAx) -> Self {
        let text = |held: Option<Held>| match held?.value {
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

fn says(error: &ToolError, part: &str) -> bool {
    error.detail.as_deref().is_some_and(|detail| detail.contains(part))
}

fn value(evaluated: Evaluated) -> Result<Value, ToolError> {
    if let Some(exception) = evaluated.exception_details {
        let text = exception
            .exception
            .and_then(|thrown| thrown.description.or_else(|| thrown.value.as_str().map(str::to_owned)));
        let text = super::rings::cut(text.unwrap_or(exception.text));
        return Err(ToolError::invalid(format!("The script failed: {text}"))
            .hint("Correct the script and try again."));
    }
    let Remote { kind, value, unserializable_value, .. } = evaluated.result;
    Ok(match (kind.as_str(), unserializable_value) {
        // NaN, Infinity and large integers, which JSON does not have.
        (_, Some(text)) => Value::String(text),
        ("undefined", None) => Value::Null,
        _ => value,
    })
}

/// The rectangle around all boxes.
fn around(quads: &[[f64; 8]]) -> Option<Rect> {
    let xs = || quads.iter().flat_map(|quad| quad.iter().step_by(2).copied());
    let ys = || quads.iter().flat_map(|quad| quad.iter().skip(1).step_by(2).copied());
    let (x, right) = (xs().reduce(f64::min)?, xs().reduce(f64::max)?);
    let (y, bottom) = (ys().reduce(f64::min)?, ys().reduce(f64::max)?);
    Some(Rect { x, y, width: right - x, height: bottom - y })
}

fn around_first(quads: &[[f64; 8]]) -> Option<(f64, f64)> {
    around(quads).map(|rect| (rect.x, rect.y))
}
