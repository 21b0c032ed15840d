//! `octoprox init`, from an empty home directory to an agent that calls a tool.

use super::client_files::{CLAUDE_CODE, CODEX, CURSOR, VSCODE};
use super::test_home::TestHome;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SETTINGS_FILE: &str = ".config/octoprox/octoprox.yaml";
const SERVERS_FILE: &str = ".config/octoprox/servers.yaml";

fn home_with_clients() -> TestHome {
    let home = TestHome::new();
    home.write_with_dirs(".claude.json", CLAUDE_CODE);
    home.write_with_dirs(".cursor/mcp.json", CURSOR);
    home.write_with_dirs(".config/Code/User/mcp.json", VSCODE);
    home.write_with_dirs(".codex/config.toml", CODEX);
    home
}

const CLIENT_FILES: [&str; 4] =
    [".claude.json", ".cursor/mcp.json", ".config/Code/User/mcp.json", ".codex/config.toml"];

const BACKUPS: &str = ".local/state/octoprox/init/backups";

/// Backups of clients' files, in the state directory.
fn backups(home: &TestHome) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(home.path(BACKUPS));
    let mut paths: Vec<PathBuf> = folder.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_look_before_shows_every_change_and_makes_none() {
    let home = home_with_clients();
    let (code, printed, said) = home.run_text(&["init", "--dry-run"]);
    assert_eq!(code, Some(0), "{said}");
    for name in CLIENT_FILES.iter().chain([&SETTINGS_FILE, &SERVERS_FILE]) {
        assert!(printed.contains(&format!("+++ {}\n", home.path(name).display())), "{name}: {printed}");
    }
    assert!(
        printed.contains("+[mcp_servers.octoprox]\n") && said.contains("Nothing was written."),
        "{printed}{said}"
    );
    assert!(!format!("{printed}{said}").contains("canary"), "{printed}");
    let told: Value = serde_json::from_str(&home.stdout(&["init", "--dry-run", "--json"])).unwrap();
    assert_eq!((told["planned"].as_array().unwrap().len(), &told["written"]), (6, &json!([])), "{told}");
    assert!(!home.exists(".config/octoprox"));
    assert_eq!(home.read(".claude.json"), CLAUDE_CODE);
}

