//! The documentation's examples work as described.

use super::declared_fixture::{DeclaredFixture, echo_server};
use octo_model::Kind;
use serde_json::json;

fn example(name: &str) -> String {
    let path = format!("{}/../../docs/cookbook/declared-{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[tokio::test]
async fn find_todos_finds_them_and_nothing_is_no_failure() {
    let bench = DeclaredFixture::new(&example("find-todos"));
    std::fs::write(bench.work.join("a.rs"), "fn a() {}\n// TODO: more\n// todo: less\n").unwrap();
    let found = bench.text("find_todos", json!({})).await.unwrap();
    assert!(found.ends_with("a.rs:2:// TODO: more\n"), "{found}");
    assert_eq!(bench.text("find_todos", json!({"ignore_case": true})).await.unwrap().lines().count(), 2);
    assert_eq!(bench.text("find_todos", json!({"marker": "HACK"})).await.unwrap(), "");
    let error = bench.text("find_todos", json!({"folder": "none"})).await.unwrap_err();
    assert!(error.text().contains("No such file"), "{error}");
}

#[tokio::test]
async fn folder_sizes_measures_to_a_depth() {
    let bench = DeclaredFixture::new(&example("folder-sizes"));
    std::fs::create_dir_all(bench.work.join("one/two")).unwrap();
    assert_eq!(bench.text("folder_sizes", json!({"depth": 0})).await.unwrap().lines().count(), 1);
    assert_eq!(bench.text("folder_sizes", json!({"depth": 2})).await.unwrap().lines().count(), 3);
}

#[tokio::test]
async fn checksums_are_right_and_a_file_that_looks_like_an_option_is_one() {
    let bench = DeclaredFixture::new(&example("checksums"));
    std::fs::write(bench.work.join("--help"), "").unwrap();
    let sums = bench.text("checksums", json!({"files": ["--help", "notes.txt"]})).await.unwrap();
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  --help";
    assert_eq!(sums.lines().next(), Some(empty));
    assert_eq!(sums.lines().count(), 2);
    assert_eq!(bench.text("checksums", json!({"files": ["none"]})).await.unwrap_err().kind, Kind::Conflict);
}

#[tokio::test]
async fn package_versions_asks_for_one_package() {
    let base = echo_server().await;
    let bench = DeclaredFixture::new(&example("package-versions").replace("https://pypi.org", &base));
    let told = bench.call("package_versions", json!({"package": "requests"})).await.unwrap();
    assert_eq!(told["structuredContent"]["uri"], "/pypi/requests/json");
}

#[tokio::test]
async fn post_message_sends_structure_and_keeps_the_token() {
    let base = echo_server().await;
    let text =
        example("post-message").replace("https://chat.example.com", &base).replace("CHAT_TOKEN", "TOKEN");
    let bench = DeclaredFixture::new(&text);
    let told = bench.call("post_message", json!({"channel": "dev", "text": "two\n\"lines\""})).await.unwrap();
    let told = &told["structuredContent"];
    assert_eq!(told["uri"], "/api/channels/dev/messages");
    assert_eq!(told["authorization"], "Bearer [TOKEN]");
    assert_eq!(
        told["body"],
        json!({"text": "two\n\"lines\"", "options": {"silent": false, "source": "octoprox"}})
    );
}
