//! `manifest.json` of an MCP bundle, and the script that starts its server.

use super::package_manager::PackageError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Prefix of variables for values that the manifest uses as arguments only.
const VALUE_PREFIX: &str = "USER_CONFIG_";
/// Programs that install packages and run them.
const RUNS_UNLOCKED_PACKAGES: [&str; 10] =
    ["npx", "npm", "pnpm", "yarn", "bunx", "uv", "uvx", "pip", "pip3", "pipx"];
/// Name of this platform in manifests.
const PLATFORM: &str = "linux";

#[derive(Debug, Clone, Deserialize)]
pub struct BundleManifest {
    pub name: String,
    #[serde(default)]
    pub display_name: Option<String>,
    pub version: String,
    #[serde(default)]
    pub description: String,
    pub author: BundleAuthor,
    server: BundleServer,
    #[serde(default)]
    user_config: BTreeMap<String, UserValue>,
    #[serde(default)]
    compatibility: Compatibility,
}

#[derive(Debug, Clone, Deserialize)]
pub struct BundleAuthor {
    pub name: String,
    #[serde(default)]
    pub url: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct BundleServer {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    entry_point: String,
    #[serde(default)]
    mcp_config: StartConfig,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct StartConfig {
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    platform_overrides: BTreeMap<String, StartOverride>,
}

#[derive(Debug, Clone, Deserialize)]
struct StartOverride {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
}

/// A value that the user sets.
#[derive(Debug, Clone, Deserialize)]
struct UserValue {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    default: Value,
    #[serde(default)]
    sensitive: bool,
    /// Several values, separated by colons in the variable.
    #[serde(default)]
    multiple: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Compatibility {
    platforms: Option<Vec<String>>,
}

/// An environment variable of the server that the user sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleVariable {
    pub name: String,
    pub description: String,
    pub secret: bool,
    /// Whether the server does not start without it.
    pub required: bool,
}

impl BundleManifest {
    pub fn parse(text: &str) -> Result<Self, PackageError> {
        let mut manifest: Self = serde_json::from_str(text.trim_start_matches('\u{feff}'))
            .map_err(|error| invalid(&format!("manifest.json: {error}")))?;
        if manifest
            .compatibility
            .platforms
            .as_ref()
            .is_some_and(|names| !names.iter().any(|name| name == PLATFORM))
        {
            return Err(PackageError::new(
                "The bundle does not run on Linux.",
                "Ask its author for another one.",
            ));
        }
        let config = &mut manifest.server.mcp_config;
        if let Some(own) = config.platform_overrides.remove(PLATFORM) {
            config.command = own.command.unwrap_or_else(|| std::mem::take(&mut config.command));
            config.args = own.args.unwrap_or_else(|| std::mem::take(&mut config.args));
            config.env.extend(own.env.unwrap_or_default());
        }
        if let Some(name) = config.env.keys().find(|name| !is_variable_name(name)) {
            return Err(invalid(&format!("`{name}` is not the name of a variable")));
        }
        let program =
            Path::new(&config.command).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if manifest.server.kind == "uv" || RUNS_UNLOCKED_PACKAGES.contains(&program) {
            return Err(PackageError::new(
                "The bundle installs its dependencies when it starts, without a lock.",
                "Add the package instead: `octoprox add pypi:NAME` or `npm:NAME`.",
            ));
        }
        if config.command.is_empty() {
            return Err(invalid("`mcp_config` names no command"));
        }
        let names: BTreeSet<String> =
            manifest.user_config.keys().map(|key| manifest.variable_name(key)).collect();
        if names.len() != manifest.user_config.len() {
            return Err(invalid("two values of `user_config` have almost the same name"));
        }
        // Finds unknown variables now.
        manifest.start_script(Path::new("/"))?;
        Ok(manifest)
    }

    /// Many systems have only `python3`.
    fn command(&self) -> &str {
        let command = self.server.mcp_config.command.as_str();
        if command == "python" { "python3" } else { command }
    }

    /// Program of the machine that it needs, if any.
    pub fn interpreter(&self) -> Option<&str> {
        Some(self.command()).filter(|command| !command.contains(['/', '$']))
    }

    /// What it starts, as the manifest says it.
    pub fn command_line(&self) -> String {
        let config = &self.server.mcp_config;
        std::iter::once(&config.command).chain(&config.args).cloned().collect::<Vec<_>>().join(" ")
    }

    /// File of the server that must be executable, if it is a program.
    pub fn program(&self) -> Option<&str> {
        (self.server.kind == "binary").then_some(self.server.entry_point.as_str())
    }

    /// Variables that the user can set.
    pub fn variables(&self) -> Vec<BundleVariable> {
        let variable = |(key, value): (&String, &UserValue)| {
            let text = if value.description.is_empty() { &value.title } else { &value.description };
            let is_path = ["directory", "file"].contains(&value.kind.as_str());
            let hint = if is_path { " Allow it with --read or --write, too." } else { "" };
            BundleVariable {
                name: self.variable_name(key),
                description: format!("{text}{hint}"),
                secret: value.sensitive,
                required: value.required && value.default.is_null(),
            }
        };
        self.user_config.iter().map(variable).collect()
    }

    /// The variable of the server that is this value, else one of its own.
    fn variable_name(&self, key: &str) -> String {
        let whole = format!("${{user_config.{key}}}");
        let env = &self.server.mcp_config.env;
        env.iter().find(|(_, value)| **value == whole).map_or_else(
            || {
                let plain =
                    |sign: char| if sign.is_ascii_alphanumeric() { sign.to_ascii_uppercase() } else { '_' };
                format!("{VALUE_PREFIX}{}", key.chars().map(plain).collect::<String>())
            },
            |(name, _)| name.clone(),
        )
    }

    /// A shell script that starts the server of a bundle in this directory.
    pub fn start_script(&self, folder: &Path) -> Result<String, PackageError> {
        let config = &self.server.mcp_config;
        let folder = folder.to_string_lossy();
        // Values with several parts are split at colons, and nothing else is.
        let mut script = format!("#!/bin/sh\nset -f\nIFS=:\ncd {} || exit 1\n", quote(&folder));
        for (key, value) in &self.user_config {
            let text = match &value.default {
                Value::Null => continue,
                Value::String(text) => text.clone(),
                Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(":"),
                other => other.to_string(),
            };
            let (name, word) = (self.variable_name(key), self.word(&text, &folder, Split::Never)?);
            script.push_str(&format!("[ \"${{{name}+x}}\" ] || export {name}={word}\n"));
        }
        for (name, value) in &config.env {
            let is_own = self.user_config.keys().any(|key| *value == format!("${{user_config.{key}}}"));
            if !is_own {
                script.push_str(&format!("export {name}={}\n", self.word(value, &folder, Split::Never)?));
            }
        }
        script.push_str(&format!("exec {}", self.word(self.command(), &folder, Split::Never)?));
        for arg in &config.args {
            script.push_str(&format!(" {}", self.word(arg, &folder, Split::Values)?));
        }
        script.push_str(" \"$@\"\n");
        Ok(script)
    }

    /// A word of the shell, with the variables of manifests.
    fn word(&self, text: &str, folder: &str, split: Split) -> Result<String, PackageError> {
        let mut word = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) =
                after.split_once('}').ok_or_else(|| invalid(&format!("`{text}` has no closing brace")))?;
            if !before.is_empty() {
                word.push_str(&quote(before));
            }
            let is_whole = before.is_empty() && after.is_empty() && rest == text;
            word.push_str(&match name.strip_prefix("user_config.") {
                Some(key) => {
                    let value = self
                        .user_config
                        .get(key)
                        .ok_or_else(|| invalid(&format!("`user_config` has no `{key}`")))?;
                    let variable = self.variable_name(key);
                    match value.multiple && is_whole && split == Split::Values {
                        true => format!("${{{variable}-}}"),
                        false => format!("\"${{{variable}-}}\""),
                    }
                }
                None => match name {
                    "__dirname" => quote(folder),
                    "HOME" => "\"$HOME\"".to_owned(),
                    "DESKTOP" => "\"$HOME/Desktop\"".to_owned(),
                    "DOCUMENTS" => "\"$HOME/Documents\"".to_owned(),
                    "DOWNLOADS" => "\"$HOME/Downloads\"".to_owned(),
                    "/" | "pathSeparator" => quote("/"),
                    _ => return Err(invalid(&format!("`${{{name}}}` is not a variable of bundles"))),
                },
            });
            rest = after;
        }
        if !rest.is_empty() || word.is_empty() {
            word.push_str(&quote(rest));
        }
        Ok(word)
    }
}