#[test]
fn everything_is_set_up_and_an_agent_can_begin() {
    let home = home_with_clients();
    let (code, printed, said) = home.run_text(&["init", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    for line in [
        "added linear",
        "added github-mcp: renamed from `github`",
        "registered with Claude Code",
        "registered with Codex",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    assert!(
        said.contains("  LINEAR_KEY\n") && said.contains("Restart Claude Code, Cursor, VS Code, Codex"),
        "{said}"
    );
    assert!(said.lines().all(|line| line.chars().count() <= 80 || line.contains('/')), "{said}");
    for name in CLIENT_FILES.iter().chain([&SETTINGS_FILE, &SERVERS_FILE]) {
        // A server with an `envFile` is left to its client.
        assert_eq!(
            home.read(name).contains("canary"),
            *name == CLIENT_FILES[1],
            "{name}: {}",
            home.read(name)
        );
        assert!(!home.exists(&format!("{name}.bak-1")), "{name}: its backup may contain secrets");
    }
    let kept = backups(&home);
    assert_eq!(kept.len(), CLIENT_FILES.len(), "{kept:?}");
    for path in &kept {
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{path:?}");
    }
    assert_eq!(home.read(&format!("{BACKUPS}/.claude.json.bak-1")), CLAUDE_CODE);
    let secrets = home.stdout(&["secret", "list"]);
    assert!(secrets.contains("GITHUB_PERSONAL_ACCESS_TOKEN  used by github-mcp\n"), "{secrets}");
    // Imported servers are no longer in the clients' own lists, except those that need a variable.
    let lists = CLIENT_FILES.map(|name| home.read(name));
    for (removed, kept) in [
        ("context7", "octoprox"),
        ("\"context7\"", "Postgres (main)"),
        ("\"github\"", "linear"),
        ("\"old\"", "perplexity"),
        ("other", "docs"),
    ] {
        let found = |name: &str| lists.iter().any(|list| list.contains(name));
        assert!(!found(removed) && found(kept), "{removed}, {kept}: {lists:?}");
    }
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("Cursor: `linear` is still in its own list, because LINEAR_KEY is not set."),
        "{said}"
    );
    // Everything else in the files is unchanged.
    let registered = home.read(".config/Code/User/mcp.json");
    for line in VSCODE.lines().take(9) {
        assert!(registered.contains(line.trim_end_matches(',')), "{line}: {registered}");
    }
    assert!(
        home.read(".codex/config.toml").starts_with("model = \"gpt-5\"\napproval_policy = \"on-request\"\n")
    );
    assert_eq!(home.stdout(&["config", "check", "--config", SETTINGS_FILE]), "ok\n");
    let tools = tools_seen_by_agent(&home, &home.read(".claude.json"));
    assert!(
        tools.contains(&"tools_find".to_owned()) && tools.contains(&"fs_read_text".to_owned()),
        "{tools:?}"
    );
}

/// Starts the server in a client's file, as the client would, and lists its tools.
fn tools_seen_by_agent(home: &TestHome, settings: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(settings).unwrap();
    let entry = settings.pointer("/mcpServers/octoprox").unwrap();
    assert_eq!(entry["type"], json!("stdio"));
    let args: Vec<&str> = entry["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let mut child = Command::new(entry["command"].as_str().unwrap())
        .args(args)
        .current_dir(home.path(""))
        .env_clear()
        .env("HOME", home.path(""))
        .env("OCTOPROX_STANDALONE", "true")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut ask = |id: u32, method: &str, params: Value| -> Value {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "it ended");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id") == Some(&json!(id)) {
                return message.get("result").unwrap().clone();
            }
        }
    };
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}});
    ask(1, "initialize", hello);
    let listed = ask(2, "tools/list", json!({}));
    drop(input);
    child.wait().unwrap();
    listed
        .get("tools")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn undo_restores_every_file_and_deletes_the_secrets() {
    let home = home_with_clients();
    let before = CLIENT_FILES.map(|name| home.read(name));
    home.stdout(&["init", "--yes"]);
    // Again, with a variable that was not set: the file is restored as it was before the first run.
    assert!(home.command(&["init", "--yes"]).env("LINEAR_KEY", "k").output().unwrap().status.success());
    assert_eq!(backups(&home).len(), CLIENT_FILES.len() + 1);
    home.stdout(&["init", "--undo"]);
    assert_eq!(CLIENT_FILES.map(|name| home.read(name)), before);
    assert!(!home.exists(".config/octoprox") && backups(&home).is_empty());
    assert_eq!(home.stdout(&["secret", "list", "--json"]), "{\"secrets\":[]}\n");
    let (code, _, said) = home.run_text(&["init", "--undo"]);
    assert!(code == Some(3) && said.contains("Nothing to undo"), "{said}");
}

/// Clients write their files, too: what they changed stays.
#[test]
fn undo_keeps_later_changes_of_a_client() {
    let home = home_with_clients();
    home.stdout(&["init", "--yes"]);
    home.write(".claude.json", &home.read(".claude.json").replace("42", "43"));
    let printed = home.stdout(&["init", "--undo"]);
    let edited = format!("restored the servers in {}; other", home.path(".claude.json").display());
    assert!(printed.contains(&edited), "{printed}");
    let restored: Value = serde_json::from_str(&home.read(".claude.json")).unwrap();
    let mut expected: Value = serde_json::from_str(CLAUDE_CODE).unwrap();
    expected["numStartups"] = json!(43);
    assert_eq!(restored, expected);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
}

/// A second run completes what an interrupted one left, and restores a file that its client deleted.
#[test]
fn undo_completes_an_interrupted_undo() {
    let home = home_with_clients();
    home.stdout(&["init", "--yes"]);
    home.write(".claude.json", CLAUDE_CODE);
    std::fs::remove_file(home.path(".cursor/mcp.json")).unwrap();
    let (code, printed, said) = home.run_text(&["init", "--undo"]);
    assert_eq!(code, Some(0), "{printed}{said}");
    assert_eq!(home.read(".claude.json"), CLAUDE_CODE);
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR);
    assert!(backups(&home).is_empty() && !home.exists(".config/octoprox"), "{printed}");
}

