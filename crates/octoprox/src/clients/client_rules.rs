//! Rules of a client about the tools of its servers: what it denies or asks for. Behind octoprox the tools have other
//! names, so such a rule would match nothing.

use crate::settings::load::settings_format;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Projects of a user whose rules are read.
const MAX_PROJECTS: usize = 1_000;

/// How a client writes the name of a server in its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RuleForm {
    before: &'static str,
    /// Between the server and its tool.
    after: &'static str,
}

const CLAUDE: RuleForm = RuleForm { before: "mcp__", after: "__" };
const CURSOR: RuleForm = RuleForm { before: "Mcp(", after: ":" };
const GOOSE: RuleForm = RuleForm { before: "", after: "__" };
const OPENCODE: RuleForm = RuleForm { before: "", after: "_" };
const ZED: RuleForm = RuleForm { before: "mcp:", after: ":" };

/// One rule, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientRule {
    form: RuleForm,
    text: String,
    /// What the client does: `deny mcp__github__delete`.
    shown: String,
    /// Whether it may be about any server: a pattern that is not evaluated here, or a file that cannot be read.
    is_for_all: bool,
}

/// Rules that forbid or ask. Others only save questions.
#[derive(Debug, Default)]
pub struct ClientRules(Vec<ClientRule>);

impl ClientRules {
    /// Reads the rules of a client: those in the file with its servers, and those in other files of the user and of the
    /// project. A file that cannot be read may have rules about every server.
    pub fn read(client: &str, tree: &Map<String, Value>, files: &[PathBuf], folder: &Path) -> Self {
        let mut rules = Self::default();
        let others: Vec<Map<String, Value>> = files.iter().filter_map(|path| rules.read_tree(path)).collect();
        let others = others.iter();
        match client {
            "claude-code" => {
                let projects = tree.get("projects").and_then(Value::as_object).into_iter().flatten();
                let folders: Vec<PathBuf> =
                    projects.map(|(path, _)| PathBuf::from(path)).take(MAX_PROJECTS).collect();
                let folders = folders.iter().map(PathBuf::as_path).chain(project_folders(folder));
                let of_project = folders.flat_map(|folder| {
                    ["settings.json", "settings.local.json"].map(|name| folder.join(".claude").join(name))
                });
                let of_project: Vec<Map<String, Value>> =
                    of_project.filter_map(|path| rules.read_tree(&path)).collect();
                others.chain(&of_project).for_each(|tree| rules.add_claude(tree));
            }
            "cursor" => others.for_each(|tree| {
                rules.add_list("deny", CURSOR, tree.get("permissions").and_then(|it| it.get("deny")));
            }),
            "gemini-cli" => rules.add_gemini(tree),
            "goose" => others.for_each(|tree| {
                for mode in tree.values() {
                    rules.add_list("deny", GOOSE, mode.get("never_allow"));
                    rules.add_list("ask", GOOSE, mode.get("ask_before"));
                }
            }),
            "opencode" | "kilo" => {
                let nested = ["agent", "mode"].into_iter().filter_map(|key| tree.get(key)?.as_object());
                let nested = nested.flat_map(Map::values).filter_map(Value::as_object);
                std::iter::once(tree).chain(nested).for_each(|tree| rules.add_opencode(tree));
            }
            "zed" => {
                let tools = tree.get("agent").and_then(|agent| agent.get("tool_permissions")?.get("tools"));
                rules.add_keys("rules for", ZED, tools);
            }
            _ => {}
        }
        rules
    }

    /// Rules about a server, as the client writes them. One for all servers is left out: it covers octoprox, too.
    pub fn about(&self, server: &str) -> Vec<String> {
        let plain: String = server
            .chars()
            .map(|sign| if sign.is_ascii_alphanumeric() || "-_".contains(sign) { sign } else { '_' })
            .collect();
        let mut found: Vec<String> = self
            .0
            .iter()
            .filter(|rule| [server, &plain].iter().any(|name| rule.is_about(name)))
            .map(|rule| rule.shown.clone())
            .collect();
        found.sort();
        found.dedup();
        found
    }

    fn add(&mut self, what: &str, form: RuleForm, text: &str) {
        let (text, shown) = (text.to_owned(), format!("{what} {text}"));
        self.0.push(ClientRule { form, text, shown, is_for_all: false });
    }

    fn add_for_all(&mut self, shown: String) {
        self.0.push(ClientRule { form: CLAUDE, text: String::new(), shown, is_for_all: true });
    }

    /// Reads a file with rules, if it exists.
    fn read_tree(&mut self, path: &Path) -> Option<Map<String, Value>> {
        let text = settings_format::read_foreign(path);
        let tree = text.ok().and_then(|text| settings_format::parse_as(path, &text).ok());
        match tree {
            Some(Value::Object(tree)) => Some(tree),
            _ if path.exists() => {
                self.add_for_all(format!("{} cannot be read", path.display()));
                None
            }
            _ => None,
        }
    }

