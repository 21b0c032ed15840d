//! `octoprox store copy`: a state directory moves to a shared database and back.

use super::postgres_schema::PostgresSchema;
use super::test_home::TestHome;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

/// A home whose settings name a schema of their own.
struct SharedHome {
    home: TestHome,
    schema: PostgresSchema,
}

impl SharedHome {
    async fn new() -> Self {
        Self { home: TestHome::new(), schema: PostgresSchema::new().await }
    }

    /// With the database in the settings.
    fn shared(&self, words: &[&str]) -> Command {
        let mut command = self.home.command(words);
        command.env("OCTOPROX_STORE_POSTGRES", self.schema.options.dsn.expose());
        command.env("OCTOPROX_STORE_SCHEMA", self.schema.options.schema.as_str());
        command.env("OCTOPROX_STORE_NODE", "hub-1").env("OCTOPROX_SECRET", "a secret that is long enough");
        command
    }

    fn run(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = self.shared(words).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        (output.status.code(), format!("{out}{err}"))
    }

    fn copy(&self, to: &str) -> Value {
        let (code, text) = self.run(&["store", "copy", "--to", to, "--json"]);
        assert_eq!(code, Some(0), "{text}");
        serde_json::from_str(&text).unwrap()
    }
}

fn set_secret(mut command: Command, value: &str) {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_state_moves_to_a_database_and_back() {
    let shared = SharedHome::new().await;
    let home = &shared.home;
    let entities = r#"entities=[{"name": "Sencha", "type": "tea", "observations": ["a green tea"]}]"#;
    home.stdout(&["call", "memory_upsert_entities", entities]);
    set_secret(home.command(&["secret", "set", "KEY"]), "of this machine");
    let head = home.stdout(&["audit", "verify"]);
    let head = head.trim().rsplit(' ').next().unwrap().to_owned();

    let copied = shared.copy("postgres");
    assert_eq!(copied["to"], json!("postgres"));
    assert_eq!(copied["counts"]["audit_records"], json!(2));
    assert_eq!(copied["counts"]["entities"], json!(1));
    assert_eq!(copied["counts"]["credentials"], json!(0));
    let (code, text) = shared.run(&["call", "memory_query", "query=green tea"]);
    assert!(code == Some(0) && text.contains("Sencha"), "{text}");
    let (code, text) = shared.run(&["audit", "verify", "--anchor", &format!("hub-1={head}")]);
    assert!(code == Some(0) && text.contains("4 records"), "{text}");

    // The directory still has its records.
    let (code, text) = shared.run(&["store", "copy", "--to", "sqlite"]);
    assert!(code == Some(1) && text.contains("audit records") && text.contains("state_dir"), "{text}");
    let state = home.path(".local/state/octoprox");
    for name in std::fs::read_dir(&state).unwrap().map(|entry| entry.unwrap().file_name()) {
        let is_kept = ["credentials.db", "seal.key"].map(std::ffi::OsStr::new).contains(&name.as_os_str());
        if !is_kept && state.join(&name).is_file() {
            std::fs::remove_file(state.join(&name)).unwrap();
        }
    }
    let (code, text) = shared.run(&["store", "copy", "--to", "sqlite"]);
    assert!(code == Some(0) && text.contains("entities               1"), "{text}");
    assert!(home.stdout(&["call", "memory_query", "query=green tea"]).contains("Sencha"));
    assert!(home.stdout(&["audit", "verify", "--anchor", &head]).starts_with("ok: 6 records"));
    assert!(shared.run(&["secret", "list"]).1.contains("KEY"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_prevents_a_copy_is_said() {
    let shared = SharedHome::new().await;
    let home = &shared.home;
    let (code, _, said) = home.run_text(&["store", "copy", "--to", "postgres"]);
    assert!(code == Some(2) && said.contains("OCTOPROX_STORE_POSTGRES"), "{said}");

    let server = home.serve(&[]);
    let (code, text) = shared.run(&["store", "copy", "--to", "postgres"]);
    assert!(code == Some(1) && text.contains("Stop all hubs"), "{text}");
    drop(server);
    shared.copy("postgres");
    let (code, text) = shared.run(&["call", "time_now"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = shared.run(&["store", "copy", "--to", "postgres"]);
    assert!(code == Some(1) && text.contains("octoprox migrate"), "{text}");
    assert!(text.contains("audit records") && !text.contains(shared.schema.options.dsn.expose()), "{text}");

    let mut other = shared.shared(&["store", "copy", "--to", "postgres"]);
    let output = other.env("OCTOPROX_STORE_SCHEMA", "test_no_such_schema").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(6) && said.contains("octoprox migrate"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_settings_may_use_a_stored_secret_of_the_directory_that_is_copied() {
    let shared = SharedHome::new().await;
    let (home, options) = (&shared.home, &shared.schema.options);
    let run = |words: &[&str]| {
        let mut command = home.command(words);
        command.env("OCTOPROX_SECRET", "a secret that is long enough");
        command
    };
    set_secret(run(&["secret", "set", "DSN"]), options.dsn.expose());
    let store = json!({"postgres": "${secret:DSN}", "schema": options.schema.as_str()});
    home.write("octoprox.yaml", &json!({"store": store}).to_string());
    let output = run(&["store", "copy", "--to", "postgres"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = run(&["store", "copy", "--to", "sqlite"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = run(&["secret", "list"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("DSN"));
}