#[test]
fn undo_keeps_what_was_changed_between_two_runs() {
    let home = TestHome::new();
    home.write_with_dirs(".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "srv-a"}}}"#);
    home.stdout(&["init", "--yes"]);
    let text = home.read(".cursor/mcp.json");
    let between = text
        .replace("\"mcpServers\": {", "\"history\": [1], \"mcpServers\": {\"b\": {\"command\": \"srv-b\"},");
    home.write(".cursor/mcp.json", &between);
    home.stdout(&["init", "--yes"]);
    let (code, printed, said) = home.run_text(&["init", "--undo"]);
    assert_eq!(code, Some(0), "{printed}{said}");
    let restored: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    let expected =
        json!({"history": [1], "mcpServers": {"a": {"command": "srv-a"}, "b": {"command": "srv-b"}}});
    assert_eq!(restored, expected, "{printed}");
    assert!(!home.exists(".config/octoprox") && backups(&home).is_empty());
}

/// Also in TOML, with tables, and under another name.
#[test]
fn undo_edits_the_files_of_all_formats() {
    let home = TestHome::new();
    let codex = "model = \"m\"\n\n[mcp_servers.docs]\ncommand = \"npx\"\n\n[mcp_servers.docs.env]\nA_TOKEN = \"x1\"\n";
    home.write_with_dirs(".codex/config.toml", codex);
    home.write_with_dirs(".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "srv-a"}}}"#);
    home.write_with_dirs(".codeium/windsurf/mcp_config.json", "{}");
    home.stdout(&["init", "--yes"]);
    home.write(
        ".codex/config.toml",
        &format!("{}\n[tui]\ntheme = \"dark\"\n", home.read(".codex/config.toml")),
    );
    home.write(".cursor/mcp.json", &home.read(".cursor/mcp.json").replace("\"octoprox\":", "\"hub\":"));
    std::fs::remove_dir_all(home.path(".codeium")).unwrap();
    home.write(SETTINGS_FILE, &format!("{}# mine\n", home.read(SETTINGS_FILE)));
    let printed = home.stdout(&["init", "--undo"]);
    assert!(
        printed.contains("octoprox.yaml: you have changed it")
            && printed.contains("removed the stored secrets: A_TOKEN"),
        "{printed}"
    );
    let restored: toml::Table = home.read(".codex/config.toml").parse().unwrap();
    let expected: toml::Table = format!("{codex}\n[tui]\ntheme = \"dark\"\n").parse().unwrap();
    assert_eq!(restored, expected);
    let cursor: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).unwrap();
    assert_eq!(cursor, json!({"mcpServers": {"a": {"command": "srv-a"}}}));
    assert!(home.run_text(&["init", "--undo"]).2.contains("Nothing to undo"));
}

/// The variables of a shell are not those of a client.
#[test]
fn variables_of_the_shell_are_stored() {
    let home = TestHome::new();
    home.write_with_dirs(".cursor/mcp.json", r#"{"mcpServers": {"v": {"command": "x", "env": {"TOK": "${env:MYTOKEN}", "ORG": "${env:MYORG}", "H": "${HOME}"}}}}"#);
    for variables in [&[][..], &[("MYTOKEN", "t1"), ("MYORG", "o1")]] {
        let output = home.command(&["init", "--yes"]).envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success());
        let is_there = home.read(".cursor/mcp.json").contains("\"v\"");
        assert_eq!(is_there, variables.is_empty(), "only a server that works is taken over");
    }
    let list = home.read(SERVERS_FILE);
    assert!(
        list.contains("${secret:MYTOKEN}") && list.contains("${secret:MYORG}") && list.contains("${HOME}"),
        "{list}"
    );
}

/// A client that still starts octoprox needs its settings.
#[test]
fn undo_leaves_the_settings_while_a_client_cannot_be_restored() {
    let home = TestHome::new();
    home.write_with_dirs(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "srv-a", "env": {"A_KEY": "k"}}}}"#,
    );
    home.stdout(&["init", "--yes"]);
    home.write(".cursor/mcp.json", &format!("{}\n", home.read(".cursor/mcp.json")));
    home.write(&format!("{BACKUPS}/mcp.json.bak-1"), "garbage");
    let (code, printed, _) = home.run_text(&["init", "--undo"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(
        printed.contains("mcp.json.bak-1 was changed") && printed.contains("a client still uses it"),
        "{printed}"
    );
    assert!(home.exists(SERVERS_FILE) && home.stdout(&["secret", "list"]).contains("A_KEY"));
}

#[test]
fn undo_keeps_secrets_with_another_value() {
    let home = TestHome::new();
    home.write_with_dirs(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "srv-a", "env": {"A_KEY": "k", "B_KEY": "l"}}}}"#,
    );
    home.stdout(&["init", "--yes"]);
    let mut set = home.command(&["secret", "set", "A_KEY"]);
    let mut child = set.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"rotated").unwrap();
    assert!(child.wait().unwrap().success());
    let printed = home.stdout(&["init", "--undo"]);
    assert!(
        printed.contains("removed the stored secrets: B_KEY\nkept the stored secrets: A_KEY\n"),
        "{printed}"
    );
}

