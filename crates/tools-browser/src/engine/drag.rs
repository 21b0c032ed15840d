//! Dragging: with the mouse alone, or with the events that HTML has for it.

use super::aim::{AIM_TIMEOUT, Point, Reach, covered};
use super::{Node, Page};
use octo_toolkit::ToolError;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Moves between the two places; pages that follow the mouse want more than one.
const DRAG_STEPS: u32 = 8;
/// How long the browser may take to say that a drag has begun.
const DRAG_TIMEOUT: Duration = Duration::from_millis(700);

/// Whether the browser begins a drag of its own when the mouse moves with the button held.
const IS_DRAGGABLE: &str = r"function() {
    for (let e = this.nodeType === 1 ? this : this.parentElement; e; e = e.parentElement) if (e.draggable) return true;
    return false;
}";

/// Where something is dragged to.
#[derive(Debug, Clone)]
pub enum Goal {
    Onto(Node),
    /// So many pixels to the right and down.
    By(f64, f64),
}

impl Page {
    /// Presses an element, moves and lets go.
    pub async fn drag(&self, node: &Node, goal: &Goal, patience: Duration) -> Result<(), ToolError> {
        let end = Instant::now() + patience.min(AIM_TIMEOUT);
        let native = self.call_on(node, IS_DRAGGABLE, &[]).await? == true;
        if let Goal::Onto(onto) = goal {
            // Both must be in view, and the goal not be covered by anything but what is dragged.
            self.reach(onto, true).await?;
        }
        let from = self.aim(node, end).await?;
        self.call::<Value>("Input.setInterceptDrags", json!({"enabled": true})).await?;
        self.tab.change(|state| state.dragged = None);
        let dragged = self.carry(node, from, goal, native).await;
        self.tab.wire.post(Some(&self.tab.session), "Input.setInterceptDrags", json!({"enabled": false}));
        dragged
    }

    async fn carry(&self, node: &Node, from: Point, goal: &Goal, native: bool) -> Result<(), ToolError> {
        self.guard(node).await?;
        self.button("mousePressed", from).await?;
        let presses = self.unguard(node).await;
        if let Some(by) = presses.and_then(|presses| presses.by) {
            self.button("mouseReleased", from).await?;
            return Err(covered(&by));
        }
        let to = match goal {
            Goal::By(dx, dy) => (from.0 + dx, from.1 + dy),
            Goal::Onto(onto) => match self.reach(onto, false).await {
                Ok(Reach::At(point)) => point,
                failed => {
                    self.button("mouseReleased", from).await?;
                    return Err(match failed {
                        Ok(Reach::Covered(by)) => covered(&by),
                        Err(error) => error,
                        Ok(Reach::At(_)) => ToolError::internal("a point that is none"),
                    });
                }
            },
        };
        for step in 1..=DRAG_STEPS {
            let part = f64::from(step) / f64::from(DRAG_STEPS);
            let point = (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part);
            self.held(point).await?;
            if native && step == 2 {
                let end = Instant::now() + DRAG_TIMEOUT;
                let begun = self.tab.wait(end, |state| state.dragged.clone().ok_or(None)).await;
                if let Ok(data) = begun {
                    return self.drop_at(&data, to).await;
                }
            }
        }
        self.button("mouseReleased", to).await
    }

    /// The browser has taken over: the page hears of a drag and not of the mouse.
    async fn drop_at(&self, data: &Value, (x, y): Point) -> Result<(), ToolError> {
        for kind in ["dragEnter", "dragOver", "drop"] {
            let event = json!({"type": kind, "x": x, "y": y, "data": data});
            self.call::<Value>("Input.dispatchDragEvent", event).await?;
        }
        self.button("mouseReleased", (x, y)).await
    }

    async fn button(&self, kind: &str, (x, y): Point) -> Result<(), ToolError> {
        let held = u32::from(kind == "mousePressed");
        self.mouse(json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": held, "clickCount": 1}))
            .await
    }

    async fn held(&self, (x, y): Point) -> Result<(), ToolError> {
        self.mouse(json!({"type": "mouseMoved", "x": x, "y": y, "button": "left", "buttons": 1})).await
    }
}
