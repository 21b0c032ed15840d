//! User input: mouse and keyboard.

use super::actionability::{AIM_INTERVAL, AIM_TIMEOUT, HitTest, covered_error, moving_error};
use super::keyboard::{Key, KeyCombination};
use super::{Button, Node, Page};
use octo_toolkit::{Kind, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Prepares a field for text; returns whether text can be typed, or sets the value itself where a keyboard could not.
const FILL_JS: &str = r"function(text, clear) {
    const field = this.nodeType === 1 ? this : this.parentElement;
    if (!field || !field.isConnected) return 'gone';
    const tag = field.tagName.toLowerCase();
    if (field.matches(':disabled')) return 'disabled';
    if (field.readOnly) return 'readonly';
    const type = tag === 'input' ? field.type : '';
    if (type === 'file') return 'file';
    if (['checkbox', 'radio', 'submit', 'button', 'image', 'reset', 'hidden'].includes(type)) return 'no field';
    if (tag === 'select') return 'select';
    field.scrollIntoView({block: 'nearest', behavior: 'instant'});
    field.focus();
    if (['date', 'time', 'datetime-local', 'month', 'week', 'color', 'range'].includes(type)) {
        Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, text);
        if (field.value !== text) return 'value';
        field.dispatchEvent(new Event('input', {bubbles: true}));
        field.dispatchEvent(new Event('change', {bubbles: true}));
        return 'done';
    }
    if (tag === 'input' || tag === 'textarea') {
        if (clear) field.select();
        else if (field.setSelectionRange) try { field.setSelectionRange(field.value.length, field.value.length); } catch {}
        return clear && field.value ? 'filled' : 'empty';
    }
    if (!field.isContentEditable) return 'no field';
    const range = document.createRange();
    range.selectNodeContents(field);
    if (!clear) range.collapse(false);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    return clear && field.textContent ? 'filled' : 'empty';
}";

const SELECT_JS: &str = r"function(values) {
    if (!this.isConnected) return {state: 'gone'};
    if (this.tagName !== 'SELECT') return {state: 'no select'};
    if (this.matches(':disabled')) return {state: 'disabled'};
    const options = Array.from(this.options), text = o => (o.label || o.textContent).trim();
    const chosen = [];
    for (const value of values) {
        const option = options.find(o => o.value === value) || options.find(o => text(o) === value.trim());
        if (!option) return {state: 'no option', value, options: options.slice(0, 30).map(text)};
        if (option.disabled) return {state: 'disabled'};
        chosen.push(option);
    }
    if (chosen.length > 1 && !this.multiple) return {state: 'one'};
    this.focus();
    for (const option of options) option.selected = chosen.includes(option);
    this.dispatchEvent(new Event('input', {bubbles: true}));
    this.dispatchEvent(new Event('change', {bubbles: true}));
    return {state: 'ok', values: Array.from(this.selectedOptions).map(o => o.value)};
}";

const FILES_JS: &str = "function() { return [...this.files].map(file => [file.name, file.size]); }";

#[derive(Deserialize)]
struct SelectResult {
    state: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    options: Vec<String>,
}

impl Page {
    /// Clicks an element and nothing else: a press that would hit another one is stopped and retried at the element's
    /// new position.
    pub async fn click(
        &self,
        node: &Node,
        button: Button,
        count: u32,
        timeout: Duration,
    ) -> Result<(), ToolError> {
        let end = Instant::now() + timeout.min(AIM_TIMEOUT);
        loop {
            let point = self.move_onto(node, end).await?;
            self.install_click_guard(node).await?;
            let pressed = self.press_at(point, button, count).await;
            // Gone with its page, which the click has left.
            let Some(presses) = self.remove_click_guard(node).await else { return pressed };
            pressed?;
            match presses.by {
                None if presses.met > 0 => return Ok(()),
                // The press went to another frame.
                None if Instant::now() >= end => return Err(moving_error()),
                Some(by) if presses.met > 0 => {
                    return Err(ToolError::new(
                        Kind::Conflict,
                        format!("The first click moved the page, so the next one would have hit `{by}`."),
                    )
                    .hint("Take a snapshot with browser_snapshot, and click again if it is still needed."));
                }
                Some(by) if Instant::now() >= end => return Err(covered_error(&by)),
                _ => tokio::time::sleep(AIM_INTERVAL).await,
            }
        }
    }

    /// Clicks whatever is at a point of the viewport.
    pub async fn click_at(&self, point: (f64, f64), button: Button, count: u32) -> Result<(), ToolError> {
        self.touch();
        self.move_to(point).await?;
        self.press_at(point, button, count).await
    }

