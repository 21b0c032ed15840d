//! Conversion of other products' `${…}` references to environment variables.

use crate::settings::WORKSPACE_VARIABLE;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Meaning of the variables of one file.
#[derive(Default)]
pub struct References {
    /// Inputs that an editor prompts for, with their defaults.
    inputs: Vec<(String, Option<String>)>,
    /// Project of the file.
    project: Option<PathBuf>,
}

impl References {
    pub fn from_file(tree: &Map<String, Value>, path: &Path) -> Self {
        let inputs = tree.get("inputs").and_then(Value::as_array).into_iter().flatten();
        let text = |input: &Value, key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
        let inputs = inputs.filter_map(|input| Some((text(input, "id")?, text(input, "default"))));
        Self { inputs: inputs.collect(), project: project_dir(path) }
    }

    /// Returns the text with every reference converted. Unknown references stay unchanged.
    pub fn rewrite(&self, text: &str) -> String {
        let mut whole = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((inside, tail)) = after.split_once('}') else { break };
            whole.push_str(before);
            whole.push_str(&self.rewrite_reference(inside));
            rest = tail;
        }
        whole.push_str(rest);
        rewrite_env_braces(&whole)
    }

    fn rewrite_reference(&self, inside: &str) -> String {
        let inside = inside.strip_prefix("env:").unwrap_or(inside);
        // Stored secrets are the user's; another product's file cannot name them.
        if inside.starts_with("secret:") {
            return format!("${{{}}}", env_name(inside));
        }
        if let Some(id) = inside.strip_prefix("input:") {
            let default =
                self.inputs.iter().find(|(known, _)| known == id).and_then(|(_, default)| default.as_ref());
            // A default is literal text; one with braces would end the reference.
            let default = default.filter(|text| !text.contains(['{', '}']));
            let default = default.map(|text| format!(":-{text}")).unwrap_or_default();
            return format!("${{{}{default}}}", env_name(id));
        }
        let project = self.project.as_deref().filter(|project| !project.to_string_lossy().contains("${"));
        let known = match inside {
            "userHome" => Some("${HOME}".to_owned()),
            "pathSeparator" | "/" => Some("/".to_owned()),
            "workspaceFolder" | "cwd" => project.map(|folder| folder.display().to_string()),
            "workspaceFolderBasename" => {
                project.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
            }
            _ => None,
        };
        known.unwrap_or_else(|| format!("${{{inside}}}"))
    }
}

/// Rewrites `{env:NAME}`, as OpenCode writes it.
fn rewrite_env_braces(text: &str) -> String {
    let mut parts = text.split("{env:");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('}').filter(|(name, _)| is_variable(name) && !whole.ends_with('$')) {
            Some((name, rest)) => whole.push_str(&format!("${{{name}}}{rest}")),
            None => whole.push_str(&format!("{{env:{part}")),
        }
    }
    whole
}

/// Rewrites `$NAME` if it is the whole value of a variable or header, as Gemini CLI writes it.
pub fn rewrite_shell_variable(text: String) -> String {
    match text.strip_prefix('$').filter(|name| is_variable(name)) {
        Some(name) => format!("${{{name}}}"),
        None => text,
    }
}

/// Returns whether it can be the name of a variable.
pub fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns the variables that a server needs.
pub fn required_variables(server: &Map<String, Value>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (field, value) in server {
        let mut found = BTreeSet::new();
        collect_names(value, &mut found);
        // In `cwd` it is the workspace of the session.
        names.extend(found.into_iter().filter(|name| field != "cwd" || name != WORKSPACE_VARIABLE));
    }
    let key = server.get("auth").and_then(|auth| auth.get("env")).and_then(Value::as_str);
    names.extend(key.map(str::to_owned));
    names
}

/// Returns whether it names a variable without a default. Stored secrets are not variables.
fn is_required(reference: &str) -> bool {
    !reference.contains(":-") && !reference.starts_with("secret:")
}

/// Returns the stored secrets that a server uses.
pub fn stored_secrets(server: &Map<String, Value>) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    replace_references(&mut Value::Object(server.clone()), &mut |name| {
        names.extend(name.strip_prefix("secret:").map(str::to_owned));
        None
    });
    names
}

/// Replaces references in all strings of a value by what `replace` returns for their names, if anything.
pub fn replace_references(value: &mut Value, replace: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::String(text) => {
            let mut whole = String::new();
            let mut rest = text.as_str();
            while let Some((before, after)) = rest.split_once("${") {
                let Some((inside, tail)) = after.split_once('}') else { break };
                let name = inside.split_once(":-").map_or(inside, |(name, _)| name);
                let replaced = replace(name);
                whole.push_str(&format!("{before}${{{}}}", replaced.as_deref().unwrap_or(inside)));
                rest = tail;
            }
            whole.push_str(rest);
            *text = whole;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_references(item, replace)),
        Value::Object(members) => members.values_mut().for_each(|item| replace_references(item, replace)),
        _ => {}
    }
}

fn collect_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) => {
            let inside = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
            names.extend(inside.map(|(name, _)| name.to_owned()).filter(|name| is_required(name)));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Object(members) => members.values().for_each(|item| collect_names(item, names)),
        _ => {}
    }
}

/// Returns the project directory of an editor's file such as `.vscode/mcp.json`. In the home directory the same name
/// applies to all projects.
fn project_dir(path: &Path) -> Option<PathBuf> {
    let folder = path.parent()?;
    let inside = [".vscode", ".cursor"].iter().any(|name| folder.ends_with(name));
    let project = folder.parent().filter(|_| inside)?;
    (std::env::home_dir().as_deref() != Some(project)).then(|| project.to_owned())
}

/// Converts a name to a variable name: `github-token` becomes `GITHUB_TOKEN`.
pub fn env_name(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_product_means_a_variable() {
        let Value::Object(tree) = json!({"inputs": [
            {"type": "promptString", "id": "github-token", "password": true},
            {"type": "promptString", "id": "2nd", "default": "x"},
            {"type": "promptString", "id": "evil", "default": "}${secret:mine"},
        ]}) else {
            return;
        };
        let references = References::from_file(&tree, Path::new("/work/shop/.vscode/mcp.json"));
        for (text, expected) in [
            ("plain", "plain"),
            ("Bearer ${input:github-token}", "Bearer ${GITHUB_TOKEN}"),
            ("${input:2nd}", "${_2ND:-x}"),
            ("${input:evil}", "${EVIL}"),
            ("${env:A}${B}${C:-d}", "${A}${B}${C:-d}"),
            ("${userHome}${/}x", "${HOME}/x"),
            ("${workspaceFolder}/a ${workspaceFolderBasename}", "/work/shop/a shop"),
            ("open ${A", "open ${A"),
            ("Bearer {env:A} {file:~/b} ${env:C}", "Bearer ${A} {file:~/b} ${C}"),
            ("${secret:mine} ${env:secret:mine}", "${SECRET_MINE} ${SECRET_MINE}"),
        ] {
            assert_eq!(references.rewrite(text), expected);
        }
        let Value::Object(server) = json!({"url": "https://${A}/${B:-x}", "args": ["${C}"], "cwd": "${workspace}", "auth": {"type": "api-key", "env": "D"}})
        else {
            return;
        };
        assert_eq!(required_variables(&server).into_iter().collect::<Vec<_>>(), ["A", "C", "D"]);
        let elsewhere = References::from_file(&Map::new(), Path::new("/x/mcp.json"));
        assert_eq!(elsewhere.rewrite("${workspaceFolder}"), "${workspaceFolder}");
    }
}
