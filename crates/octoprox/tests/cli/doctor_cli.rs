//! `octoprox doctor`.

use super::test_home::TestHome;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;

fn findings(home: &TestHome, path: &str) -> (Option<i32>, Value) {
    let output = home.command(&["doctor", "--json"]).env("PATH", path).output().unwrap();
    let told = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output.status.code(), told)
}

fn checks_named<'a>(told: &'a Value, name: &str) -> Vec<&'a Value> {
    told["checks"].as_array().unwrap().iter().filter(|check| check["name"] == name).collect()
}

#[test]
fn a_sound_machine_is_called_so() {
    let home = TestHome::new();
    home.write("octoprox.yaml", "listen: {port: 0}\nservers: {a: {command: /bin/sh}}\n");
    let (code, told) = findings(&home, "/usr/local/bin:/usr/bin:/bin");
    assert_eq!((code, &told["ok"]), (Some(0), &json!(true)), "{told}");
    for name in ["settings", "workspace", "git", "chromium", "bubblewrap", "data", "port", "server"] {
        assert_eq!(checks_named(&told, name).len(), 1, "{name}: {told}");
    }
    assert_eq!(checks_named(&told, "port")[0]["state"], "ok");
    for check in told["checks"].as_array().unwrap() {
        let next = check["hint"].as_str().unwrap_or_default();
        assert_eq!(next.is_empty(), check["state"] == "ok", "whatever is not ok has a next step: {check}");
    }
}

#[test]
fn what_is_missing_is_named_with_the_next_step() {
    let home = TestHome::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.write_with_dirs("data/x", "");
    std::fs::set_permissions(home.path("data"), std::fs::Permissions::from_mode(0o755)).unwrap();
    home.write_with_dirs(".cursor/mcp.json", "{broken");
    home.write(
        "octoprox.yaml",
        &format!("listen: {{port: {port}}}\nstate_dir: data\ntoolboxes: {{browser: true}}\nservers:\n  a: {{command: no-such}}\n  b: {{command: x, env: {{A: '${{NONE}}'}}}}\n"),
    );
    let (code, told) = findings(&home, "/nowhere");
    assert_eq!((code, &told["ok"]), (Some(1), &json!(false)), "{told}");
    for (name, state, says, next) in [
        ("git", "warn", "not in PATH", "Install git"),
        ("chromium", "fail", "Chromium is not in PATH", "Install chromium"),
        ("bubblewrap", "warn", "bwrap not found", "Install bubblewrap"),
        ("data", "warn", "mode 755", "chmod 700"),
        ("port", "warn", "in use", "listen.port"),
        ("client", "warn", "Cursor", "Fix that file"),
    ] {
        let found = checks_named(&told, name);
        assert_eq!(found[0]["state"], state, "{told}");
        assert!(found[0]["message"].as_str().unwrap().contains(says), "{told}");
        assert!(found[0]["hint"].as_str().unwrap().contains(next), "{told}");
    }
    let servers = checks_named(&told, "server");
    assert_eq!((&servers[0]["state"], &servers[1]["state"]), (&json!("fail"), &json!("warn")), "{told}");
    assert!(servers[1]["hint"].as_str().unwrap().contains("Set NONE"), "{told}");
}

#[test]
fn broken_settings_fail_and_the_rest_is_still_looked_at() {
    let home = TestHome::new();
    home.write("octoprox.yaml", "lisen: {port: 1}\n");
    let (code, printed, _) = home.run_text(&["doctor"]);
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("FAIL  settings") && printed.contains("Did you mean `listen`?"), "{printed}");
    assert!(printed.contains("  workspace ") && printed.contains("  port "), "{printed}");
    assert!(printed.lines().all(|line| line.chars().count() <= 80 || !line.contains(' ')), "{printed}");
}
