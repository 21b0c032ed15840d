//! Trust boundaries: approval of settings, choice of the workspace, protected files, and access by other users.

use super::test_home::TestHome;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const IGNORED_MESSAGE: &str =
    "octoprox.yaml here is not approved, so it is ignored. Review it, then run `octoprox trust`.";

/// Arguments that each command needs. A command that is missing here fails the test.
const COMMAND_ARGUMENTS: &[(&str, &[&str])] = &[
    ("init", &["--dry-run"]),
    ("serve", &["--port", "0"]),
    ("worker", &[]),
    ("stdio", &[]),
    ("status", &[]),
    ("stop", &[]),
    ("logs", &[]),
    ("bridge", &["http://127.0.0.1:9"]),
    ("tools", &[]),
    ("explain surface", &[]),
    ("call", &["time_now"]),
    ("prompts list", &[]),
    ("prompts show", &["octoprox/review"]),
    ("prompts get", &["octoprox/review"]),
    ("servers list", &[]),
    ("add", &["notion", "--dry-run"]),
    ("servers install", &[]),
    ("servers add", &["notion", "--url", "https://mcp.notion.com/mcp"]),
    ("servers remove", &["helper"]),
    ("servers test", &[]),
    ("servers plan", &[]),
    ("servers diff", &["helper"]),
    ("servers effects", &["helper"]),
    ("login", &["helper"]),
    ("logout", &["helper"]),
    ("import", &["vscode", "--dry-run"]),
    ("secret set", &["KEY"]),
    ("model install", &["model.whl"]),
    ("model status", &[]),
    ("model remove", &[]),
    ("secret list", &[]),
    ("secret remove", &["KEY"]),
    ("workflow validate", &["flow.yaml"]),
    ("workflow run", &["flow.yaml"]),
    ("workflow resume", &["0"]),
    ("workflow list", &[]),
    ("workflow show", &["0"]),
    ("workflow schema", &[]),
    ("config check", &[]),
    ("config reload", &[]),
    ("config schema", &[]),
    ("config show", &[]),
    ("trust", &["--dry-run"]),
    ("doctor", &[]),
    ("audit tail", &[]),
    ("audit verify", &[]),
    ("audit export", &[]),
    ("audit prune", &["--keep-records", "1"]),
    ("migrate", &[]),
    ("fleet status", &[]),
    ("fleet metrics", &["laptop"]),
    ("fleet key", &["laptop"]),
    ("fleet nkey", &["laptop.seed"]),
    ("store copy", &["--to", "postgres"]),
    ("token new", &["me"]),
    ("token list", &[]),
    ("token revoke", &["me"]),
    ("completions", &["bash"]),
    ("healthcheck", &["--port", "1"]),
    ("man", &["man"]),
];

/// Commands that read no settings, and `trust`, which approves the file.
const WITHOUT_SETTINGS: [&str; 11] = [
    "fleet nkey",
    "init",
    "workflow schema",
    "config schema",
    "trust",
    "token new",
    "completions",
    "man",
    "status",
    "stop",
    "logs",
];

/// Home directory with a freshly cloned project.
struct ClonedProject {
    home: TestHome,
}

impl ClonedProject {
    fn new(settings: &str) -> Self {
        let home = TestHome::new();
        home.write_with_dirs("project/octoprox.yaml", settings);
        Self { home }
    }

    /// Clone whose settings files all run a program and write a log.
    fn hostile() -> Self {
        let home = TestHome::new();
        let canary = home.path("canary").display().to_string();
        let server = |name: &str| {
            let script = format!("touch {canary}-{name}; cat");
            json!({"command": "/bin/sh", "args": ["-c", script], "connect": "always"})
        };
        let settings = json!({
            "servers": {"helper": server("settings")},
            "telemetry": {"log_file": format!("{canary}-log")},
            "state_dir": format!("{canary}-state"),
        });
        home.write_with_dirs("project/octoprox.yaml", &settings.to_string());
        home.write_with_dirs(
            "project/servers.yaml",
            &json!({"servers": {"other": server("list")}}).to_string(),
        );
        home.write_with_dirs(
            "project/flow.yaml",
            "version: 1\nname: x\nsteps: [{id: a, tool: time_now, with: {}}]\n",
        );
        home.write_with_dirs(".config/Code/User/mcp.json", "{\"servers\": {}}");
        Self { home }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command.current_dir(self.home.path("project"));
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.command(words).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), format!("{out}{err}"))
    }

    /// Effects of the hostile settings that took place.
    fn executed_canaries(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.home.path("")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("canary")).collect()
    }
}

