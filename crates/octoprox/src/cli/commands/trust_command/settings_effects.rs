//! Description of what a settings file would do.

use super::server_lines::{server_lines, value_lines};
use serde_json::{Map, Value};

/// Effects of settings, by path. All other settings are shown by their path and value.
const EFFECTS: [(&str, &str); 16] = [
    ("shell", "sets the rules for commands:"),
    ("workspace", "lets tools work in"),
    ("roots", "gives tools access to more directories:"),
    ("files", "sets the rules for files:"),
    ("tools.folders", "adds tools, which may run programs, from"),
    ("prompts.folders", "adds prompts from"),
    ("skills.folders", "adds skills from"),
    ("policy", "sets the policy:"),
    ("auth.tokens", "accepts callers with these tokens:"),
    ("net.allow", "lets tools reach these private addresses:"),
    ("git", "sets the rules for git:"),
    ("listen", "listens on"),
    ("admin", "sets the admin API:"),
    ("telemetry.otlp_endpoint", "sends traces to"),
    ("telemetry.log_file", "writes a log to"),
    ("state_dir", "stores the hub's data in"),
];
/// Sections with one line per entry.
const BY_ENTRY: [&str; 2] = ["servers", "toolboxes"];

/// Returns one line per effect, most severe first. Secrets are masked before.
pub fn describe_effects(tree: &Map<String, Value>) -> Vec<String> {
    let mut lines = Vec::new();
    let servers = tree.get("servers").and_then(Value::as_object).into_iter().flatten();
    let mut cards: Vec<Vec<String>> = servers.map(|(name, server)| server_lines(name, server)).collect();
    cards.sort_by_key(|card| !card.first().is_some_and(|line| line.starts_with("RUNS")));
    lines.extend(cards.into_iter().flatten());
    for (name, server) in tree.get("servers").and_then(Value::as_object).into_iter().flatten() {
        lines.extend(server.as_object().into_iter().flat_map(|server| value_lines(name, server)));
        lines.extend(start_dir_line(name, server));
    }
    let at = |path: &str| {
        let mut keys = path.split('.');
        let first = tree.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.get(key))
    };
    for (toolbox, on) in at("toolboxes").and_then(Value::as_object).into_iter().flatten() {
        lines.push(format!(
            "turns the {toolbox} toolbox {}",
            if *on == Value::Bool(true) { "on" } else { "off" }
        ));
    }
    if at("shell.sandbox").and_then(Value::as_str) == Some("none") {
        lines.push("runs commands WITHOUT a sandbox".to_owned());
    }
    for (path, effect) in EFFECTS {
        if let Some(value) = at(path).filter(|value| !value.is_null()) {
            lines.push(format!("{effect} {}", value_text(value)));
        }
    }
    lines.extend(other_settings(tree));
    lines
}

/// Lists the remaining settings, so that an approval covers nothing unseen.
fn other_settings(tree: &Map<String, Value>) -> Vec<String> {
    let is_described = |path: &str| EFFECTS.iter().any(|(described, _)| *described == path);
    let sections = tree.iter().filter(|(name, _)| !BY_ENTRY.contains(&name.as_str()) && !is_described(name));
    let lines = sections.flat_map(|(name, section)| match section.as_object() {
        Some(members) => {
            let paths = members.iter().map(|(key, value)| (format!("{name}.{key}"), value));
            paths.filter(|(path, _)| !is_described(path)).collect()
        }
        None => vec![(name.clone(), section)],
    });
    lines.map(|(path, value)| format!("sets {path}: {}", value_text(value))).collect()
}

/// Where a program starts, if the file names a directory: what is there decides what it runs.
fn start_dir_line(name: &str, server: &Value) -> Option<String> {
    let dir = server.get("cwd").and_then(Value::as_str)?;
    let dir = if dir == crate::gateway::WORKSPACE_REFERENCE { "the workspace" } else { dir };
    Some(format!("starts the server {name} in {dir}: files there decide what it runs"))
}

fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_gravest_comes_first_and_nothing_is_left_out() {
        let tree = json!({
            "workspace": "/",
            "toolboxes": {"shell": true},
            "shell": {"sandbox": "none"},
            "servers": {"y": {"headers": {"X-Trace": "${secret:GITHUB_TOKEN} ${HOME}"}}, "x": {"command": "sh", "args": ["-c", "curl\nevil API_KEY=$(id) --token ghp_0123456789abcdefghijklmnopqrstuvwxyz"]}, "z": {"command": "npx", "cwd": "${workspace}"}},
            "limits": [],
            "telemetry": {"trace_contents": true, "log_file": "/tmp/log"},
            "net": {"contact": "https://example.com"},
            "llm": {"url": "https://203.0.113.9/v1"},
            "fleet": {"nats": ["nats://203.0.113.9:4222"]},
            "registries": ["https://203.0.113.9"],
            "profiles": {"notes": {"tools": ["fs_*"]}},
        });
        let lines = describe_effects(tree.as_object().unwrap());
        let line =
            r#"sh -c "curl\nevil API_KEY=$(id) --token ghp_0123456789abcdefghijklmnopqrstuvwxyz" (server x)"#;
        assert_eq!(lines[0], format!("RUNS with all your permissions: {line}"));
        for line in [
            "turns the shell toolbox on",
            "runs commands WITHOUT a sandbox",
            "lets tools work in /",
            "writes a log to /tmp/log",
            "sets limits: []",
            "sets telemetry.trace_contents: true",
            "sets net.contact: https://example.com",
            "sets llm.url: https://203.0.113.9/v1",
            "sets fleet.nats: [\"nats://203.0.113.9:4222\"]",
            "sets registries: [\"https://203.0.113.9\"]",
            "sets profiles.notes: {\"tools\":[\"fs_*\"]}",
            "changes the server y",
            "starts the server z in the workspace: files there decide what it runs",
            "gives the server y the stored secret GITHUB_TOKEN",
            "gives the server y the variable HOME",
        ] {
            assert!(lines.contains(&line.to_owned()), "{line}: {lines:?}");
        }
    }
}
