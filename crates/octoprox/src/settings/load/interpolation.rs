//! Interpolation of `${NAME}` in the strings of a file.

use crate::settings::Environment;
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::secret_references::{SECRET_PREFIX, SecretText, TextPart};
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::unset_variables::UnsetVariables;
use crate::settings::model::secret_masking::is_secret_name;
use serde_json::Value;

/// Result of the interpolation: problems, secret values, variables that servers need, and strings with stored secrets,
/// which are not replaced yet.
#[derive(Default)]
pub struct Interpolation {
    pub problems: Vec<SettingsProblem>,
    pub secrets: Vec<String>,
    pub missing: UnsetVariables,
    pub secret_texts: Vec<SecretText>,
}

/// Replaces variables in all strings, except those of disabled servers.
pub fn interpolate(layers: &mut Layers, world: &Environment) -> Interpolation {
    let off: Vec<String> = disabled_servers(layers);
    let mut filled = Interpolation::default();
    let mut unset = Vec::new();
    layers.for_each_text(&mut |path, text| {
        if off.iter().any(|server| path.starts_with(server)) {
            return;
        }
        // The workspace is known later.
        let kept = if is_server_dir(path) { Some(WORKSPACE_VARIABLE) } else { None };
        match replace_variables(text, world, kept, &mut filled.secrets) {
            Ok(None) => {}
            Ok(Some(parts)) if parts.iter().all(|part| matches!(part, TextPart::Text(_))) => {
                *text = parts.iter().map(TextPart::text).collect();
            }
            Ok(Some(parts)) => {
                let (path, original) = (path.to_owned(), text.clone());
                filled.secret_texts.push(SecretText { path, original, parts });
            }
            Err(VariableError::Unset(name)) if server_of(path).is_some() => {
                filled.missing.add(server_of(path).unwrap_or_default(), &name);
            }
            Err(wrong) => unset.push((path.to_owned(), wrong)),
        }
    });
    filled.problems = unset
        .into_iter()
        .map(|(path, wrong)| {
            let (what, remedy) = wrong.into_message();
            SettingsProblem::new(layers.origin(&path), path, what, remedy)
        })
        .collect();
    filled
}

/// Returns the server that a setting belongs to.
pub fn server_of(path: &str) -> Option<&str> {
    path.strip_prefix("servers.")?.split('.').next()
}

/// Variable in the `cwd` of a server that stands for the workspace of the session.
pub const WORKSPACE_VARIABLE: &str = "workspace";

/// Returns whether a setting is the `cwd` of a server.
fn is_server_dir(path: &str) -> bool {
    let name = path.strip_prefix("servers.").and_then(|path| path.strip_suffix(".cwd"));
    name.is_some_and(|name| !name.contains('.'))
}

fn disabled_servers(layers: &Layers) -> Vec<String> {
    let servers = layers.get("servers").and_then(Value::as_object).into_iter().flatten();
    let off = servers.filter(|(_, server)| server.get("enabled") == Some(&Value::Bool(false)));
    off.map(|(name, _)| format!("servers.{name}.")).collect()
}

enum VariableError {
    Unset(String),
    Unclosed,
}

impl VariableError {
    fn into_message(self) -> (String, String) {
        match self {
            Self::Unset(name) => (
                format!("variable {name} is not set."),
                format!("Set it, or write ${{{name}:-}} if it may be empty."),
            ),
            Self::Unclosed => ("`${` without a closing `}`.".to_owned(), "Add the `}`.".to_owned()),
        }
    }
}

/// Returns the text with its variables replaced, or `None` if it contains none. Stored secrets are separate parts: the
/// value of a variable cannot refer to one.
fn replace_variables(
    text: &str,
    world: &Environment,
    kept: Option<&str>,
    secrets: &mut Vec<String>,
) -> Result<Option<Vec<TextPart>>, VariableError> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, tail) = after.split_once('}').ok_or(VariableError::Unclosed)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        parts.push(TextPart::Text(before.to_owned()));
        rest = tail;
        if Some(name) == kept {
            parts.push(TextPart::Text(format!("${{{name}}}")));
            continue;
        }
        if let Some(name) = name.strip_prefix(SECRET_PREFIX) {
            parts.push(TextPart::Secret { name: name.to_owned(), default: default.map(str::to_owned) });
            continue;
        }
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = world.variable(name).or(default).ok_or_else(|| VariableError::Unset(name.to_owned()))?;
        if is_secret_name(name) {
            secrets.push(value.to_owned());
        }
        parts.push(TextPart::Text(value.to_owned()));
    }
    parts.push(TextPart::Text(rest.to_owned()));
    Ok(Some(parts))
}

/// Returns the text with a word in place of each reference without a default, to check a setting before its values are
/// known.
pub fn with_placeholders(text: &str) -> Result<String, SettingsProblem> {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, tail)) = after.split_once('}') else {
            let (what, remedy) = VariableError::Unclosed.into_message();
            return Err(SettingsProblem::new(SettingOrigin::Default, "", what, remedy));
        };
        whole.push_str(before);
        whole.push_str(inside.split_once(":-").map_or("placeholder", |(_, default)| default));
        rest = tail;
    }
    whole.push_str(rest);
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_texts() {
        let variables = [("A", "1"), ("MY_TOKEN", "hush"), ("NONE", "")];
        let world = Environment {
            variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Environment::default()
        };
        let mut secrets = Vec::new();
        for (text, whole) in [
            ("plain $A", None),
            ("x${A}y${env:A}", Some("x1y1")),
            ("Bearer ${MY_TOKEN}", Some("Bearer hush")),
            ("${B:-two}${NONE:-}", Some("two")),
            ("${workspace}/${A}", Some("${workspace}/1")),
        ] {
            let parts = replace_variables(text, &world, Some("workspace"), &mut secrets).ok().flatten();
            let joined = parts.map(|parts| parts.iter().map(TextPart::text).collect::<String>());
            assert_eq!(joined.as_deref(), whole, "{text}");
        }
        assert_eq!(secrets, ["hush"]);
        for text in ["${B}", "${NONE}", "${A", "${workspace}"] {
            assert!(replace_variables(text, &world, None, &mut secrets).is_err(), "{text}");
        }
    }
}