/// All commands, from the help.
fn all_commands(home: &TestHome, above: &[&str]) -> Vec<String> {
    let words: Vec<&str> = above.iter().copied().chain(["--help"]).collect();
    let help = home.stdout(&words);
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
    let listed = listed.split("\n\n").next().unwrap_or_default();
    let names = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    let names = names.into_iter().filter(|name| *name != "help");
    let all: Vec<String> = names.flat_map(|name| all_commands(home, &[above, &[name]].concat())).collect();
    if all.is_empty() { vec![above.join(" ")] } else { all }
}

#[test]
fn no_command_obeys_the_settings_of_a_cloned_project() {
    for command in all_commands(&TestHome::new(), &[]) {
        let known = COMMAND_ARGUMENTS.iter().find(|(name, _)| *name == command);
        let (_, arguments) = known.unwrap_or_else(|| panic!("`{command}` is not in the list"));
        let clone = ClonedProject::hostile();
        let words: Vec<&str> = command.split(' ').chain(arguments.iter().copied()).collect();
        let said = if command == "serve" {
            let server = clone.home.start(clone.command(&words));
            let (status, ready) = server.get("/ready", None);
            assert!(status == 200 && !ready.contains("helper"), "{ready}");
            server.stop().1
        } else {
            clone.run(&words).1
        };
        assert!(
            !said.contains("error: unexpected argument") && !said.contains("Usage:"),
            "{words:?}: {said}"
        );
        assert_eq!(clone.executed_canaries(), [""; 0], "{words:?}: {said}");
        let tells = said.contains("is not approved");
        assert!(tells || WITHOUT_SETTINGS.contains(&command.as_str()), "{words:?}: {said}");
    }
}

#[test]
fn a_person_approves_a_file_as_it_is() {
    let clone = ClonedProject::new(
        "toolboxes: {time: false}\nservers:\n  helper:\n    command: /bin/true\n    args: [x]\n",
    );
    let (code, said) = clone.run(&["config", "check"]);
    assert!(code == Some(0) && said.contains(IGNORED_MESSAGE), "{said}");
    let (code, said) = clone.run(&["trust"]);
    assert!(code == Some(2) && said.contains("--yes"), "{said}");
    assert!(said.contains("RUNS with all your permissions: /bin/true x (server helper)"), "{said}");
    assert!(said.contains("turns the time toolbox off"), "{said}");
    assert!(clone.run(&["config", "check"]).1.contains(IGNORED_MESSAGE));
    assert_eq!(clone.run(&["trust", "--yes"]).0, Some(0));
    let (code, said) = clone.run(&["config", "check"]);
    assert!(code == Some(0) && said.contains("octoprox.yaml is valid"), "{said}");
    assert!(clone.run(&["trust", "--list"]).1.contains("project/octoprox.yaml"));
    // A change by a command keeps the approval, also with a new servers.yaml.
    let (code, said) = clone.run(&["servers", "add", "notion", "--url", "https://mcp.notion.com/mcp"]);
    assert_eq!(code, Some(0), "{said}");
    let (_, said) = clone.run(&["servers", "list"]);
    assert!(said.contains("notion") && !said.contains("ignored"), "{said}");
    // Any other change does not.
    clone.home.write("project/octoprox.yaml", "servers: {x: {command: /bin/false}}");
    let (_, said) = clone.run(&["servers", "list"]);
    assert!(said.contains("has changed since it was approved, so it is ignored"), "{said}");
    assert!(!said.contains("/bin/false"), "{said}");
    assert_eq!(clone.run(&["trust", "--yes"]).0, Some(0));
    assert!(clone.run(&["servers", "list"]).1.contains("/bin/false"));
    assert_eq!(clone.run(&["trust", "--revoke", "."]).0, Some(0));
    assert!(clone.run(&["servers", "list"]).1.contains(IGNORED_MESSAGE));
    assert_eq!(clone.run(&["trust", "--revoke", "."]).0, Some(3));
}