/// What the hub cannot run stays in the client.
#[test]
fn servers_that_would_be_lost_are_left_to_the_client() {
    for (client, file, text, said) in [
        (
            "Cursor",
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "x", "envFile": ".env"}}}"#,
            "it uses envFile, which octoprox does not support",
        ),
        (
            "Gemini CLI",
            ".gemini/settings.json",
            r#"{"mcpServers": {"a": {"command": "x", "excludeTools": ["delete"]}}}"#,
            "it uses excludeTools",
        ),
        (
            "Cursor",
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"url": "unix:///x", "headers": {"Authorization": "Bearer abcdef"}}}}"#,
            "skipped a: ",
        ),
        (
            "Cursor",
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "x", "env": {"MODE": "a${b"}}}}"#,
            "`${` without a closing `}`",
        ),
        (
            "Cursor",
            ".cursor/mcp.json",
            r#"{"mcpServers": {"a": {"command": "x"}, "hub": {"command": "octoprox", "args": ["bridge", "https://x"]}}}"#,
            "starts octoprox with other settings",
        ),
    ] {
        let home = TestHome::new();
        home.write_with_dirs(file, text);
        let (code, printed, err) = home.run_text(&["init", "--yes"]);
        let all = format!("{printed}{err}").split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == Some(0) && all.contains(said), "{client}: {all}");
        let now: Value = serde_json::from_str(&home.read(file)).unwrap();
        let before: Value = serde_json::from_str(text).unwrap();
        assert_eq!(now["mcpServers"]["a"], before["mcpServers"]["a"], "{all}");
        assert_eq!(home.stdout(&["config", "check", "--config", SETTINGS_FILE]), "ok\n");
    }
}

#[test]
fn names_that_clients_cannot_distinguish_are_told_apart() {
    let home = TestHome::new();
    home.write_with_dirs(".cursor/mcp.json", r#"{"mcpServers": {"my-db": {"command": "x"}}}"#);
    home.write_with_dirs(".config/Code/User/mcp.json", r#"{"servers": {"my_db": {"command": "y"}}}"#);
    let printed = home.stdout(&["init", "--yes"]);
    assert!(printed.contains("added my-db\n") && printed.contains("added my_db-vscode: "), "{printed}");
    assert_eq!(home.stdout(&["config", "check", "--config", SETTINGS_FILE]), "ok\n");
}

/// A variable of one server is not the secret of another.
#[test]
fn a_variable_never_gets_a_stored_secret_of_its_name() {
    let home = TestHome::new();
    let list = r#"{"mcpServers": {"bank": {"command": "x", "env": {"API_KEY": "bank-secret-1"}},
        "weather": {"url": "https://weather.example/mcp", "headers": {"Authorization": "Bearer ${API_KEY}"}}}}"#;
    home.write_with_dirs(".cursor/mcp.json", list);
    for _ in 0..2 {
        home.stdout(&["init", "--yes"]);
        assert!(
            home.read(SERVERS_FILE).contains("Authorization: \"Bearer ${API_KEY}\""),
            "{}",
            home.read(SERVERS_FILE)
        );
    }
}

