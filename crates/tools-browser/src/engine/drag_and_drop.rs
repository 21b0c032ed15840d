//! Drag and drop: with mouse events only, or with HTML drag events.

use super::actionability::{AIM_TIMEOUT, HitTest, Point, covered_error};
use super::{Node, Page};
use octo_toolkit::ToolError;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Mouse moves between start and end; pages that track the mouse need more than one.
const DRAG_STEPS: u32 = 8;
/// Maximum time for the browser to report the start of a drag.
const DRAG_TIMEOUT: Duration = Duration::from_millis(700);

/// Whether the browser starts a native drag when the mouse moves with the button held.
const IS_DRAGGABLE: &str = r"function() {
    for (let e = this.nodeType === 1 ? this : this.parentElement; e; e = e.parentElement) if (e.draggable) return true;
    return false;
}";

/// Target of a drag.
#[derive(Debug, Clone)]
pub enum DropTarget {
    Onto(Node),
    /// Pixels to the right and down.
    Offset(f64, f64),
}

impl Page {
    /// Presses an element, moves the mouse and releases it.
    pub async fn drag(&self, node: &Node, target: &DropTarget, timeout: Duration) -> Result<(), ToolError> {
        let end = Instant::now() + timeout.min(AIM_TIMEOUT);
        let native = self.call_on(node, IS_DRAGGABLE, &[]).await? == true;
        if let DropTarget::Onto(onto) = target {
            // Both must be in view, and nothing but the dragged element may cover the target.
            self.hit_test(onto, true).await?;
        }
        let from = self.move_onto(node, end).await?;
        self.call::<Value>("Input.setInterceptDrags", json!({"enabled": true})).await?;
        self.tab.change(|state| state.drag_data = None);
        let dragged = self.perform_drag(node, from, target, native).await;
        self.tab.cdp.post(Some(&self.tab.session), "Input.setInterceptDrags", json!({"enabled": false}));
        dragged
    }

    async fn perform_drag(
        &self,
        node: &Node,
        from: Point,
        target: &DropTarget,
        native: bool,
    ) -> Result<(), ToolError> {
        self.install_click_guard(node).await?;
        self.dispatch_left_button("mousePressed", from).await?;
        let presses = self.remove_click_guard(node).await;
        if let Some(by) = presses.and_then(|presses| presses.by) {
            self.dispatch_left_button("mouseReleased", from).await?;
            return Err(covered_error(&by));
        }
        let to = match target {
            DropTarget::Offset(dx, dy) => (from.0 + dx, from.1 + dy),
            DropTarget::Onto(onto) => match self.hit_test(onto, false).await {
                Ok(HitTest::At(point)) => point,
                failed => {
                    self.dispatch_left_button("mouseReleased", from).await?;
                    return Err(match failed {
                        Ok(HitTest::Covered(by)) => covered_error(&by),
                        Err(error) => error,
                        Ok(HitTest::At(_)) => ToolError::internal("unexpected hit"),
                    });
                }
            },
        };
        for step in 1..=DRAG_STEPS {
            let part = f64::from(step) / f64::from(DRAG_STEPS);
            let point = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
            self.move_while_pressed(point).await?;
            if native && step == 2 {
                let end = Instant::now() + DRAG_TIMEOUT;
                let drag_data = self.tab.wait_for(end, |state| state.drag_data.clone().ok_or(None)).await;
                if let Ok(data) = drag_data {
                    return self.drop_at(&data, to).await;
                }
            }
        }
        self.dispatch_left_button("mouseReleased", to).await
    }

    /// Completes a native drag: the page receives drag events instead of mouse events.
    async fn drop_at(&self, data: &Value, (x, y): Point) -> Result<(), ToolError> {
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = json!({"type": kind, "x": x, "y": y, "data": data});
            self.call::<Value>("Input.dispatchDragEvent", event).await?;
        }
        self.dispatch_left_button("mouseReleased", (x, y)).await
    }

    async fn dispatch_left_button(&self, kind: &str, (x, y): Point) -> Result<(), ToolError> {
        let held = u32::from(kind == "mousePressed");
        self.dispatch_mouse_event(
            json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": held, "clickCount": 1}),
        )
        .await
    }

    async fn move_while_pressed(&self, (x, y): Point) -> Result<(), ToolError> {
        self.dispatch_mouse_event(
            json!({"type": "mouseMoved", "x": x, "y": y, "button": "left", "buttons": 1}),
        )
        .await
    }
}
