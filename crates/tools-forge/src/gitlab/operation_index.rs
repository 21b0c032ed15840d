//! Queries on an OpenAPI document: the list of operations, and the details of one.

use octo_openapi::{Document, OperationSummary, RefInliner};
use octo_toolkit::ToolError;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;

/// Maximum number of values that one operation expands to, and depth of references; at most some 15,000 tokens.
const MAX_NODES: usize = 2_500;
const MAX_REF_DEPTH: usize = 4;
const API_PREFIX: &str = "api/v4";

/// An operation in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OperationRow {
    /// Path as in the document.
    path: String,
    /// Method, in upper case.
    method: String,
    /// Summary in a line.
    summary: String,
    /// Whether it is deprecated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deprecated: bool,
}

pub struct OperationIndex(Document);

impl OperationIndex {
    /// Parses the document; blocks meanwhile.
    pub fn parse(text: String) -> Result<Self, ToolError> {
        Document::parse(text).map(Self)
    }

    /// Operations that contain all words of the filter, best first; if none does, related ones; all without a filter.
    pub fn list(&self, filter: &str) -> Vec<OperationRow> {
        let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
        let ranked = if words.is_empty() { Vec::new() } else { self.0.search(filter) };
        let rank: HashMap<(&str, &str), usize> =
            ranked.iter().enumerate().map(|(at, listed)| (key(listed), at)).collect();
        let mut found: Vec<(bool, usize, &OperationSummary)> = Vec::new();
        for listed in self.0.operations() {
            if let Some(in_path) = fits(listed, &words) {
                found.push((!in_path, rank.get(&key(listed)).copied().unwrap_or(usize::MAX), listed));
            }
        }
        if found.is_empty() {
            return ranked.into_iter().map(row).collect();
        }
        // Words in the path are more significant than words in the description.
        found.sort_by_key(|(elsewhere, rank, _)| (*elsewhere, *rank));
        found.into_iter().map(|(_, _, listed)| row(listed)).collect()
    }

    /// Path and method as in the document, and the operation with its references resolved.
    pub fn operation(&self, path: &str, method: &str) -> Result<(String, String, Value), ToolError> {
        let method = method.trim();
        let given = parts(path);
        let alike = self.0.operations().iter().filter(|listed| listed.method.eq_ignore_ascii_case(method));
        let best = alike
            .filter_map(|listed| Some((match_score(&parts(&listed.path), &given)?, listed)))
            .max_by_key(|(likeness, _)| *likeness);
        let (path, method) = match best {
            Some((_, listed)) => (listed.path.clone(), listed.method.clone()),
            None => self.0.operation(path, method).map(|known| (known.path, known.method))?,
        };
        let item = self.0.lookup_ref(&format!("#/paths/{}", path.replace('~', "~0").replace('/', "~1")));
        let item = item.unwrap_or_default();
        let mut operation = item.get(method.to_lowercase()).cloned().unwrap_or_default();
        if let (Some(shared), Some(operation)) = (item.get("parameters"), operation.as_object_mut()) {
            operation.insert("path_parameters".to_owned(), shared.clone());
        }
        Ok((path, method, RefInliner::new(&self.0, MAX_NODES, MAX_REF_DEPTH).inline(&operation)))
    }
}

fn key(listed: &OperationSummary) -> (&str, &str) {
    (&listed.method, &listed.path)
}

fn row(listed: &OperationSummary) -> OperationRow {
    OperationRow {
        path: listed.path.clone(),
        method: listed.method.clone(),
        summary: listed.summary.clone(),
        deprecated: listed.deprecated,
    }
}

/// Whether the operation's texts contain all words, and if so whether its path does.
fn fits(listed: &OperationSummary, words: &[String]) -> Option<bool> {
    let path = format!("{} {}", listed.method, listed.path).to_lowercase();
    if words.iter().all(|word| path.contains(word)) {
        return Some(true);
    }
    let rest = format!("{path} {} {} {}", listed.id, listed.summary, listed.tags.join(" ")).to_lowercase();
    words.iter().all(|word| rest.contains(word)).then_some(false)
}

/// Segments of a path beneath the root of the API.
fn parts(path: &str) -> Vec<&str> {
    let path = path.trim().split('?').next().unwrap_or_default().trim_matches('/');
    path.strip_prefix(API_PREFIX).unwrap_or(path).trim_matches('/').split('/').collect()
}

fn is_place(part: &str) -> bool {
    part.starts_with('{') || part.starts_with(':')
}

/// Number of literally equal segments; `None` if the paths do not match.
fn match_score(known: &[&str], given: &[&str]) -> Option<usize> {
    let pairs = || known.iter().zip(given);
    let same = known.len() == given.len() && pairs().all(|(known, given)| known == given || is_place(known));
    same.then(|| pairs().filter(|(known, given)| known == given).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_toolkit::Kind;

    fn book() -> OperationIndex {
        OperationIndex::parse(include_str!("../tests/openapi_v3.yaml").to_owned()).unwrap()
    }

    fn matching_paths(filter: &str) -> Vec<String> {
        book().list(filter).into_iter().map(|row| format!("{} {}", row.method, row.path)).collect()
    }

    #[test]
    fn a_filter_finds_operations_by_their_words() {
        assert_eq!(matching_paths("").len(), 6);
        let mut both = matching_paths("/issues");
        both.sort();
        assert_eq!(both, ["GET /api/v4/projects/{id}/issues", "POST /api/v4/projects/{id}/issues"]);
        assert_eq!(matching_paths("post ISSUES"), ["POST /api/v4/projects/{id}/issues"]);
        assert_eq!(matching_paths("single project"), ["GET /api/v4/projects/{id}"]);
        assert_eq!(matching_paths("zzzqqq"), [""; 0]);
    }

    #[test]
    fn an_operation_is_found_however_its_path_is_written() {
        for path in [
            "/api/v4/projects/{id}/issues",
            "/projects/{id}/issues",
            "projects/:id/issues/",
            "projects/42/issues?state=opened",
            "projects/group%2Fproject/issues",
        ] {
            let (path, method, operation) = book().operation(path, "post").unwrap();
            assert_eq!((path.as_str(), method.as_str()), ("/api/v4/projects/{id}/issues", "POST"));
            assert_eq!(operation["operationId"], "postApiV4ProjectsIdIssues");
        }
        assert_eq!(book().operation("projects/import/x", "GET").unwrap_err().kind, Kind::NotFound);
        let error = book().operation("/projects/{id}/issues", "DELETE").unwrap_err();
        assert_eq!(error.kind, Kind::NotFound);
        assert_eq!(
            book().operation("/projects/all", "GET").unwrap().0,
            "/api/v4/projects/all",
            "the literal one wins"
        );
    }

    #[test]
    fn references_are_resolved_until_they_lead_back() {
        let (_, _, operation) = book().operation("/projects/{id}/issues", "POST").unwrap();
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(body["properties"]["title"]["type"], "string");
        assert_eq!(operation["path_parameters"][0]["name"], "id");
        let text = operation.to_string();
        assert!(text.contains("\"$ref\"") && text.len() < 20_000, "{text}");
    }
}