/// A secret of an entry that exists is stored, and an entry with another credential is kept.
#[test]
fn entries_that_exist_keep_their_credentials() {
    let home = TestHome::new();
    let entry = "servers:\n  gh:\n    command: x\n    env:\n      GH_TOKEN: \"${secret:GH_TOKEN}\" # mine\n";
    home.write_with_dirs(SERVERS_FILE, entry);
    home.write_with_dirs(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"gh": {"command": "x", "env": {"GH_TOKEN": "personal"}}}}"#,
    );
    home.stdout(&["init", "--yes"]);
    assert_eq!(home.read(SERVERS_FILE), entry);
    assert!(home.stdout(&["secret", "list"]).contains("GH_TOKEN  used by gh"));
    let home = TestHome::new();
    home.write_with_dirs(SERVERS_FILE, &entry.replace("secret:", ""));
    home.write_with_dirs(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"gh": {"command": "x", "env": {"GH_TOKEN": "personal"}}}}"#,
    );
    let output = home.command(&["import", "cursor"]).env("GH_TOKEN", "work").output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("skipped gh: it exists with another value of GH_TOKEN and is kept"),
        "{printed}"
    );
    assert_eq!(home.read(SERVERS_FILE), entry.replace("secret:", ""));
}

/// One client's file that cannot be written does not stop the others.
#[test]
fn a_client_that_cannot_be_written_is_reported() {
    let home = TestHome::new();
    home.write_with_dirs(".windsurf-is-later", "");
    home.write_with_dirs(".codeium/windsurf/mcp_config.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    std::fs::create_dir(home.path(".cursor")).unwrap();
    std::os::unix::fs::symlink("/nowhere/mcp.json", home.path(".cursor/mcp.json")).unwrap();
    let (code, printed, said) = home.run_text(&["init", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("cannot write file") && printed.contains("registered with Windsurf"),
        "{printed}{said}"
    );
    assert!(home.read(".codeium/windsurf/mcp_config.json").contains("octoprox"));
}

#[test]
fn imported_servers_stay_in_the_clients_on_request() {
    let home = home_with_clients();
    home.stdout(&["init", "--yes", "--keep", "--no-secrets"]);
    assert!(home.read(".codex/config.toml").starts_with(CODEX.trim_end()));
    assert!(home.read(SERVERS_FILE).contains("\"${GITHUB_PERSONAL_ACCESS_TOKEN}\""));
}

#[test]
fn a_second_run_changes_nothing() {
    let home = home_with_clients();
    home.stdout(&["init", "--yes"]);
    let names: Vec<&str> = CLIENT_FILES.into_iter().chain([SETTINGS_FILE, SERVERS_FILE]).collect();
    let before: Vec<String> = names.iter().map(|name| home.read(name)).collect();
    let told: Value = serde_json::from_str(&home.stdout(&["init", "--yes", "--json"])).unwrap();
    assert_eq!(
        (&told["written"], &told["added"], &told["registered"]),
        (&json!([]), &json!([]), &json!([])),
        "{told}"
    );
    assert_eq!(names.iter().map(|name| home.read(name)).collect::<Vec<_>>(), before);
    assert!(home.run(&["init", "--yes"]).stderr.windows(16).any(|part| part == b"Everything is al"));
}

#[test]
fn without_a_terminal_it_says_so_and_does_nothing() {
    let home = home_with_clients();
    let (code, printed, said) = home.run_text(&["init"]);
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("there is no terminal. Add --yes"), "{said}");
    assert!(!home.exists(".config/octoprox"));
}

#[test]
fn a_broken_client_is_left_alone_and_the_others_are_set_up() {
    let home = home_with_clients();
    home.write(".cursor/mcp.json", "{\"mcpServers\": {\"a\": canary");
    home.write(".codex/config.toml", "mcp_servers = {a = {command = \"x\"}}\n");
    let (code, printed, said) = home.run_text(&["init", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("skipped Cursor: ") && said.contains("it cannot be read"), "{said}");
    assert!(said.contains("skipped Codex: ") && said.contains("Add octoprox there yourself: "), "{said}");
    assert!(
        printed.contains("registered with Claude Code") && !printed.contains("registered with Cursor"),
        "{printed}"
    );
    assert_eq!(home.read(".cursor/mcp.json"), "{\"mcpServers\": {\"a\": canary");
    assert!(!said.contains("canary"));
    let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    assert!(!backups(&home).iter().any(|path| text(path).ends_with("canary")));
}

#[test]
fn an_empty_home_gets_settings_and_nothing_else() {
    let home = TestHome::new();
    let told: Value = serde_json::from_str(&home.stdout(&["init", "--yes", "--json"])).unwrap();
    assert_eq!(told["written"], json!([{"file": home.path(SETTINGS_FILE), "backup": null}]), "{told}");
    assert!(!home.exists(SERVERS_FILE));
    let text = home.read(SETTINGS_FILE);
    assert!(text.contains("  shell: false") && text.contains("# workspace: ~/projects\n"), "{text}");
    assert_eq!(home.stdout(&["config", "check", "--config", SETTINGS_FILE]), "ok\n");
}

/// Runs a command on a terminal and answers its questions; returns its output.
fn run_on_terminal(home: &TestHome, words: &[&str], answers: &[(&str, &str)]) -> (Option<i32>, String) {
    let controller =
        rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY).unwrap();
    rustix::pty::grantpt(&controller).unwrap();
    rustix::pty::unlockpt(&controller).unwrap();
    let name = rustix::pty::ptsname(&controller, Vec::new()).unwrap();
    let terminal = std::fs::OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = home.command(words);
    let end = || Stdio::from(OwnedFd::from(terminal.try_clone().unwrap()));
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop(command);
    drop(terminal);
    let mut controller = std::fs::File::from(controller);
    let (mut shown, mut from) = (String::new(), 0);
    let mut answers = answers.iter().peekable();
    let mut part = [0; 4096];
    // The end of a terminal is reported as an error.
    while let Ok(read @ 1..) = controller.read(&mut part) {
        shown.push_str(&String::from_utf8_lossy(part.get(..read).unwrap()));
        while let Some((question, answer)) = answers.peek() {
            let Some(at) = shown.get(from..).unwrap().find(question) else { break };
            from += at + question.len();
            controller.write_all(format!("{answer}\n").as_bytes()).unwrap();
            answers.next();
        }
    }
    (child.wait().unwrap().code(), shown)
}

#[test]
fn a_person_is_asked_and_decides() {
    let home = TestHome::new();
    home.write_with_dirs(".cursor/mcp.json", CURSOR);
    home.write_with_dirs("work/x", "");
    let work = home.path("work").display().to_string();
    let answers = [
        ("started in] ", "/no/such/folder"),
        ("started in] ", &work),
        ("shell toolbox", "perhaps"),
        ("shell toolbox", "y"),
        ("browser toolbox", "n"),
        ("database toolbox", ""),
        ("Import the 2 servers of Cursor? [Y/n] ", ""),
        ("Register octoprox with Cursor? [Y/n] ", "n"),
        ("(encrypted)? [Y/n] ", "y"),
        ("Value of LINEAR_KEY, which linear needs [skip]: ", "canary-linear"),
    ];
    let (code, shown) = run_on_terminal(&home, &["init"], &answers);
    assert_eq!(code, Some(0), "{shown}");
    for said in [
        "Directory not found: /no/such/folder",
        "Answer y or n.",
        "Import the 2 servers of Cursor? [Y/n]",
        "added linear",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let text = home.read(SETTINGS_FILE);
    assert!(
        text.contains(&format!("workspace: \"{work}\"\n"))
            && text.contains("  shell: true")
            && text.contains("  browser: false"),
        "{text}"
    );
    assert_eq!(home.read(".cursor/mcp.json"), CURSOR, "it was not to be registered");
    assert!(home.read(SERVERS_FILE).contains("Authorization: \"Bearer ${secret:LINEAR_KEY}\""));
    assert!(!shown.contains("canary") && home.stdout(&["secret", "list"]).contains("LINEAR_KEY"), "{shown}");
}
