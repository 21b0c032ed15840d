//! Finds the point where the mouse hits an element, and guards against hitting another one.
//!
//! Moving the mouse may change the page: a menu closes and everything below it moves up. So an element is located again
//! after the move, and a press that would hit another element is stopped before the page sees it.

use super::geometry::{BoxModelResult, bounding_rect};
use super::{Node, Page, World};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Maximum time that an element may be covered or moving.
pub(super) const AIM_TIMEOUT: Duration = Duration::from_secs(2);
/// Retry interval.
pub(super) const AIM_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time for a page to report what a press has hit.
const GUARD_TIMEOUT: Duration = Duration::from_secs(1);
/// Distance in pixels within which two points count as the same.
const POINT_TOLERANCE_PX: f64 = 2.0;

/// Shared by the functions below: `name` for messages, and `meets`, whether a press on `hit` is one on `target`.
const SHARED_JS: &str = r"
    const name = e => e.tagName ? e.tagName.toLowerCase() + (e.id ? '#' + e.id : '')
        + (e.className && typeof e.className === 'string' && e.className.trim() ? '.' + e.className.trim().split(/\s+/)[0] : '') : 'the page';
    const parents = e => e.parentElement || (e.getRootNode().host ?? null);
    const meets = (target, hit) => {
        for (let e = hit; e; e = e.nodeType === 1 ? parents(e) : e.parentElement) if (e === target) return true;
        const label = target.closest('label');
        if (label && label.contains(hit)) return true;
        if (target.labels && Array.from(target.labels).some(l => l.contains(hit))) return true;
        // Elements that are transparent to the mouse, or drawn by their container, are pressed through the container.
        const through = getComputedStyle(target).pointerEvents === 'none' || target.ownerSVGElement || target.localName === 'option';
        if (through) for (let e = target; e; e = parents(e)) if (e === hit) return true;
        return false;
    };
    const at = (root, x, y) => root.elementFromPoint ? root.elementFromPoint(x, y) : null;
    // The element that covers a frame, as far as the parent documents are accessible.
    const veil = (view, x, y) => {
        for (let frame; (frame = view.frameElement); view = view.parent) {
            const box = frame.getBoundingClientRect(), style = getComputedStyle(frame);
            x += box.left + frame.clientLeft + parseFloat(style.paddingLeft);
            y += box.top + frame.clientTop + parseFloat(style.paddingTop);
            const hit = at(frame.getRootNode(), x, y);
            if (hit && hit !== frame) return name(hit);
        }
        return null;
    };
";

// A function may run in the world of an outer frame, so window properties are read from the element's own window.

/// Scrolls an element into view, waits until it stops moving, and returns the point where the mouse hits it. Runs in
/// the isolated world, so that pages cannot forge the result.
const REACH_JS: &str = r"async function(rest) {
    SHARED
    if (!this.isConnected) return {state: 'gone'};
    const target = this.nodeType === 1 ? this : this.parentElement;
    if (!target) return {state: 'gone'};
    if (target.matches(':disabled')) return {state: 'disabled'};
    const view = target.ownerDocument.defaultView;
    if (!view) return {state: 'gone'};
    const boxOf = () => Array.from(target.getClientRects()).find(r => r.width > 0 && r.height > 0);
    const inView = (x, y) => x >= 0 && y >= 0 && x < view.innerWidth && y < view.innerHeight;
    let box = boxOf();
    if (box && !inView(box.left + box.width / 2, box.top + box.height / 2)) {
        target.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
        box = boxOf();
    }
    if (rest) {
        const frame = () => new Promise(done => { const last = setTimeout(done, 60); view.requestAnimationFrame(() => { clearTimeout(last); done() }) });
        const same = (a, b) => a && b && Math.abs(a.left - b.left) < 1 && Math.abs(a.top - b.top) < 1;
        for (let tries = 0; tries < 20 && target.isConnected; tries++) {
            await frame();
            const next = boxOf(), rests = (!box && !next) || same(box, next);
            box = next;
            if (rests) break;
        }
    }
    if (!target.isConnected) return {state: 'gone'};
    if (!box || getComputedStyle(target).visibility === 'hidden') return {state: 'hidden'};
    const whole = target.getBoundingClientRect(), main = view === view.top;
    const found = (x, y) => ({state: 'ok', x, y, left: whole.left, top: whole.top, main});
    const places = [[.5, .5], [.25, .5], [.75, .5], [.5, .25], [.5, .75], [.1, .5], [.9, .5]];
    let first = null, over = null;
    for (const [across, down] of places) {
        const x = box.left + box.width * across, y = box.top + box.height * down;
        if (!inView(x, y)) continue;
        const hit = at(target.getRootNode(), x, y);
        first ??= found(x, y);
        if (!hit) continue;
        over = over ?? hit;
        if (!meets(target, hit)) continue;
        const by = veil(view, x, y);
        return by ? {state: 'covered', by} : found(x, y);
    }
    if (over) return {state: 'covered', by: name(over)};
    return first ?? {state: 'outside'};
}";