#[test]
fn what_is_approved_is_shown() {
    let clone = ClonedProject::new(
        "# \u{202e}hidden\nservers:\n  docs:\n    command: npx\n    args: [-y, server]\n    env: {NODE_OPTIONS: --require=./.ci/hook.cjs, API_KEY: ghp_0123456789abcdefghijklmnopqrstuvwxyz}\n  recall: {command: sh, args: [-c, 'MEMORY_API_KEY=$(id) exec npx']}\n  notes: {command: python3, sandbox: {network: true, read: [/]}}\nllm: {url: 'https://203.0.113.9/v1'}\n",
    );
    let (code, card) = clone.run(&["trust", "--dry-run"]);
    assert_eq!(code, Some(0), "{card}");
    for part in [
        "NODE_OPTIONS\":\"--require=./.ci/hook.cjs",
        "sh -c \"MEMORY_API_KEY=$(id) exec npx\"",
        "sandbox: the whole network; reads [\"/\"]; writes no directory of yours",
        "sets llm.url: https://203.0.113.9/v1",
        "  | # \\u{202e}hidden",
        "  |     args: [-y, server]",
        "(a value of 40 characters)",
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
    assert!(!card.contains("ghp_0123") && !card.contains('\u{202e}'), "{card}");
    let long = "# x\n".repeat(300) + "git: {}\n";
    clone.home.write("project/octoprox.yaml", &long);
    let card = clone.run(&["trust", "--dry-run"]).1;
    assert!(!card.contains("| git: {}") && card.contains("octoprox trust --full"), "{card}");
    assert!(clone.run(&["trust", "--dry-run", "--full"]).1.contains("| git: {}"));
}

#[test]
fn a_script_of_an_approved_file_is_approved_with_it() {
    let clone = ClonedProject::new("servers: {mine: {command: /bin/sh, args: [server.sh], cwd: .}}\n");
    let script = |canary: &str| {
        let canary = clone.home.path(&format!("canary-{canary}"));
        clone.home.write("project/server.sh", &format!("touch {}\n", canary.display()));
    };
    script("approved");
    assert!(clone.run(&["trust", "--yes"]).1.contains("approved together with"), "the script is named");
    let (_, said) = clone.run(&["servers", "test", "mine"]);
    assert_eq!(clone.executed_canaries(), ["canary-approved"], "{said}");
    script("replaced");
    let (code, said) = clone.run(&["servers", "test", "mine"]);
    assert!(code != Some(0) && said.contains("is not approved as it is now"), "{said}");
    assert_eq!(clone.executed_canaries(), ["canary-approved"], "{said}");
    assert!(clone.run(&["servers", "list"]).1.contains("Review it, then run `octoprox trust`"));
    assert_eq!(clone.run(&["trust", "--yes"]).0, Some(0));
    clone.run(&["servers", "test", "mine"]);
    assert_eq!(clone.executed_canaries().len(), 2);
    // An approval that does not cover the script, as those of earlier versions, is asked for again.
    let state = ".local/state/octoprox/trusted.json";
    let mut records: Value = serde_json::from_str(&clone.home.read(state)).unwrap();
    let files = records["files"].as_array_mut().unwrap();
    files.retain(|file| !file["path"].as_str().unwrap().ends_with("server.sh"));
    clone.home.write(state, &records.to_string());
    let (code, said) = clone.run(&["servers", "test", "mine"]);
    assert!(code != Some(0) && said.contains("is not approved as it is now"), "{said}");
}

#[test]
fn a_client_that_starts_it_at_home_or_at_the_root_opens_no_folder() {
    let home = TestHome::new();
    home.write("secret.txt", "canary-1\n");
    for (folder, is) in [
        (home.path(""), "your home directory"),
        ("/".into(), "the root of the file system"),
        (home.path(".config"), "the directory of octoprox's own settings or data"),
    ] {
        std::fs::create_dir_all(&folder).unwrap();
        let call = |words: &[&str]| {
            let output = home.command(&[&["call"], words].concat()).current_dir(&folder).output().unwrap();
            let text = [output.stdout, output.stderr].concat();
            (output.status.code(), String::from_utf8_lossy(&text).into_owned())
        };
        let secret = format!("path={}", home.path("secret.txt").display());
        for words in [
            &["fs_read_text", &secret][..],
            &["fs_read_text", "path=secret.txt"],
            &["fs_read_text", "path=/etc/shadow"],
            &["fs_write_text", "path=new.txt", "text=x"],
            &["fs_roots"],
            &["fs_tree"],
            &["git", "command=status"],
            &["git_apply_patch", "patch=x"],
        ] {
            let (code, said) = call(words);
            assert_eq!(code, Some(4), "{words:?}: {said}");
            assert!(said.contains(&format!("octoprox was started in {is}")), "{words:?}: {said}");
            assert!(said.contains("Set `workspace`") && !said.contains("canary"), "{words:?}: {said}");
        }
        assert_eq!(call(&["time_now"]).0, Some(0));
        let output = home.command(&["doctor"]).current_dir(&folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(&format!("no workspace; refused: it is {is}")), "{said}");
    }
    assert!(!home.exists("new.txt"));
    let mut named = home.command(&["call", "fs_read_text", "path=secret.txt"]);
    let output = named.env("OCTOPROX_WORKSPACE", home.path("")).output().unwrap();
    assert!(output.status.success(), "a workspace that is named is opened: {output:?}");
}

/// Reads a file over stdio as a client with these roots; returns the reply, and whether the roots were requested.
fn read_with_client_roots(home: &TestHome, roots: &[std::path::PathBuf]) -> (String, bool) {
    let mut command = home.command(&["stdio"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    let client = json!({"name": "t", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": client});
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = json!({"name": "fs_read_text", "arguments": {"path": "secret.txt"}});
    say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    let (mut answer, mut is_asked) = (String::new(), false);
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message["method"] == "roots/list" {
            is_asked = true;
            let roots = roots.iter().map(|root| json!({"uri": format!("file://{}", root.display())}));
            let result = json!({"roots": roots.collect::<Vec<_>>()});
            say(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
        } else if message["id"] == 2 {
            answer = message["result"].to_string();
            break;
        }
    }
    drop(input);
    child.wait().unwrap();
    (answer, is_asked)
}

#[test]
fn a_client_at_home_may_name_its_project() {
    let home = TestHome::new();
    home.write("secret.txt", "canary-home\n");
    home.write_with_dirs("project/secret.txt", "the project\n");
    std::os::unix::fs::symlink(home.path(""), home.path("project/up")).unwrap();
    let (project, up) = (home.path("project"), home.path("project/up"));
    // Programs that the hub runs are in /usr.
    let unfit = ["/".into(), "/usr".into(), home.path(""), up, home.path(".config"), home.path("none")];
    let (answer, is_asked) = read_with_client_roots(&home, &[&unfit[..], &[project]].concat());
    assert!(is_asked && answer.contains("the project"), "{answer}");
    let (answer, is_asked) = read_with_client_roots(&home, &unfit);
    assert!(is_asked && answer.contains("in your home directory") && !answer.contains("canary"), "{answer}");
    // A configured workspace takes precedence over the client's roots.
    home.write_with_dirs("other/secret.txt", "the other\n");
    home.write_with_dirs(
        ".config/octoprox/octoprox.yaml",
        &format!("workspace: {}\n", home.path("other").display()),
    );
    let (answer, is_asked) = read_with_client_roots(&home, &[home.path("project")]);
    assert!(!is_asked && answer.contains("the other"), "{answer}");
}

/// Ways to change a file.
fn file_changing_calls(path: &str) -> Vec<(&'static str, Value)> {
    let patch =
        format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-listen: {{port: 0}}\n+listen: {{port: 1}}\n");
    let elsewhere = format!("{path}.old");
    vec![
        ("fs_write_text", json!({"path": path, "text": "evil"})),
        ("fs_append", json!({"path": path, "text": "evil"})),
        ("fs_edit", json!({"path": path, "edits": [{"old_text": "port", "new_text": "prot"}]})),
        ("fs_patch", json!({"path": ".", "patch": patch})),
        ("fs_replace", json!({"path": path, "pattern": "port", "replacement": "prot"})),
        ("fs_delete", json!({"path": path})),
        ("fs_move", json!({"source": path, "destination": elsewhere})),
        ("fs_move", json!({"source": "evil.yaml", "destination": path, "overwrite": true})),
        ("fs_copy", json!({"source": "evil.yaml", "destination": path, "overwrite": true})),
        ("git_apply_patch", json!({"repo_path": ".", "patch": patch})),
    ]
}

#[test]
fn no_tool_changes_a_settings_file_in_use() {
    let clone = ClonedProject::new("listen: {port: 0}\n");
    let at = |name: &str| clone.home.path(&format!("project/{name}"));
    clone.home.write("project/evil.yaml", "listen: {port: 2}\n");
    clone.home.write_with_dirs("project/deep/octoprox.yaml", "listen: {port: 0}\n");
    std::os::unix::fs::symlink("octoprox.yaml", at("link.yaml")).unwrap();
    std::os::unix::fs::symlink("deep", at("way")).unwrap();
    assert!(Command::new("git").args(["init", "-q"]).current_dir(at("")).status().unwrap().success());
    for file in ["octoprox.yaml", "deep/octoprox.yaml"] {
        assert_eq!(clone.run(&["trust", "--yes", file]).0, Some(0));
        let call = |tool: &str, arguments: &Value| {
            let words = ["call", tool, "--args", &arguments.to_string(), "--config", file];
            clone.run(&words)
        };
        let refused = |tool: &str, arguments: &Value| {
            let (code, said) = call(tool, arguments);
            assert_eq!(code, Some(4), "{file}: {tool} {arguments}: {said}");
            assert!(said.contains("settings of this hub"), "{file}: {tool} {arguments}: {said}");
            assert_eq!(clone.home.read(&format!("project/{file}")), "listen: {port: 0}\n");
        };
        for (tool, arguments) in file_changing_calls(file) {
            refused(tool, &arguments);
        }
        let whole = at(file).display().to_string();
        refused("fs_write_text", &json!({"path": whole, "text": "evil"}));
        let beside = file.replace("octoprox", "servers");
        refused("fs_write_text", &json!({"path": beside, "text": "evil"}));
        refused("fs_move", &json!({"source": "evil.yaml", "destination": beside}));
        assert_eq!(call("fs_read_text", &json!({"path": file})).0, Some(0), "it may be read");
        assert_eq!(call("fs_write_text", &json!({"path": "free.txt", "text": "x"})).0, Some(0));
    }
    let call = |tool: &str, arguments: Value| {
        let words = ["call", tool, "--args", &arguments.to_string(), "--config", "deep/octoprox.yaml"];
        clone.run(&words)
    };
    for (tool, arguments) in [
        ("fs_move", json!({"source": "deep", "destination": "elsewhere"})),
        ("fs_delete", json!({"path": "deep", "recursive": true})),
        ("fs_write_text", json!({"path": "way/octoprox.yaml", "text": "evil"})),
    ] {
        let (code, said) = call(tool, arguments);
        assert!(code == Some(4) && said.contains("settings of this hub"), "{tool}: {said}");
    }
    let (code, said) =
        clone.run(&["call", "fs_write_text", "path=link.yaml", "text=evil", "--config", "octoprox.yaml"]);
    assert!(code == Some(4) && said.contains("settings of this hub"), "{said}");
    assert_eq!(clone.home.read("project/octoprox.yaml"), "listen: {port: 0}\n");
}

#[test]
fn what_an_agent_plants_is_not_obeyed_at_the_next_start() {
    let clone = ClonedProject::hostile();
    for name in ["project/octoprox.yaml", "project/servers.yaml"] {
        std::fs::remove_file(clone.home.path(name)).unwrap();
    }
    let script = format!("touch {}; cat", clone.home.path("canary-planted").display());
    let server = json!({"x": {"command": "/bin/sh", "args": ["-c", script], "connect": "always"}});
    let text = format!("text={}", json!({"servers": server}));
    for name in ["octoprox.yaml", "servers.yaml"] {
        assert_eq!(clone.run(&["call", "fs_write_text", &format!("path={name}"), &text]).0, Some(0));
    }
    let (code, said) = clone.run(&["tools"]);
    assert!(code == Some(0) && said.contains(IGNORED_MESSAGE), "{said}");
    let (code, said) = clone.run(&["tools", "--config", "octoprox.yaml"]);
    assert!(code == Some(2) && said.contains("octoprox trust /"), "{said}");
    let (code, said) = clone.run(&["tools", "--servers", "servers.yaml"]);
    assert!(code == Some(2) && said.contains("octoprox trust /"), "{said}");
    // Claims a workspace elsewhere, as if the file were out of reach of tools.
    clone.home.write_with_dirs("elsewhere/x", "");
    let planted = json!({"servers": server, "workspace": clone.home.path("elsewhere")});
    clone.home.write("project/octoprox.yaml", &planted.to_string());
    let (code, said) = clone.run(&["tools", "--config", "octoprox.yaml"]);
    assert!(code == Some(2) && said.contains("octoprox trust /"), "{said}");
    assert_eq!(clone.executed_canaries(), [""; 0]);
}

#[test]
fn settings_in_a_workspace_that_is_the_home_need_approval() {
    let home = TestHome::new();
    home.write_with_dirs(".config/octoprox/octoprox.yaml", "workspace: '~'\n");
    let (code, _, said) = home.run_text(&["tools"]);
    assert!(code == Some(2) && said.contains("tools can write to the directory"), "{said}");
    home.stdout(&["trust", "--yes", ".config/octoprox/octoprox.yaml"]);
    home.stdout(&["tools"]);
    for name in [
        ".config/octoprox/octoprox.yaml",
        ".config/octoprox/servers.yaml",
        ".local/state/octoprox/trusted.json",
    ] {
        let (code, _, said) = home.run_text(&["call", "fs_write_text", &format!("path={name}"), "text=evil"]);
        assert_eq!(code, Some(4), "{name}: {said}");
    }
}

/// Status of a request by another user, or by this one.
fn http_status_as(url: &str, uid: Option<u32>, token: Option<&str>) -> String {
    let mut curl = Command::new("curl");
    curl.args(["-s", "-w", " %{http_code}", "--max-time", "10", url]);
    curl.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir("/").stdin(Stdio::null());
    if let Some(token) = token {
        curl.args(["-H", &format!("Authorization: Bearer {token}")]);
    }
    if let Some(uid) = uid {
        curl.uid(uid).gid(uid);
    }
    String::from_utf8(curl.output().unwrap().stdout).unwrap()
}

#[test]
fn without_tokens_only_the_own_user_comes_in() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for host in ["127.0.0.1", "::1"] {
        let home = TestHome::new();
        home.write("octoprox.yaml", &format!("admin: {{port: 0, host: '{host}'}}\n"));
        let server = home.serve(&["--host", host]);
        let bases =
            server.ready_line.split("http://").skip(1).map(|rest| rest.split(['/', ' ']).next().unwrap());
        let bases: Vec<&str> = bases.collect();
        assert_eq!(bases.len(), 3, "{}", server.ready_line);
        for (base, path) in
            [(bases[0], "/tools"), (bases[0], "/health"), (bases[2], "/servers"), (bases[2], "/health")]
        {
            let url = format!("http://{base}{path}");
            let own = http_status_as(&url, None, None);
            assert!(own.ends_with(" 200"), "{url}: {own}");
            let other = http_status_as(&url, Some(65_534), None);
            assert!(other.ends_with(" 403"), "{url}: {other}");
            assert!(
                other.contains("This hub answers only to the user it runs as.")
                    && other.contains("Ask the operator for a token"),
                "{other}"
            );
        }
    }
    let home = TestHome::new();
    let output = home.run(&["token", "new", "ada"]);
    let token = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let said = String::from_utf8(output.stderr).unwrap();
    home.write("octoprox.yaml", said.split_once("octoprox.yaml:").unwrap().1);
    let server = home.serve(&[]);
    let base = server.ready_line.split("http://").nth(1).unwrap().split('/').next().unwrap();
    let url = format!("http://{base}/tools");
    assert!(http_status_as(&url, Some(65_534), None).ends_with(" 401"));
    assert!(http_status_as(&url, Some(65_534), Some(&token)).ends_with(" 200"));
}
