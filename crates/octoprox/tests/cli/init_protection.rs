//! What `octoprox init` must not take away: rules of clients, and the secrecy of what it stores.

use super::test_home::TestHome;

const SERVERS_FILE: &str = ".config/octoprox/servers.yaml";

/// Behind octoprox a tool has another name, which the client's rules do not match.
#[test]
fn a_server_with_rules_of_its_client_stays_there() {
    let home = TestHome::new();
    let list = r#"{"mcpServers": {"github": {"command": "x"}, "free": {"command": "y"}}}"#;
    home.write_with_dirs(".claude.json", list);
    home.write_with_dirs(
        ".claude/settings.json",
        r#"{"permissions": {"deny": ["mcp__github__delete_repository"], "allow": ["mcp__free__x"]}}"#,
    );
    // The same server in another client: through octoprox it would be in both.
    home.write_with_dirs(".cursor/mcp.json", r#"{"mcpServers": {"gh": {"command": "x"}}}"#);
    let (code, printed, said) = home.run_text(&["init", "--yes"]);
    assert_eq!(code, Some(0), "{said}");
    let all = format!("{printed}{said}").split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(all.contains("(deny mcp__github__delete_repository), so it stays there"), "{all}");
    assert!(all.contains("skipped gh: ") && all.contains("Claude Code: deny mcp__github"), "{all}");
    assert!(home.read(".claude.json").contains("\"github\"") && !home.read(".claude.json").contains("free"));
    assert!(home.read(".cursor/mcp.json").contains("\"gh\""));
    assert!(!home.read(SERVERS_FILE).contains("github") && !home.read(SERVERS_FILE).contains("gh:"));
    // An import on request says it.
    let said = home.run_text(&["import", "claude-code", "--dry-run"]);
    let said = format!("{}{}", said.1, said.2).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("rules of the client that do not apply here: deny mcp__github"), "{said}");
}

/// Whoever reads the record could try values until one has its digest.
#[test]
fn the_record_has_no_plain_digest_of_a_secret() {
    let home = TestHome::new();
    home.write_with_dirs(
        ".cursor/mcp.json",
        r#"{"mcpServers": {"a": {"command": "srv-a", "env": {"A_KEY": "k"}}}}"#,
    );
    home.stdout(&["init", "--yes"]);
    let folder = home.path(".local/state/octoprox/init");
    let record = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let record = record.filter(|path| path.extension().is_some_and(|ending| ending == "json"));
    let text: String = record.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    // SHA-256 of `k`.
    let plain = "8254c329a92850f6d539dd376f4816ee2764517da5e0235514af433164480d7a";
    assert!(text.contains("A_KEY") && !text.contains(plain), "{text}");
    // A record of an earlier version has plain ones, and can still be undone.
    let keyed = text.split("hmac-sha256:").count();
    assert!(keyed > 3, "{text}");
    home.stdout(&["init", "--undo"]);
    assert_eq!(home.stdout(&["secret", "list", "--json"]), "{\"secrets\":[]}\n");
}