/// Whether the mouse hits a frame at a point.
const FRAME_HIT_JS: &str = r"function(x, y) {
    SHARED
    const hit = at(this.getRootNode(), x, y);
    return hit && hit !== this && !meets(this, hit) ? name(hit) : veil(this.ownerDocument.defaultView, x, y);
}";

/// Lets presses reach the element and stops all others, until the guard is removed.
const GUARD_JS: &str = r"function() {
    SHARED
    const target = this.nodeType === 1 ? this : this.parentElement;
    if ((target.closest('label')?.control ?? target).type === 'file') return 'file';
    const kinds = ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'dblclick', 'auxclick', 'contextmenu'];
    const guard = {met: 0, by: null};
    let stop = false;
    const listen = event => {
        if (!event.isTrusted) return;
        if (event.type === 'pointerdown') {
            const hit = event.composedPath()[0];
            stop = !(hit?.nodeType === 1 && meets(target, hit));
            if (stop) guard.by ??= name(hit); else guard.met++;
        }
        if (stop) { event.preventDefault(); event.stopImmediatePropagation(); }
    };
    globalThis.octoproxGuard?.end();
    const view = target.ownerDocument.defaultView;
    for (const kind of kinds) view.addEventListener(kind, listen, true);
    const last = setTimeout(() => guard.end(), 10000);
    guard.end = () => { clearTimeout(last); for (const kind of kinds) view.removeEventListener(kind, listen, true); };
    globalThis.octoproxGuard = guard;
    return 'ok';
}";

const UNGUARD_JS: &str = r"function() {
    const guard = globalThis.octoproxGuard;
    delete globalThis.octoproxGuard;
    guard?.end();
    return guard ? {met: guard.met, by: guard.by} : null;
}";

const IS_HOVERED_JS: &str =
    "function() { return (this.nodeType === 1 ? this : this.parentElement).matches(':hover'); }";

#[derive(Deserialize)]
struct ReachResult {
    state: String,
    #[serde(default)]
    by: String,
    #[serde(default)]
    x: f64,
    #[serde(default)]
    y: f64,
    #[serde(default)]
    left: f64,
    #[serde(default)]
    top: f64,
    #[serde(default)]
    main: bool,
}

/// Report of the click guard.
#[derive(Deserialize)]
pub(super) struct GuardReport {
    /// Presses that hit the element.
    pub met: u32,
    /// Element that another press would have hit.
    pub by: Option<String>,
}

/// Whether the mouse can reach an element.
pub(super) enum HitTest {
    At(Point),
    /// Name of the covering element.
    Covered(String),
}

/// Point in the viewport of the main frame.
pub type Point = (f64, f64);

impl Page {
    /// Point where the mouse hits an element now. With `rest`, waits until it stops moving.
    pub(super) async fn hit_test(&self, node: &Node, rest: bool) -> Result<HitTest, ToolError> {
        self.touch();
        // The script scrolls within the element's frame; this scrolls the frame itself into view.
        let params = json!({"backendNodeId": node.id});
        let _ = self.call_in::<Value>(&node.session, "DOM.scrollIntoViewIfNeeded", params).await;
        let reached = self.call_on(node, &with_shared(REACH_JS), &[rest.into()]).await?;
        let reached: ReachResult = serde_json::from_value(reached).map_err(ToolError::internal)?;
        match reached.state.as_str() {
            "ok" if reached.main => return Ok(HitTest::At((reached.x, reached.y))),
            "ok" => {}
            "covered" => return Ok(HitTest::Covered(reached.by)),
            other => return Err(super::page_input::element_state_error(other)),
        }
        let (left, top) = self.element_origin(node).await?;
        let point = (reached.x - reached.left + left, reached.y - reached.top + top);
        Ok(self.covering_element(node, point).await?.map_or(HitTest::At(point), HitTest::Covered))
    }

