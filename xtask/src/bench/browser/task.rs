//! One task with both: find the cheapest teapot that is in stock, see what it is made of, order two, read the number.
//!
//! The same strategy for both: act with refs from what was seen last, and look only where the last reply does not show
//! what the next step needs.

use super::products::Product;
use super::shop::{MATERIAL, ORDER, WANTED};
use anyhow::Result;
use serde_json::json;

/// Ours shows a new page, and what an action changed, in the reply to the action.
pub fn ours(hub: &mut Product, home: &str) -> Result<()> {
    let shop =
        json!({"url": format!("{home}/shop"), "output_format": "accessibility", "include_links": false});
    let page = hub.call("browser_navigate", shop)?;
    let search = page.reference("searchbox \"Search goods\"")?;
    let page = hub.call("browser_type", json!({"ref": search, "text": "teapot", "press_enter": true}))?;
    let (stock, sort) =
        (page.reference("checkbox \"In stock only\"")?, page.reference("combobox \"Sort by\"")?);
    hub.call("browser_click", json!({"ref": stock}))?;
    hub.call("browser_select_option", json!({"ref": sort, "values": ["Price, low to high"]}))?;
    let page = hub.call("browser_snapshot", json!({}))?;
    let item = page.reference(&format!("link \"{WANTED}\""))?;
    let page = hub.call("browser_click", json!({"ref": item}))?;
    let (facts, order) =
        (page.reference("button \"Specifications\"")?, page.reference("link \"Order now\"")?);
    hub.call("browser_click", json!({"ref": facts}))?.must_say(MATERIAL)?;
    let page = hub.call("browser_click", json!({"ref": order}))?;
    let fields = json!([
        {"ref": page.reference("textbox \"Full name\"")?, "value": "Ada Lovelace"},
        {"ref": page.reference("textbox \"E-mail\"")?, "value": "ada@example.org"},
        {"ref": page.reference("spinbutton \"Amount\"")?, "value": "2"},
        {"ref": page.reference("combobox \"Country\"")?, "value": "Sweden"},
        {"ref": page.reference("checkbox \"Wrap as a gift\"")?, "value": true},
    ]);
    let submit = page.reference("button \"Place order\"")?;
    hub.call("browser_fill_form", json!({"fields": fields}))?;
    let done = hub.call("browser_click", json!({"ref": submit}))?;
    done.must_say(&format!("Order {ORDER}: 2 to Sweden, with wrapping."))
}

/// Playwright MCP writes the page after an action into a file and names it, so that looking is a call of its own.
pub fn theirs(playwright: &mut Product, home: &str) -> Result<()> {
    playwright.call("browser_navigate", json!({"url": format!("{home}/shop")}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let search = page.reference("searchbox \"Search goods\"")?;
    playwright.call("browser_type", json!({"target": search, "text": "teapot", "submit": true}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let (stock, sort) =
        (page.reference("checkbox \"In stock only\"")?, page.reference("combobox \"Sort by\"")?);
    playwright.call("browser_click", json!({"target": stock}))?;
    playwright.call("browser_select_option", json!({"target": sort, "values": ["Price, low to high"]}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let item = page.reference(&format!("link \"{WANTED}\""))?;
    playwright.call("browser_click", json!({"target": item}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let (facts, order) =
        (page.reference("button \"Specifications\"")?, page.reference("link \"Order now\"")?);
    playwright.call("browser_click", json!({"target": facts}))?;
    playwright.call("browser_find", json!({"text": "Material"}))?.must_say(MATERIAL)?;
    playwright.call("browser_click", json!({"target": order}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let field = |label: &str, kind: &str, words: &str, value: &str| -> Result<_> {
        Ok(json!({"target": page.reference(words)?, "name": label, "type": kind, "value": value}))
    };
    let fields = json!([
        field("Full name", "textbox", "textbox \"Full name\"", "Ada Lovelace")?,
        field("E-mail", "textbox", "textbox \"E-mail\"", "ada@example.org")?,
        field("Amount", "textbox", "spinbutton \"Amount\"", "2")?,
        field("Country", "combobox", "combobox \"Country\"", "Sweden")?,
        field("Wrap as a gift", "checkbox", "checkbox \"Wrap as a gift\"", "true")?,
    ]);
    let submit = page.reference("button \"Place order\"")?;
    playwright.call("browser_fill_form", json!({"fields": fields}))?;
    playwright.call("browser_click", json!({"target": submit}))?;
    let done = playwright.call("browser_find", json!({"text": "Order HB"}))?;
    done.must_say(&format!("Order {ORDER}: 2 to Sweden, with wrapping."))
}
