//! Pages that are too large to read completely: node count and viewport contents.

use super::cdp_connection::COMMAND_TIMEOUT;
use super::script_eval::EvaluateResult;
use super::{AxNode, FrameTree, Page, ViewportSnapshot};
use octo_toolkit::ToolError;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Maximum nodes of a page that is read completely: each costs some hundred bytes of protocol messages.
const MAX_NODES: u64 = 150_000;

/// Maximum elements of a viewport snapshot.
const MAX_VIEWPORT_ELEMENTS: usize = 200;

/// Counts the nodes of a document up to the limit, including those in shadow roots.
const COUNT_NODES_JS: &str = r"(() => {
    let count = 0;
    const roots = [document];
    while (roots.length && count <= MOST) {
        const walker = document.createTreeWalker(roots.pop());
        for (let node = walker.currentNode; node && count <= MOST; node = walker.nextNode()) {
            count++;
            if (node.shadowRoot) roots.push(node.shadowRoot);
        }
    }
    return count;
})()";

/// Elements in the viewport that are actionable, headings or have text of their own, within 1.5 seconds.
const VIEWPORT_ELEMENTS_JS: &str = r"(() => {
    const end = performance.now() + 1500, found = [], facts = [];
    const roles = {a: 'link', button: 'button', select: 'combobox', textarea: 'textbox', summary: 'button'};
    const inputs = {checkbox: 'checkbox', radio: 'radio', button: 'button', submit: 'button', reset: 'button',
        image: 'button', range: 'slider', number: 'spinbutton', search: 'searchbox'};
    const words = text => (text || '').replace(/\s+/g, ' ').trim().slice(0, 120);
    const next = (e, inside) => {
        if (inside && e.firstElementChild) return e.firstElementChild;
        while (e && !e.nextElementSibling) e = e.parentElement;
        return e && e.nextElementSibling;
    };
    let inside = true, below = 0;
    for (let e = document.documentElement, at = 0; e && found.length < MOST && below < 2000; e = next(e, inside), at++) {
        if (at % 100 === 0 && performance.now() > end) break;
        const tag = e.localName, box = e.getBoundingClientRect();
        inside = box.width > 0 || box.height > 0 || getComputedStyle(e).display !== 'none';
        // After this many elements below the viewport, the rest is below it, too.
        below = box.top >= innerHeight ? below + 1 : 0;
        if (box.width < 1 || box.height < 1 || box.bottom <= 0 || box.right <= 0 || box.top >= innerHeight || box.left >= innerWidth) continue;
        const level = /^h[1-6]$/.test(tag) ? +tag[1] : 0;
        const acts = (tag in roles && (tag !== 'a' || e.hasAttribute('href'))) || tag === 'input'
            || e.hasAttribute('onclick') || e.getAttribute('role') === 'button';
        const first = e.firstChild, own = first && first.nodeType === 3 && first.data.trim();
        if (!own && !level && !acts) continue;
        const label = e.labels && e.labels[0] && e.labels[0].textContent;
        const role = level ? 'heading' : tag === 'input' ? inputs[e.type] || 'textbox' : roles[tag] || (acts ? 'button' : 'paragraph');
        found.push(e);
        facts.push([role, words(e.getAttribute('aria-label') || label || e.alt || (tag === 'input' ? e.placeholder : e.textContent) || e.title), level, !!acts]);
    }
    return {found, facts: JSON.stringify(facts)};
})()";

#[derive(Deserialize)]
struct DomCounters {
    nodes: u64,
}

impl Page {
    /// Node count of a page that is too large to read; None if it can be read.
    pub async fn oversized_node_count(&self) -> Result<Option<u64>, ToolError> {
        // All nodes of the process, which is quick to query; some may be detached.
        let DomCounters { nodes } = self.call("Memory.getDOMCounters", json!({})).await?;
        if nodes <= MAX_NODES {
            return Ok(None);
        }
        let script = COUNT_NODES_JS.replace("MOST", &MAX_NODES.to_string());
        let document_nodes = self.evaluate(&script, super::World::Isolated, Duration::from_secs(5)).await?;
        Ok(document_nodes.as_u64().is_some_and(|here| here > MAX_NODES).then_some(nodes))
    }

    /// Viewport of a page that cannot be read completely.
    pub async fn viewport_snapshot(&self) -> Result<ViewportSnapshot, ToolError> {
        self.touch();
        let session = &self.tab.session;
        let context = self.isolated_world(session, &self.tab.id, COMMAND_TIMEOUT).await?;
        let params = json!({"expression": VIEWPORT_ELEMENTS_JS.replace("MOST", &MAX_VIEWPORT_ELEMENTS.to_string()), "contextId": context});
        let evaluated: EvaluateResult = self.call("Runtime.evaluate", params).await?;
        let object_id = evaluated
            .result
            .object_id
            .ok_or_else(|| ToolError::internal("viewport script returned no object"))?;
        let params = json!({"objectId": object_id, "ownProperties": true});
        let listed: Value = self.call("Runtime.getProperties", params).await?;
        let part = |name: &str, of: &str| {
            let entries = listed.get("result")?.as_array()?;
            let entry = entries.iter().find(|entry| entry.get("name").is_some_and(|known| known == name))?;
            entry.get("value")?.get(of)?.as_str().map(str::to_owned)
        };
        let nodes = match part("found", "objectId") {
            Some(list) => self.resolve_nodes(session, &list).await?,
            None => Vec::new(),
        };
        let facts: Vec<(String, String, u64, bool)> = match part("facts", "value") {
            Some(facts) => serde_json::from_str(&facts).map_err(ToolError::internal)?,
            None => Vec::new(),
        };
        self.tab.cdp.post(Some(session), "Runtime.releaseObject", json!({"objectId": object_id}));
        let mut all =
            vec![AxNode { id: "0".to_owned(), role: "RootWebArea".to_owned(), ..AxNode::default() }];
        let mut clickable = Vec::new();
        for (node, (role, name, level, acts)) in nodes.iter().zip(facts) {
            let id = node.id.to_string();
            if let Some(root) = all.first_mut() {
                root.children.push(id.clone());
            }
            let text = AxNode {
                id: format!("{id}t"),
                parent: Some(id.clone()),
                role: "StaticText".to_owned(),
                name: name.clone(),
                ..AxNode::default()
            };
            let mut properties = Vec::new();
            if level > 0 {
                properties.push(("level".to_owned(), level.into()));
            }
            if acts {
                properties.push(("focusable".to_owned(), true.into()));
                clickable.push(node.clone());
            }
            let (children, parent) = (vec![text.id.clone()], Some("0".to_owned()));
            let name = if acts || level > 0 { name } else { String::new() };
            all.push(AxNode {
                id,
                parent,
                children,
                role,
                name,
                properties,
                backend: Some(node.id),
                ..AxNode::default()
            });
            all.push(text);
        }
        let (url, frame) = (self.tab.state().url.clone(), self.tab.id.clone());
        let tree = FrameTree { session: session.clone(), frame, url, owner: None, nodes: all };
        Ok(ViewportSnapshot { tree, visible: nodes, clickable })
    }
}
