//! `octoprox import` with the files of each client.

use super::client_files::{CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, CURSOR, VSCODE};
use super::test_home::TestHome;
use serde_json::{Value, json};

const SERVERS_FILE: &str = ".config/octoprox/servers.yaml";

fn home_with_all_clients() -> TestHome {
    let home = TestHome::new();
    home.write_with_dirs(".claude.json", CLAUDE_CODE);
    home.write_with_dirs(".config/Claude/claude_desktop_config.json", CLAUDE_DESKTOP);
    home.write_with_dirs(".cursor/mcp.json", CURSOR);
    home.write_with_dirs(".config/Code/User/mcp.json", VSCODE);
    home.write_with_dirs(".codex/config.toml", CODEX);
    home
}

#[test]
fn servers_of_every_client_are_taken_over_without_their_secrets() {
    let home = home_with_all_clients();
    let (mut secrets, mut variables) = (Vec::new(), Vec::new());
    for (client, added) in [
        ("claude", &["context7", "github-mcp", "filesystem-mcp"][..]),
        ("cursor", &["linear", "Postgres-main"]),
        ("vscode", &["perplexity", "old"]),
        ("codex", &["docs", "local", "off"]),
    ] {
        let told: Value = serde_json::from_str(&home.stdout(&["import", client, "--json"])).unwrap();
        let names: Vec<&str> =
            told["added"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
        assert_eq!(names, added, "{client}: {told}");
        for (key, names) in [("secrets", &mut secrets), ("variables", &mut variables)] {
            names.extend(told[key].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()));
        }
    }
    let list = home.read(SERVERS_FILE);
    assert!(!list.contains("canary"), "{list}");
    for line in [
        "GITHUB_PERSONAL_ACCESS_TOKEN: \"${secret:GITHUB_PERSONAL_ACCESS_TOKEN}\"",
        "CONTEXT7_API_KEY: \"${secret:CONTEXT7_CONTEXT7_API_KEY}\"",
        "LOG_LEVEL: \"${LOG_LEVEL:-info}\"",
        "Authorization: \"Bearer ${LINEAR_KEY}\"",
        "postgresql://ada:${secret:POSTGRES_MAIN_PASSWORD}@db.test/main",
        "PERPLEXITY_API_KEY: \"${PERPLEXITY_KEY}\"",
        "Authorization: \"Bearer ${DOCS_TOKEN}\"",
        "timeout_seconds: 45",
        "LANGUAGE: \"${LANGUAGE:-}\"",
        "enabled: false",
    ] {
        assert!(list.contains(line), "{line} is not in\n{list}");
    }
    variables.sort();
    assert_eq!(variables, ["DOCS_TOKEN", "LINEAR_KEY", "PERPLEXITY_KEY"]);
    secrets.sort();
    let expected = [
        "CONTEXT7_CONTEXT7_API_KEY",
        "GITHUB_PERSONAL_ACCESS_TOKEN",
        "LOCAL_API_KEY",
        "POSTGRES_MAIN_PASSWORD",
    ];
    assert_eq!(secrets, expected);
    // The hub loads the written file and skips servers with unset variables.
    let listed: Value = serde_json::from_str(&home.stdout(&["servers", "list", "--json"])).unwrap();
    let states: Vec<(&str, &str)> = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["name"].as_str().unwrap(), it["state"].as_str().unwrap()))
        .collect();
    assert!(states.contains(&("linear", "waiting")) && states.contains(&("old", "ready")), "{states:?}");
    assert!(
        states.contains(&("off", "off")) && states.contains(&("filesystem-mcp", "missing")),
        "{states:?}"
    );
    assert!(home.stdout(&["call", "time_now"]).contains("timezone"));
    for (name, text) in
        [(".claude.json", CLAUDE_CODE), (".cursor/mcp.json", CURSOR), (".codex/config.toml", CODEX)]
    {
        assert_eq!(home.read(name), text, "the client's own file is only read");
    }
}