/// Whether a value with several parts becomes several words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Split {
    Never,
    Values,
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

pub fn is_variable_name(name: &str) -> bool {
    let plain = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    !name.is_empty() && !name.starts_with(|sign: char| sign.is_ascii_digit()) && name.chars().all(plain)
}

pub(super) fn invalid(why: &str) -> PackageError {
    PackageError::new(format!("The bundle is not valid: {why}."), "Ask its author for another one.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(server: Value, user_config: Value) -> Result<BundleManifest, PackageError> {
        let text = json!({"manifest_version": "0.3", "name": "tides", "version": "1.0.0", "author": {"name": "A"},
            "server": server, "user_config": user_config});
        BundleManifest::parse(&text.to_string())
    }

    /// Runs the script with `printf` as the program of the server.
    fn run(config: Value, user_config: Value, env: &[(&str, &str)]) -> String {
        let parsed =
            manifest(json!({"type": "binary", "entry_point": "x", "mcp_config": config}), user_config)
                .unwrap();
        let script = parsed.start_script(Path::new("/tmp/../tmp")).unwrap();
        let mut command = std::process::Command::new("/bin/sh");
        let output = command.args(["-c", &script, "sh", "last one"]).env_clear().envs(env.iter().copied());
        let output = output.env("PATH", "/usr/bin:/bin").env("HOME", "/home/it's").output().unwrap();
        assert!(output.status.success(), "{script}{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn values_reach_the_server_as_they_are() {
        let hostile = "a b'$(touch /tmp/x)`id`\"\\*\n;";
        let args = json!([
            "<%s>",
            "${__dirname}/s.js",
            "${user_config.key}",
            "--x=${user_config.key}",
            "${user_config.dirs}",
            "${HOME}",
            "${user_config.none}",
            hostile,
            "${user_config.size}"
        ]);
        let user = json!({"key": {"type": "string", "required": true}, "dirs": {"type": "directory", "multiple": true},
            "none": {"type": "string"}, "size": {"type": "number", "default": 10}});
        let env = [("USER_CONFIG_KEY", hostile), ("USER_CONFIG_DIRS", "/a b:/*")];
        let said = run(json!({"command": "printf", "args": args}), user, &env);
        let parts = [
            "/tmp/../tmp/s.js",
            hostile,
            &format!("--x={hostile}"),
            "/a b",
            "/*",
            "/home/it's",
            "",
            hostile,
            "10",
            "last one",
        ];
        assert_eq!(said, parts.map(|part| format!("<{part}>")).concat());
    }

    #[test]
    fn variables_of_the_server() {
        let config = json!({"command": "env", "env": {"API_KEY": "${user_config.key}", "MODE": "a=${user_config.mode}"}});
        let user = json!({"key": {"type": "string", "title": "Key", "required": true},
            "mode": {"type": "string", "description": "Mode.", "default": "it's"}});
        let parsed =
            manifest(json!({"type": "node", "entry_point": "x", "mcp_config": config.clone()}), user.clone())
                .unwrap();
        let names: Vec<_> = parsed.variables().into_iter().map(|one| (one.name, one.required)).collect();
        assert_eq!(names, [("API_KEY".to_owned(), true), ("USER_CONFIG_MODE".to_owned(), false)]);
        let config = json!({"command": "sh", "args": ["-c", "echo $API_KEY $MODE"], "env": config["env"]});
        assert_eq!(run(config, user, &[("API_KEY", "k")]), "k a=it's\n");
    }

    #[test]
    fn what_is_refused() {
        let config = |config: Value| json!({"type": "node", "entry_point": "x", "mcp_config": config});
        for (server, why) in [
            (config(json!({"command": "node", "args": ["${GITHUB_TOKEN}"]})), "not a variable of bundles"),
            (config(json!({"command": "node", "args": ["${user_config.x}"]})), "has no `x`"),
            (config(json!({"command": "node", "args": ["${x"]})), "closing brace"),
            (config(json!({"command": "node", "env": {"A;B": "x"}})), "name of a variable"),
            (json!({"type": "uv", "mcp_config": {"command": "x"}}), "without a lock"),
            (config(json!({"command": "/usr/bin/npx", "args": ["-y", "x"]})), "without a lock"),
        ] {
            let error = manifest(server, json!({})).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
        }
        let twice = json!({"a-b": {"type": "string"}, "a_b": {"type": "string"}});
        assert!(manifest(config(json!({"command": "node"})), twice).is_err());
        assert!(BundleManifest::parse("{}").is_err());
    }
}