    fn add_list(&mut self, what: &str, form: RuleForm, list: Option<&Value>) {
        let texts = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        texts.for_each(|text| self.add(what, form, text));
    }

    fn add_keys(&mut self, what: &str, form: RuleForm, map: Option<&Value>) {
        let map = map.and_then(Value::as_object).into_iter().flatten();
        map.for_each(|(key, _)| self.add(what, form, key));
    }

    fn add_claude(&mut self, tree: &Map<String, Value>) {
        let permissions = tree.get("permissions");
        for what in ["deny", "ask"] {
            self.add_list(what, CLAUDE, permissions.and_then(|rules| rules.get(what)));
        }
        let denied = tree.get("deniedMcpServers").and_then(Value::as_array).into_iter().flatten();
        for name in denied.filter_map(|server| server.get("serverName")?.as_str()) {
            self.add("deny", CLAUDE, &format!("mcp__{name}"));
        }
        // A hook before a tool can refuse it. Its matcher is a regular expression.
        let hooks = tree.get("hooks").and_then(|hooks| hooks.get("PreToolUse")?.as_array());
        let matchers = hooks.into_iter().flatten().filter_map(|hook| hook.get("matcher")?.as_str());
        for matcher in matchers {
            let pattern = matcher.trim_matches(['^', '$']).replace(".*", "*");
            if pattern.contains(['(', '[', '{', '?', '+', '\\', '.']) {
                self.add_for_all(format!("hook for {matcher}"));
                continue;
            }
            pattern.split('|').for_each(|part| self.add("hook for", CLAUDE, part.trim_matches(['^', '$'])));
        }
    }

    fn add_gemini(&mut self, tree: &Map<String, Value>) {
        let names = RuleForm { before: "", after: "__" };
        self.add_list("exclude", names, tree.get("mcp").and_then(|mcp| mcp.get("excluded")));
        self.add_list("exclude", names, tree.get("excludeTools"));
        self.add_list("exclude", names, tree.get("tools").and_then(|tools| tools.get("exclude")));
    }

    fn add_opencode(&mut self, tree: &Map<String, Value>) {
        let is_off = |value: &Value| *value == Value::Bool(false);
        let is_strict = |value: &Value| match value {
            Value::String(text) => text != "allow",
            Value::Object(patterns) => patterns.values().any(|value| value != "allow"),
            _ => false,
        };
        let tools = tree.get("tools").and_then(Value::as_object).into_iter().flatten();
        tools.filter(|(_, value)| is_off(value)).for_each(|(key, _)| self.add("disable", OPENCODE, key));
        let permission = tree.get("permission").and_then(Value::as_object).into_iter().flatten();
        permission
            .filter(|(_, value)| is_strict(value))
            .for_each(|(key, _)| self.add("permission of", OPENCODE, key));
    }
}

impl ClientRule {
    fn is_about(&self, server: &str) -> bool {
        if self.is_for_all {
            return true;
        }
        let RuleForm { before, after } = self.form;
        let whole = format!("{before}{server}");
        let tools = format!("{whole}{after}");
        match self.text.split_once('*') {
            Some((head, _)) if head.len() > before.len() => {
                tools.starts_with(head) || head.starts_with(&tools)
            }
            // A tool of any server, but not every tool of octoprox.
            Some((head, tail)) => {
                before.starts_with(head) && tail.contains(|sign: char| sign.is_ascii_alphanumeric())
            }
            None => self.text == whole || self.text.starts_with(&tools),
        }
    }
}