#[test]
fn taking_over_twice_changes_nothing_and_what_is_there_stays() {
    let home = home_with_all_clients();
    home.write_with_dirs(SERVERS_FILE, "# mine\nservers:\n  linear: {command: my-own} # this one\n");
    let (code, printed, said) = home.run_text(&["import", "cursor"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(printed.contains("added Postgres-main: renamed from `Postgres (main)`"), "{printed}");
    assert!(printed.contains("skipped linear: another server of this name exists and is kept"), "{printed}");
    assert!(said.contains("  POSTGRES_MAIN_PASSWORD\n") && said.contains("servers.yaml.bak-1"), "{said}");
    let list = home.read(SERVERS_FILE);
    assert!(
        list.starts_with("# mine\nservers:\n  linear: {command: my-own} # this one\n  Postgres-main:\n"),
        "{list}"
    );
    let again = home.stdout(&["import", "cursor"]);
    assert!(again.contains("skipped Postgres-main: already exists"), "{again}");
    assert_eq!(home.read(SERVERS_FILE), list);
    assert!(!home.exists(&format!("{SERVERS_FILE}.bak-2")));
}

#[test]
fn secrets_become_variables_on_request_and_in_other_files() {
    for words in [&["import", "claude", "--no-secrets"][..], &["import", "claude", "--to", "out.yaml"]] {
        let home = home_with_all_clients();
        let (code, printed, said) = home.run_text(words);
        assert_eq!(code, Some(0), "{said}");
        assert!(
            printed.contains("added github") && said.contains("  GITHUB_PERSONAL_ACCESS_TOKEN\n"),
            "{said}"
        );
        let file = if words.contains(&"--to") { "out.yaml" } else { SERVERS_FILE };
        assert!(
            home.read(file).contains("GITHUB_PERSONAL_ACCESS_TOKEN: \"${GITHUB_PERSONAL_ACCESS_TOKEN}\"")
        );
        assert_eq!(home.stdout(&["secret", "list", "--json"]), "{\"secrets\":[]}\n");
        // With the values stored later, the same import uses them.
        if file == SERVERS_FILE {
            home.stdout(&["import", "claude"]);
            assert!(
                home.read(file).contains("\"${secret:GITHUB_PERSONAL_ACCESS_TOKEN}\""),
                "{}",
                home.read(file)
            );
        }
    }
}

#[test]
fn a_look_before_writes_nothing_and_tells_no_secret() {
    let home = home_with_all_clients();
    for client in ["claude", "cursor", "vscode", "codex"] {
        let (code, printed, said) = home.run_text(&["import", client, "--dry-run"]);
        assert_eq!(code, Some(0), "{said}");
        assert!(printed.contains("--- /dev/null\n+++ ") && printed.contains("+servers:\n"), "{printed}");
        assert!(!format!("{printed}{said}").contains("canary"), "{printed}{said}");
        assert!(!home.exists(SERVERS_FILE));
    }
}

#[test]
fn a_file_in_another_place_is_named() {
    let home = TestHome::new();
    home.write_with_dirs(
        "shop/.vscode/mcp.json",
        r#"{"servers": {"a": {"command": "${workspaceFolder}/run", "cwd": "${workspaceFolder}"}}}"#,
    );
    home.stdout(&["import", "vscode", "--file", "shop/.vscode/mcp.json", "--to", "mine.yaml"]);
    let list = home.read("mine.yaml");
    assert!(list.contains(&format!("command: {}/run\n", home.path("shop").display())), "{list}");
    home.stdout(&["import", "vscode", "--file", "shop/.vscode/mcp.json", "--to", "mine.json"]);
    let list: Value = serde_json::from_str(&home.read("mine.json")).unwrap();
    assert_eq!(list["mcpServers"]["a"]["cwd"], json!(home.path("shop")));
}

/// Clients start servers in a project; octoprox does so only if the settings say so.
#[test]
fn a_server_with_relative_files_gets_a_directory() {
    let home = TestHome::new();
    home.write_with_dirs(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"mine": {"command": "./run"}, "plain": {"command": "npx", "args": ["-y", "some"]}}}"#,
    );
    let printed = home.stdout(&["import", "cursor"]);
    assert!(printed.contains("added mine: starts in ${workspace}, because it names `./run`"), "{printed}");
    assert!(printed.contains("added plain\n"), "{printed}");
    let list = home.read(SERVERS_FILE);
    assert_eq!(list.matches("cwd:").count(), 1, "{list}");
    let printed = home.stdout(&["import", "cursor"]);
    assert!(printed.contains("skipped mine: already exists"), "{printed}");
    // As an earlier version has written it.
    let lines = list.lines().filter(|line| !line.contains("cwd:"));
    home.write(SERVERS_FILE, &lines.map(|line| format!("{line}\n")).collect::<String>());
    let printed = home.stdout(&["import", "cursor"]);
    assert!(printed.contains("skipped mine: already exists"), "{printed}");
}

#[test]
fn broken_files_are_told_of_in_a_sentence() {
    for (client, path, text, code, says) in [
        ("claude", ".claude.json", "{\"mcpServers\": {\"a\": ", 2, "it cannot be read: EOF"),
        ("cursor", ".cursor/mcp.json", "[1, 2]", 2, "it is not a map of settings"),
        (
            "cursor",
            ".cursor/mcp.json",
            "{\"mcpServers\": {\"a\": \"canary\", \"b\": {}}}",
            0,
            "skipped `a`: not a server",
        ),
        (
            "vscode",
            ".config/Code/User/mcp.json",
            "{\"servers\": {\"a\": {\"url\": 5}}, }}",
            2,
            "it cannot be read",
        ),
        ("codex", ".codex/config.toml", "[mcp_servers.a\ncommand = \"canary\"\n", 2, "in line"),
        ("codex", ".codex/config.toml", "", 0, ""),
        ("codex", "elsewhere", "", 3, "File not found: "),
    ] {
        let home = TestHome::new();
        home.write_with_dirs(path, text);
        let (exit, printed, said) = home.run_text(&["import", client]);
        assert_eq!(exit, Some(code), "{text}: {printed}{said}");
        assert!(said.contains(says) && !said.contains("canary"), "{text}: {said}");
    }
}

#[test]
fn an_entry_that_cannot_work_is_skipped_with_a_reason() {
    let home = TestHome::new();
    home.write_with_dirs(".cursor/mcp.json", r#"{"mcpServers": {"none": {}, "both": {"command": "x", "url": "https://y"}, "fine": {"command": "x"}}}"#);
    let (code, printed, _) = home.run_text(&["import", "cursor"]);
    assert_eq!(code, Some(0));
    assert!(
        printed.contains("skipped none: neither `command` nor `url` is set. Set one of them."),
        "{printed}"
    );
    assert!(printed.contains("skipped both: ") && printed.contains("added fine\n"), "{printed}");
}

/// Other products have other formats; nothing must look imported.
#[test]
fn a_file_without_servers_is_an_error() {
    let home = TestHome::new();
    home.write("opencode.json", r#"{"plugins": {"notes": {"type": "local", "command": ["notes"]}}}"#);
    let (code, printed, said) = home.run_text(&["import", "claude", "--file", "opencode.json"]);
    assert_eq!((code, printed.as_str()), (Some(2), ""), "{said}");
    assert!(said.contains("opencode.json: no servers found. They are expected under `mcpServers`"), "{said}");
}
