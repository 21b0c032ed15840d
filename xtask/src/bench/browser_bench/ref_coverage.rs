//! Checks that every actionable element in the viewport has a ref in the snapshot.

use super::browser_products::{BrowserProduct, Reply};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Stores the usable elements in view in document order and returns their names.
///
/// In view means a box of at least one pixel within the window, neither hidden nor inert. The name is the accessible
/// one: label, text, image, title; empty for an icon that is only drawn by styles.
const IN_VIEW_SCRIPT: &str = r#"
window.inView = [...document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary,[role=button],[role=tab],[contenteditable]')]
  .filter(e => e.checkVisibility({visibilityProperty: true, opacityProperty: true}) && !e.closest('[inert],[aria-hidden=true]'))
  .filter(e => [...e.getClientRects()].some(r => r.width >= 1 && r.height >= 1
    && Math.min(r.bottom, innerHeight) - Math.max(r.top, 0) >= 1 && Math.min(r.right, innerWidth) - Math.max(r.left, 0) >= 1));
return window.inView.map(e => (e.ariaLabel || e.labels?.[0]?.textContent || e.innerText || e.querySelector('img')?.alt
  || e.title || e.placeholder || '').replace(/\s+/g, ' ').trim());"#;

/// Number of refs that are checked to lead to the right element.
const REFS_TO_TRY: usize = 6;

/// Number of elements in view, and those without a ref.
pub struct RefCoverage {
    pub all: usize,
    pub missing: Vec<String>,
}

/// Each element must have its own ref, in document order; some refs are checked to lead to the right element.
pub fn ref_coverage(ours: &mut BrowserProduct, snapshot: &Reply) -> Result<RefCoverage> {
    let shown = snapshot.value.pointer("/structuredContent/snapshot").and_then(Value::as_str);
    let refs = parse_refs(shown.context("no snapshot")?);
    let reply = ours.call("browser_execute_js", json!({"script": IN_VIEW_SCRIPT}))?;
    let names = reply.value.pointer("/structuredContent/result").and_then(Value::as_array);
    let names: Vec<&str> = names.context("no list")?.iter().filter_map(Value::as_str).collect();
    ensure!(!names.is_empty(), "nothing is in view");
    let (mut next, mut found, mut missing) = (0, Vec::new(), Vec::new());
    for (at, name) in names.iter().enumerate() {
        let own = refs.iter().enumerate().skip(next).find(|(_, (_, said))| name_matches(said, name));
        match own {
            Some((place, (own, _))) => {
                next = place + 1;
                found.push((at, own));
            }
            None => missing.push(format!("{at}: {name}")),
        }
    }
    for (at, own) in found.iter().step_by(found.len().div_ceil(REFS_TO_TRY).max(1)) {
        ours.call("browser_hover", json!({"ref": own}))?;
        let script = format!("window.inView[{at}].matches(':hover')");
        let over = ours.call("browser_execute_js", json!({"script": script}))?;
        let is_over = over.value.pointer("/structuredContent/result") == Some(&Value::Bool(true));
        if !is_over {
            missing.push(format!("{at}: {own} is another element"));
        }
    }
    Ok(RefCoverage { all: names.len(), missing })
}

/// A name in the snapshot may be truncated.
fn name_matches(said: &str, name: &str) -> bool {
    said.strip_suffix('…').map_or(said == name, |begin| name.starts_with(begin.trim_end()))
}

/// Roles that are actionable without a name; other refs without a name belong to truncated texts.
const NAMELESS: [&str; 7] = ["link", "button", "textbox", "searchbox", "combobox", "checkbox", "clickable"];

/// Refs of a snapshot with the name before each.
fn parse_refs(snapshot: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for line in snapshot.lines() {
        let pieces: Vec<&str> = line.split("[ref=").collect();
        for (before, after) in pieces.iter().zip(pieces.iter().skip(1)) {
            let before = before.trim_end();
            let quoted = before.strip_suffix('"').and_then(|rest| rest.rsplit_once(" \""));
            let last = before.rsplit(' ').next().unwrap_or_default();
            let name = match quoted {
                Some((_, name)) => name,
                None if NAMELESS.contains(&last) => "",
                None => continue,
            };
            let own = after.split(']').next().unwrap_or_default();
            found.push((own.to_owned(), name.to_owned()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{name_matches, parse_refs};

    #[test]
    fn only_what_can_be_acted_on_is_taken_from_a_snapshot() {
        let page = "- link \"A\" [ref=e1], link [ref=e2] (to /x)\n- row: 1. | link \"B c…\" [ref=e3]\n- A long text… [ref=e4]";
        let found = parse_refs(page);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(own, name)| (own.as_str(), name.as_str())).collect();
        assert_eq!(found, [("e1", "A"), ("e2", ""), ("e3", "B c…")]);
        assert!(
            name_matches("B c…", "B cd")
                && name_matches("A", "A")
                && !name_matches("A", "AB")
                && !name_matches("", "A")
        );
    }
}