    async fn press_at(&self, (x, y): (f64, f64), button: Button, count: u32) -> Result<(), ToolError> {
        let (name, bit) = match button {
            Button::Left => ("left", 1),
            Button::Right => ("right", 2),
        };
        for nth in 1..=count.clamp(1, 3) {
            let event = |kind: &str, held: u32| json!({"type": kind, "x": x, "y": y, "button": name, "buttons": held, "clickCount": nth});
            self.dispatch_mouse_event(event("mousePressed", bit)).await?;
            let released = self.dispatch_mouse_event(event("mouseReleased", 0)).await;
            // A click may close its own tab.
            if self.tab.check().is_ok() {
                released?;
            }
        }
        Ok(())
    }

    /// Moves the mouse over an element and follows it if that moves the page.
    pub async fn hover(&self, node: &Node, timeout: Duration) -> Result<(), ToolError> {
        let end = Instant::now() + timeout.min(AIM_TIMEOUT);
        loop {
            let point = match self.hit_test(node, true).await? {
                HitTest::At(point) => point,
                HitTest::Covered(by) if Instant::now() >= end => return Err(covered_error(&by)),
                HitTest::Covered(_) => {
                    tokio::time::sleep(AIM_INTERVAL).await;
                    continue;
                }
            };
            self.move_to(point).await?;
            // It may be gone or covered by what it has opened; it was hovered anyway.
            if self.is_hovered(node).await || !self.is_attached(node).await {
                return Ok(());
            }
            if Instant::now() >= end {
                return Err(moving_error());
            }
        }
    }

    pub async fn focus(&self, node: &Node) -> Result<(), ToolError> {
        self.touch();
        let params = json!({"backendNodeId": node.id});
        match self.call_in::<Value>(&node.session, "DOM.focus", params).await {
            Ok(_) => Ok(()),
            Err(error) if error.kind == Kind::Internal => {
                Err(ToolError::invalid("The element cannot be focused.")
                    .hint("Choose a field, a button or a link."))
            }
            Err(error) => Err(error),
        }
    }

    /// Focuses a field, optionally clears it, and inserts text at once (`input` and `change` handlers see it).
    pub async fn fill(&self, node: &Node, text: &str, clear_first: bool) -> Result<(), ToolError> {
        self.touch();
        let state = self.call_on(node, FILL_JS, &[text.into(), clear_first.into()]).await?;
        match state.as_str().unwrap_or_default() {
            "done" => Ok(()),
            "filled" if text.is_empty() => self.press("Delete").await,
            "empty" if text.is_empty() => Ok(()),
            "filled" | "empty" => {
                self.call::<Value>("Input.insertText", json!({"text": text})).await.map(drop)
            }
            other => Err(element_state_error(other)),
        }
    }

    /// Types into the focused element, one key event per character.
    pub async fn type_text(&self, text: &str) -> Result<(), ToolError> {
        self.touch();
        for sign in text.chars().filter(|sign| *sign != '\r') {
            match Key::from_char(sign) {
                Some(key) => {
                    self.call::<Value>("Input.dispatchKeyEvent", key.event(true, 0)).await?;
                    self.call::<Value>("Input.dispatchKeyEvent", key.event(false, 0)).await?;
                }
                None => drop(self.call::<Value>("Input.insertText", json!({"text": sign})).await?),
            }
        }
        Ok(())
    }

    /// Presses a key or a combination, such as `Enter`, `ArrowDown`, `a`, `Control+A`, `Shift+Tab`.
    pub async fn press(&self, key: &str) -> Result<(), ToolError> {
        self.touch();
        let KeyCombination { modifiers, key } = KeyCombination::parse(key)?;
        let mut modifier_bits = 0;
        for (bit, modifier) in &modifiers {
            modifier_bits |= bit;
            self.call::<Value>("Input.dispatchKeyEvent", modifier.event(true, modifier_bits)).await?;
        }
        let pressed = self.call::<Value>("Input.dispatchKeyEvent", key.event(true, modifier_bits)).await;
        // A key may close its own tab, as a click may.
        if self.tab.check().is_err() {
            return Ok(());
        }
        pressed?;
        self.call::<Value>("Input.dispatchKeyEvent", key.event(false, modifier_bits)).await?;
        for (bit, modifier) in modifiers.iter().rev() {
            modifier_bits &= !bit;
            self.call::<Value>("Input.dispatchKeyEvent", modifier.event(false, modifier_bits)).await?;
        }
        Ok(())
    }

