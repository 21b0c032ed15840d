//! The same task with both products: find the cheapest teapot in stock, read its material, order two, read the number.
//!
//! The strategy is the same, too: act with refs from the last reply, and take a snapshot only if the last reply does
//! not show what the next step needs.

use super::browser_products::BrowserProduct;
use super::shop_pages::{MATERIAL, ORDER_NUMBER, WANTED_ITEM};
use anyhow::Result;
use serde_json::json;

/// Octoprox returns a new page, and what an action changed, in the reply to the action.
pub fn run_with_octoprox(hub: &mut BrowserProduct, home: &str) -> Result<()> {
    let shop =
        json!({"url": format!("{home}/shop"), "output_format": "accessibility", "include_links": false});
    let page = hub.call("browser_navigate", shop)?;
    let search = page.element_ref("searchbox \"Search goods\"")?;
    let page = hub.call("browser_type", json!({"ref": search, "text": "teapot", "press_enter": true}))?;
    let (stock, sort) =
        (page.element_ref("checkbox \"In stock only\"")?, page.element_ref("combobox \"Sort by\"")?);
    hub.call("browser_click", json!({"ref": stock}))?;
    hub.call("browser_select_option", json!({"ref": sort, "values": ["Price, low to high"]}))?;
    let page = hub.call("browser_snapshot", json!({}))?;
    let item = page.element_ref(&format!("link \"{WANTED_ITEM}\""))?;
    let page = hub.call("browser_click", json!({"ref": item}))?;
    let (facts, order) =
        (page.element_ref("button \"Specifications\"")?, page.element_ref("link \"Order now\"")?);
    hub.call("browser_click", json!({"ref": facts}))?.ensure_contains(MATERIAL)?;
    let page = hub.call("browser_click", json!({"ref": order}))?;
    let fields = json!([
        {"ref": page.element_ref("textbox \"Full name\"")?, "value": "Ada Lovelace"},
        {"ref": page.element_ref("textbox \"E-mail\"")?, "value": "ada@example.org"},
        {"ref": page.element_ref("spinbutton \"Amount\"")?, "value": "2"},
        {"ref": page.element_ref("combobox \"Country\"")?, "value": "Sweden"},
        {"ref": page.element_ref("checkbox \"Wrap as a gift\"")?, "value": true},
    ]);
    let submit = page.element_ref("button \"Place order\"")?;
    hub.call("browser_fill_form", json!({"fields": fields}))?;
    let done = hub.call("browser_click", json!({"ref": submit}))?;
    done.ensure_contains(&format!("Order {ORDER_NUMBER}: 2 to Sweden, with wrapping."))
}

/// Playwright MCP writes the page after an action into a file and names it, so reading it is a separate call.
pub fn run_with_playwright(playwright: &mut BrowserProduct, home: &str) -> Result<()> {
    playwright.call("browser_navigate", json!({"url": format!("{home}/shop")}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let search = page.element_ref("searchbox \"Search goods\"")?;
    playwright.call("browser_type", json!({"target": search, "text": "teapot", "submit": true}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let (stock, sort) =
        (page.element_ref("checkbox \"In stock only\"")?, page.element_ref("combobox \"Sort by\"")?);
    playwright.call("browser_click", json!({"target": stock}))?;
    playwright.call("browser_select_option", json!({"target": sort, "values": ["Price, low to high"]}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let item = page.element_ref(&format!("link \"{WANTED_ITEM}\""))?;
    playwright.call("browser_click", json!({"target": item}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let (facts, order) =
        (page.element_ref("button \"Specifications\"")?, page.element_ref("link \"Order now\"")?);
    playwright.call("browser_click", json!({"target": facts}))?;
    playwright.call("browser_find", json!({"text": "Material"}))?.ensure_contains(MATERIAL)?;
    playwright.call("browser_click", json!({"target": order}))?;
    let page = playwright.call("browser_snapshot", json!({}))?;
    let field = |label: &str, kind: &str, words: &str, value: &str| -> Result<_> {
        Ok(json!({"target": page.element_ref(words)?, "name": label, "type": kind, "value": value}))
    };
    let fields = json!([
        field("Full name", "textbox", "textbox \"Full name\"", "Ada Lovelace")?,
        field("E-mail", "textbox", "textbox \"E-mail\"", "ada@example.org")?,
        field("Amount", "textbox", "spinbutton \"Amount\"", "2")?,
        field("Country", "combobox", "combobox \"Country\"", "Sweden")?,
        field("Wrap as a gift", "checkbox", "checkbox \"Wrap as a gift\"", "true")?,
    ]);
    let submit = page.element_ref("button \"Place order\"")?;
    playwright.call("browser_fill_form", json!({"fields": fields}))?;
    playwright.call("browser_click", json!({"target": submit}))?;
    let done = playwright.call("browser_find", json!({"text": "Order HB"}))?;
    done.ensure_contains(&format!("Order {ORDER_NUMBER}: 2 to Sweden, with wrapping."))
}