/// A directory and those above it, up to the top of its repository.
fn project_folders(folder: &Path) -> impl Iterator<Item = &Path> {
    let depth = folder.ancestors().position(|above| above.join(".git").exists()).unwrap_or_default();
    folder.ancestors().take(depth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The rules about a server, given the file with the servers and another one of the client.
    fn about(client: &str, tree: &str, file: &str, server: &str) -> Vec<String> {
        let top = tempfile::tempdir().unwrap();
        let other = top.path().join("rules.json");
        std::fs::write(&other, file).unwrap();
        let tree: Map<String, Value> = serde_json::from_str(tree).unwrap();
        ClientRules::read(client, &tree, &[other], Path::new("/none")).about(server)
    }

    #[test]
    fn rules_of_claude_code() {
        for (file, server, wanted) in [
            (
                r#"{"permissions": {"deny": ["mcp__github__delete"], "ask": ["mcp__github"], "allow": ["mcp__github__get"]}}"#,
                "github",
                &["ask mcp__github", "deny mcp__github__delete"][..],
            ),
            (r#"{"permissions": {"deny": ["mcp__github__delete"]}}"#, "git", &[]),
            (r#"{"permissions": {"deny": ["mcp__git*"]}}"#, "github", &["deny mcp__git*"]),
            (r#"{"permissions": {"deny": ["mcp__github__*"]}}"#, "github", &["deny mcp__github__*"]),
            (r#"{"permissions": {"ask": ["mcp__*", "*", "Bash(x)"]}}"#, "github", &[]),
            (r#"{"permissions": {"deny": ["mcp__My_DB__drop"]}}"#, "My DB", &["deny mcp__My_DB__drop"]),
            (
                r#"{"hooks": {"PreToolUse": [{"matcher": "Bash|mcp__github__.*"}]}}"#,
                "github",
                &["hook for mcp__github__*"],
            ),
            (r#"{"deniedMcpServers": [{"serverName": "github"}]}"#, "github", &["deny mcp__github"]),
            (r#"{"permissions": {"deny": ["mcp__*__delete"]}}"#, "github", &["deny mcp__*__delete"]),
            (
                r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__(github|other)__delete.*"}]}}"#,
                "github",
                &["hook for mcp__(github|other)__delete.*"],
            ),
            (
                r#"{"hooks": {"PreToolUse": [{"matcher": "mcp__.*__write.*"}, {"matcher": "Bash"}, {"matcher": "*"}]}}"#,
                "github",
                &["hook for mcp__*__write*"],
            ),
        ] {
            assert_eq!(about("claude-code", "{}", file, server), wanted, "{file}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_may_have_rules() {
        let found = about("claude-code", "{}", "{broken", "github");
        assert!(found.len() == 1 && found.iter().all(|rule| rule.contains("cannot be read")), "{found:?}");
    }

    #[test]
    fn rules_of_the_repository_above_are_found() {
        let top = tempfile::tempdir().unwrap();
        let sub = top.path().join("a/b");
        std::fs::create_dir_all(&sub).unwrap();
        std::fs::create_dir_all(top.path().join(".claude")).unwrap();
        let rules = r#"{"permissions": {"deny": ["mcp__github__delete"]}}"#;
        std::fs::write(top.path().join(".claude/settings.json"), rules).unwrap();
        let found = || ClientRules::read("claude-code", &Map::new(), &[], &sub).about("github");
        assert!(found().is_empty(), "without a repository, only the directory itself");
        std::fs::create_dir(top.path().join(".git")).unwrap();
        assert_eq!(found(), ["deny mcp__github__delete"]);
    }

    #[test]
    fn rules_of_other_clients() {
        for (client, tree, file, wanted) in [
            (
                "cursor",
                "{}",
                r#"{"permissions": {"deny": ["Mcp(github:delete)"], "allow": ["Mcp(github:get)"]}}"#,
                &["deny Mcp(github:delete)"][..],
            ),
            ("gemini-cli", r#"{"mcp": {"excluded": ["github"]}}"#, "{}", &["exclude github"]),
            (
                "goose",
                "{}",
                r#"{"user": {"never_allow": ["github__delete"], "ask_before": [], "always_allow": ["github__get"]}}"#,
                &["deny github__delete"],
            ),
            (
                "opencode",
                r#"{"tools": {"github_delete": false, "github_get": true}}"#,
                "{}",
                &["disable github_delete"],
            ),
            ("kilo", r#"{"permission": {"github_*": "ask", "*": "ask"}}"#, "{}", &["permission of github_*"]),
            ("opencode", r#"{"agent": {"plan": {"tools": {"github*": false}}}}"#, "{}", &["disable github*"]),
            (
                "zed",
                r#"{"agent": {"tool_permissions": {"tools": {"mcp:github:delete": {}}}}}"#,
                "{}",
                &["rules for mcp:github:delete"],
            ),
            ("vscode", r#"{"tools": {"github_delete": false}}"#, "{}", &[]),
        ] {
            assert_eq!(about(client, tree, file, "github"), wanted, "{client}: {tree} {file}");
        }
    }

    #[test]
    fn rules_of_projects_are_found() {
        let top = tempfile::tempdir().unwrap();
        let folder = top.path().join("project/.claude");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("settings.local.json"), r#"{"permissions": {"deny": ["mcp__db__drop"]}}"#)
            .unwrap();
        let project = top.path().join("project").display().to_string();
        let tree = json!({"projects": {project: {}}});
        let known = ClientRules::read("claude-code", tree.as_object().unwrap(), &[], Path::new("/none"));
        assert_eq!(known.about("db"), ["deny mcp__db__drop"]);
        let here = ClientRules::read("claude-code", &Map::new(), &[], &top.path().join("project"));
        assert_eq!(here.about("db"), ["deny mcp__db__drop"]);
    }
}
