//! `octoprox secret`, and settings that use what it stores.

use super::test_home::TestHome;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

/// Stores a secret from standard input.
fn set(home: &TestHome, name: &str, value: &str) -> (Option<i32>, String) {
    let mut command = home.command(&["secret", "set", name]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

/// A home whose server writes the variable that it gets to a file, and then ends.
fn home_with_server() -> TestHome {
    let home = TestHome::new();
    let script = format!("printf %s \"$WORD\" > {}", home.path("got").display());
    let server =
        json!({"command": "/bin/sh", "args": ["-c", script], "env": {"WORD": "a ${secret:MY_WORD}!"}});
    home.write("octoprox.yaml", &json!({"servers": {"writer": server}}).to_string());
    home
}

#[test]
fn a_stored_secret_reaches_the_server_and_nothing_else() {
    let home = home_with_server();
    let listed: Value = serde_json::from_str(&home.stdout(&["servers", "list", "--json"])).unwrap();
    assert_eq!(listed["servers"][0]["state"], "waiting", "{listed}");
    let (_, shown, said) = home.run_text(&["servers", "list"]);
    assert!(format!("{shown}{said}").contains("run `octoprox secret set MY_WORD`"), "{shown}{said}");
    let (code, said) = set(&home, "MY_WORD", "canary-$x'\"\n");
    assert_eq!((code, said.as_str()), (Some(0), "Stored MY_WORD.\nUsed by: writer.\n"));
    home.run(&["servers", "test", "writer"]);
    assert_eq!(home.read("got"), "a canary-$x'\"!");
    for words in [
        &["config", "show"][..],
        &["secret", "list"],
        &["servers", "list"],
        &["servers", "test"],
        &["doctor"],
    ] {
        let (_, printed, said) = home.run_text(words);
        assert!(!format!("{printed}{said}").contains("canary"), "{words:?}: {printed}{said}");
    }
    let (code, printed, said) = home.run_text(&["secret", "remove", "MY_WORD"]);
    assert_eq!((code, printed.as_str()), (Some(0), "Removed MY_WORD.\n"));
    assert!(said.contains("It is still used by: writer."), "{said}");
    let listed = home.stdout(&["secret", "list", "--json"]);
    assert_eq!(listed, "{\"secrets\":[{\"name\":\"MY_WORD\",\"stored\":false,\"used_by\":[\"writer\"]}]}\n");
}

#[test]
fn a_running_hub_uses_a_new_value_at_once() {
    let home = home_with_server();
    let hub = home.serve(&[]);
    for value in ["one", "two"] {
        assert_eq!(set(&home, "MY_WORD", value).0, Some(0));
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !home.exists("got") || home.read("got") != format!("a {value}!") {
            assert!(std::time::Instant::now() < deadline, "the server did not get {value}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    hub.stop();
}

#[test]
fn what_cannot_be_stored_is_refused_with_what_to_do() {
    let home = TestHome::new();
    for (name, value, expected) in [
        ("MY WORD", "x", "use letters, digits"),
        ("-x", "x", "unexpected argument"),
        ("A", "", "No value given. Enter it at the prompt or pass it on standard input."),
        ("A", "\n", "No value given."),
    ] {
        let (code, said) = set(&home, name, value);
        assert!(code == Some(2) && said.contains(expected), "{name}: {said}");
    }
    let (code, said) = set(&home, "A", &"x".repeat(300 << 10));
    assert!(code == Some(1) && said.lines().count() < 4, "{said}");
    let (code, _, said) = home.run_text(&["secret", "remove", "NO"]);
    assert!(code == Some(3) && said.contains("Secret not found: `NO`. List them with"), "{said}");
    assert!(home.stdout(&["secret", "list"]).is_empty());
}

/// Otherwise the missing secret could not be stored.
#[test]
fn settings_that_lack_a_secret_can_still_be_completed() {
    let home = TestHome::new();
    home.write(
        "octoprox.yaml",
        "toolboxes: {database: true}\ndatabase: {connections: {main: '${secret:DB_URL}'}}\n",
    );
    let (code, _, said) = home.run_text(&["tools"]);
    assert_eq!(code, Some(2));
    assert!(
        said.contains(
            "database.connections.main: the secret DB_URL is not stored. Store it with `octoprox secret set DB_URL`."
        ),
        "{said}"
    );
    assert_eq!(set(&home, "DB_URL", "postgresql://ada:x@127.0.0.1:1/main").0, Some(0));
    let (code, _, said) = home.run_text(&["tools"]);
    assert_eq!(code, Some(0), "{said}");
    home.write("octoprox.yaml", "logins: {secret: '${secret:MASTER}'}\n");
    let (code, _, said) = home.run_text(&["tools"]);
    assert!(code == Some(2) && said.contains("logins.secret: stored secrets cannot be used here"), "{said}");
}

/// The value of a variable is data.
#[test]
fn variables_cannot_refer_to_secrets() {
    let home = home_with_server();
    let text = home.read("octoprox.yaml").replace("${secret:MY_WORD}", "${FROM_OUTSIDE}");
    home.write("octoprox.yaml", &text);
    assert_eq!(set(&home, "MY_WORD", "canary").0, Some(0));
    let mut command = home.command(&["servers", "test", "writer"]);
    command.env("FROM_OUTSIDE", "${secret:MY_WORD}").output().unwrap();
    assert_eq!(home.read("got"), "a ${secret:MY_WORD}!");
}

/// Settings that cannot be used are reported without the secrets in them.
#[test]
fn problems_of_settings_do_not_show_secrets() {
    let home = TestHome::new();
    assert_eq!(set(&home, "HOOK", "hooks.example/canary-77").0, Some(0));
    for text in
        ["listen: {port: '${secret:HOOK}'}", "servers: {c: {type: openapi, document: '${secret:HOOK}'}}"]
    {
        home.write("octoprox.yaml", text);
        for words in [&["config", "check"][..], &["doctor"], &["tools", "--json"]] {
            let (_, printed, said) = home.run_text(words);
            assert!(!format!("{printed}{said}").contains("canary"), "{words:?}: {printed}{said}");
        }
    }
}

#[test]
fn secrets_that_cannot_be_opened_disable_their_servers_and_say_why() {
    let home = home_with_server();
    let mut command = home.command(&["secret", "set", "MY_WORD"]);
    command.env("OCTOPROX_SECRET", "a-master-secret-of-one-shell");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    assert!(child.wait().unwrap().success());
    let (_, printed, said) = home.run_text(&["servers", "list"]);
    let all = format!("{printed}{said}");
    assert!(all.contains("cannot be read") && !all.contains("secret set"), "{all}");
}
