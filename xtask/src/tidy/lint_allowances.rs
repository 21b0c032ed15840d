//! Lint allowances: each must have a reason. Those of `disallowed_methods` are listed, since they bypass the grants.

use super::Report;
use super::attributes::{self, Attribute};
use super::rust_sources::Source;
use crate::rust_scan;

const RESTRICTED_LINT: &str = "clippy::disallowed_methods";

/// One `allow(…)` or `expect(…)`.
struct LintAllowance<'a> {
    line: usize,
    lints: String,
    reason: Option<&'a str>,
}

pub fn check(sources: &[Source]) -> Report {
    let mut report = Report::default();
    for source in sources {
        for allowance in attributes::attributes_of(source).iter().flat_map(allowances) {
            let (path, line, lints) = (&source.path, allowance.line, &allowance.lints);
            match allowance.reason {
                None => report.problems.push(format!("{path}:{line} allows {lints} without a reason")),
                Some(reason) if lints.contains(RESTRICTED_LINT) => {
                    report.notes.push(format!("  {path}:{line}  {reason}"));
                }
                Some(_) => {}
            }
        }
    }
    report.notes.insert(0, format!("allowances of {RESTRICTED_LINT}: {}", report.notes.len()));
    report
}

fn allowances<'a>(attribute: &Attribute<'a>) -> Vec<LintAllowance<'a>> {
    if !matches!(attribute.name(), "allow" | "expect" | "cfg_attr") {
        return Vec::new();
    }
    let places = ["allow", "expect"].iter().flat_map(|word| {
        let starts = rust_scan::find_words(attribute.code, word).into_iter();
        starts.map(|at| at + word.len())
    });
    places.filter_map(|open| allowance(attribute, open)).collect()
}

fn allowance<'a>(attribute: &Attribute<'a>, open: usize) -> Option<LintAllowance<'a>> {
    if attribute.code.as_bytes().get(open) != Some(&b'(') {
        return None;
    }
    let inside = open + 1..rust_scan::closing_bracket(attribute.code, open)? - 1;
    let (text, code) = (attribute.text.get(inside.clone())?, attribute.code.get(inside)?);
    let lints = code.split(',').map(str::trim).filter(|part| !part.is_empty() && !part.starts_with("reason"));
    Some(LintAllowance {
        line: attribute.line,
        lints: lints.collect::<Vec<_>>().join(", "),
        reason: reason(text, code),
    })
}

/// The quoted text after `reason =`, unless it is blank.
fn reason<'a>(text: &'a str, code: &str) -> Option<&'a str> {
    let at = *rust_scan::find_words(code, "reason").first()?;
    let value = text.get(at..)?.split_once('"')?.1;
    let value = value.split('"').next()?.trim();
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(text: &str) -> Report {
        check(&[Source::new("a.rs", text)])
    }

    #[test]
    fn reasons() {
        for (text, problems) in [
            ("#[allow(dead_code)]", 1),
            ("#[allow(dead_code, reason = \"\")]", 1),
            ("#[expect(dead_code)]", 1),
            ("#![cfg_attr(test, allow(clippy::panic))]", 1),
            ("#[allow(dead_code, reason = \"kept for later\")]", 0),
            ("#[derive(Debug)] fn f() { x.expect(\"allow(a)\") }", 0),
            ("// #[allow(dead_code)]", 0),
            ("let text = \"#[allow(dead_code)]\";", 0),
        ] {
            assert_eq!(look(text).problems.len(), problems, "{text}");
        }
    }

    #[test]
    fn the_list_of_doors() {
        let text = "\n#![allow(\n    clippy::disallowed_methods,\n    reason = \"the way to the disk\"\n)]\n";
        let report = look(text);
        assert_eq!(
            report.notes,
            ["allowances of clippy::disallowed_methods: 1", "  a.rs:2  the way to the disk"]
        );
    }
}