    /// Top left corner of an element in the viewport of the main frame.
    async fn element_origin(&self, node: &Node) -> Result<Point, ToolError> {
        let params = json!({"backendNodeId": node.id});
        let BoxModelResult { model } = self.call_in(&node.session, "DOM.getBoxModel", params).await?;
        let rect =
            bounding_rect(&[model.border]).ok_or_else(|| super::page_input::element_state_error("hidden"))?;
        let (dx, dy) = self.frame_offset(&node.session).await?;
        Ok((rect.x + dx, rect.y + dy))
    }

    /// Element that covers the frames around an element at a point, for frames in other processes.
    async fn covering_element(&self, node: &Node, (x, y): Point) -> Result<Option<String>, ToolError> {
        let mut session = node.session.clone();
        while let Some(owner) = self.frame_owner(&session).await? {
            let (dx, dy) = self.frame_offset(&owner.session).await?;
            let by =
                self.call_on(&owner, &with_shared(FRAME_HIT_JS), &[json!(x - dx), json!(y - dy)]).await?;
            if let Some(by) = by.as_str() {
                return Ok(Some(by.to_owned()));
            }
            session = owner.session;
        }
        Ok(None)
    }

    /// Moves the mouse onto an element until it stays there; returns the point.
    pub(super) async fn move_onto(&self, node: &Node, end: Instant) -> Result<Point, ToolError> {
        loop {
            let failure = match self.hit_test(node, true).await? {
                HitTest::Covered(by) => covered_error(&by),
                HitTest::At(point) => {
                    self.move_to(point).await?;
                    match self.hit_test(node, false).await? {
                        HitTest::At(now) if is_same_point(point, now) => return Ok(point),
                        HitTest::At(_) => moving_error(),
                        HitTest::Covered(by) => covered_error(&by),
                    }
                }
            };
            if Instant::now() >= end {
                return Err(failure);
            }
            tokio::time::sleep(AIM_INTERVAL).await;
        }
    }

    /// Whether the mouse is over an element.
    pub(super) async fn is_hovered(&self, node: &Node) -> bool {
        self.call_on(node, IS_HOVERED_JS, &[]).await.is_ok_and(|over| over == true)
    }

    /// Name of the element at a point of the viewport.
    pub async fn describe_at(&self, (x, y): Point) -> Result<String, ToolError> {
        let script = format!("(() => {{ {SHARED_JS} return name(at(document, {x}, {y}) ?? document); }})()");
        let name = self.evaluate(&script, World::Isolated, Duration::from_secs(2)).await?;
        Ok(super::ring_buffer::truncate(name.as_str().unwrap_or("the page").to_owned()))
    }

    pub(super) async fn install_click_guard(&self, node: &Node) -> Result<(), ToolError> {
        match self.call_on(node, &with_shared(GUARD_JS), &[]).await? {
            Value::String(state) if state != "ok" => Err(super::page_input::element_state_error(&state)),
            _ => Ok(()),
        }
    }

    /// Removes the guard; None if the page has navigated or does not respond.
    pub(super) async fn remove_click_guard(&self, node: &Node) -> Option<GuardReport> {
        let report = async {
            match self.call_on(node, UNGUARD_JS, &[]).await {
                Ok(presses) => Some(presses),
                // The element may be gone while its document still exists.
                Err(_) => {
                    let script = format!("({UNGUARD_JS})()");
                    self.evaluate(&script, World::Isolated, GUARD_TIMEOUT).await.ok()
                }
            }
        };
        let report = tokio::time::timeout(GUARD_TIMEOUT, report).await.ok()??;
        serde_json::from_value(report).ok()
    }

    pub(super) async fn move_to(&self, (x, y): Point) -> Result<(), ToolError> {
        self.dispatch_mouse_event(json!({"type": "mouseMoved", "x": x, "y": y})).await
    }

    pub(super) async fn dispatch_mouse_event(&self, event: Value) -> Result<(), ToolError> {
        self.call::<Value>("Input.dispatchMouseEvent", event).await.map(drop)
    }
}

fn with_shared(function: &str) -> String {
    function.replacen("SHARED", SHARED_JS, 1)
}

fn is_same_point(one: Point, other: Point) -> bool {
    (one.0 - other.0).abs() <= POINT_TOLERANCE_PX && (one.1 - other.1).abs() <= POINT_TOLERANCE_PX
}

pub(super) fn covered_error(by: &str) -> ToolError {
    ToolError::new(Kind::Conflict, format!("The element is covered by `{by}`."))
        .hint("Close the covering element (a dialog, a banner), or press Escape, and try again.")
}

pub(super) fn moving_error() -> ToolError {
    ToolError::new(Kind::Conflict, "The element keeps moving.")
        .hint("Wait until the page is idle with browser_wait, or focus the element and press Enter.")
}