    /// Selects options of a `<select>` by value or label, and returns the selected values.
    pub async fn select(&self, node: &Node, values: &[String]) -> Result<Vec<String>, ToolError> {
        self.touch();
        let found = self.call_on(node, SELECT_JS, &[json!(values)]).await?;
        let found: SelectResult = serde_json::from_value(found).map_err(ToolError::internal)?;
        match found.state.as_str() {
            "ok" => Ok(found.values),
            "no option" => Err(ToolError::not_found(format!("Option not found: `{}`.", found.value))
                .hint(format!("The options are: {}.", found.options.join(", ")))),
            "one" => Err(ToolError::invalid("Only one option can be selected here.").hint("Use one value.")),
            other => Err(element_state_error(other)),
        }
    }

    /// Scrolls an element into view.
    pub async fn scroll_into_view(&self, node: &Node) -> Result<(), ToolError> {
        self.touch();
        let script = "function() { (this.nodeType === 1 ? this : this.parentElement)?.scrollIntoView({block: 'center', behavior: 'instant'}); }";
        self.call_on(node, script, &[]).await.map(drop)
    }

    /// Turns the mouse wheel over the middle of the viewport, or over an element.
    pub async fn scroll(&self, over: Option<&Node>, dx: f64, dy: f64) -> Result<(), ToolError> {
        self.touch();
        let (x, y) = match over {
            Some(node) => match self.hit_test(node, false).await? {
                HitTest::At(point) => point,
                HitTest::Covered(by) => return Err(covered_error(&by)),
            },
            None => {
                let (width, height) = self.viewport().await?;
                (width / 2.0, height / 2.0)
            }
        };
        self.dispatch_mouse_event(json!({"type": "mouseWheel", "x": x, "y": y, "deltaX": dx, "deltaY": dy}))
            .await
    }

    /// Sets the files (name and bytes, read by the tool from the workspace) of an `<input type=file>`, and returns the
    /// names and sizes of the files it has then.
    pub async fn upload(
        &self,
        node: &Node,
        files: Vec<(String, Vec<u8>)>,
    ) -> Result<Vec<(String, u64)>, ToolError> {
        self.touch();
        let file_count_js = "function() { return this.tagName === 'INPUT' && this.type === 'file' ? (this.multiple ? 2 : 1) : 0; }";
        let max_files = self.call_on(node, file_count_js, &[]).await?.as_u64().unwrap_or(0);
        if max_files == 0 {
            return Err(
                ToolError::invalid("The element does not accept files.").hint("Choose an <input type=file>.")
            );
        }
        if max_files == 1 && files.len() > 1 {
            return Err(ToolError::invalid("The field accepts only one file.").hint("Use one file."));
        }
        let mut staged = Vec::new();
        for (name, bytes) in files {
            let path = self.browser.launched.stage_upload(&name, bytes).await?;
            staged.push(path.to_string_lossy().into_owned());
        }
        let params = json!({"backendNodeId": node.id, "files": staged});
        // The field may be replaced as soon as it has changed.
        let object = self.resolve_object(node).await?;
        self.call_in::<Value>(&node.session, "DOM.setFileInputFiles", params).await?;
        let held_files = self.call_object(node, &object, FILES_JS, &[]).await?;
        serde_json::from_value(held_files).map_err(ToolError::internal)
    }
}

pub(super) fn element_state_error(state: &str) -> ToolError {
    match state {
        "gone" => ToolError::not_found("The element is no longer on the page.")
            .hint("Take a new snapshot and use its refs."),
        "disabled" => ToolError::new(Kind::Conflict, "The element is disabled.")
            .hint("Fill in the required fields first, or choose another element."),
        "readonly" => {
            ToolError::new(Kind::Conflict, "The input field is read-only.").hint("Choose another field.")
        }
        "hidden" | "outside" => ToolError::new(Kind::Conflict, "The element is not shown.")
            .hint("Open the menu or section that contains it first."),
        "file" => ToolError::invalid("The element is a file field.").hint("Use browser_upload with its ref."),
        "select" => {
            ToolError::invalid("The element is a list of options.").hint("Use browser_select_option.")
        }
        "no select" => {
            ToolError::invalid("The element is not a <select>.").hint("Click it and its option instead.")
        }
        "value" => ToolError::invalid("The field does not accept this value.")
            .hint("Dates are YYYY-MM-DD, times HH:MM, colours #rrggbb, ranges a number."),
        _ => ToolError::invalid("The element does not accept text.").hint("Choose a text field."),
    }
}
