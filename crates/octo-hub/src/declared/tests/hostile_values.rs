//! Values that try to become something else.

use super::declared_fixture::{DeclaredFixture, echo_server};
use octo_model::Kind;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const HOSTILE_VALUES: [&str; 36] = [
    "$(touch x)",
    "`touch x`",
    "; touch x",
    "&& touch x",
    "|| touch x",
    "| touch x",
    "> x",
    "< /etc/passwd",
    "& touch x &",
    "a\ntouch x",
    "a\r\ntouch x",
    "a\u{0}b",
    "\u{1b}]0;x\u{7}",
    "--flag",
    "-rf",
    "-",
    "--",
    "--output=x",
    "../secret.txt",
    "../../../../etc/passwd",
    "/etc/passwd",
    "..",
    ".",
    "",
    "*",
    "~/x",
    "${HOME}",
    "$TOKEN",
    "{{env.TOKEN}}",
    "{{other}}",
    "'; touch x; '",
    "\"; touch x; \"",
    "\\",
    "%2e%2e%2f",
    "a?b=c&d=e#f",
    "@evil.example:80/",
];

fn files(bench: &DeclaredFixture) -> BTreeSet<String> {
    let entries = std::fs::read_dir(&bench.work).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_command_gets_the_value_as_it_is_or_not_at_all() {
    let bench = DeclaredFixture::new(
        r#"
tools:
  show:
    description: Prints each of its arguments in brackets.
    effect: writes
    parameters:
      value: {description: A value., required: true}
    command: {argv: [printf, "[%s]", "{{value}}", "part:{{value}}"]}
  guarded:
    description: The same behind the end of options.
    effect: writes
    parameters:
      value: {description: A value., required: true, multiline: true}
    command: {argv: [printf, "[%s]", --, "{{value}}"]}
"#,
    );
    let before = files(&bench);
    for value in HOSTILE_VALUES {
        let refused = value.starts_with('-') || value.chars().any(char::is_control);
        match bench.text("show", json!({"value": value})).await {
            Ok(text) => {
                assert!(!refused, "{value:?}");
                assert_eq!(text, format!("[{value}][part:{value}]"), "{value:?}");
            }
            Err(error) => {
                assert!(refused, "{value:?}: {error}");
                assert_eq!(error.kind, Kind::Invalid, "{value:?}");
            }
        }
        let strange = value.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
        match bench.text("guarded", json!({"value": value})).await {
            Ok(text) => assert_eq!(text, format!("[--][{value}]"), "{value:?}"),
            Err(error) => assert!(strange, "{value:?}: {error}"),
        }
    }
    assert_eq!(files(&bench), before);
}

#[tokio::test]
async fn a_command_reads_nothing_beyond_the_workspace_and_the_system() {
    let bench = DeclaredFixture::new(
        r#"
tools:
  show_file:
    description: Prints a file.
    effect: reads
    parameters:
      file: {description: A file., required: true}
    command: {argv: [cat, --, "{{file}}"]}
"#,
    );
    assert_eq!(bench.text("show_file", json!({"file": "notes.txt"})).await.unwrap(), "alpha\nbeta\ngamma\n");
    let beyond = bench.work.parent().unwrap().join("secret.txt").display().to_string();
    for file in ["../secret.txt", "./../secret.txt", beyond.as_str(), "../tools/tools.yaml"] {
        let error = bench.text("show_file", json!({"file": file})).await.unwrap_err();
        assert!(!error.text().contains("beyond the workspace"), "{file}: {error}");
    }
}

#[tokio::test]
async fn a_request_carries_the_value_in_its_place_or_not_at_all() {
    let base = echo_server().await;
    let bench = DeclaredFixture::new(&format!(
        r#"
tools:
  send:
    description: Sends a value in every place.
    effect: writes
    output: json
    parameters:
      value: {{description: A value., required: true}}
    request:
      method: POST
      base: {base}/things
      path: ["{{{{value}}}}", end]
      query: {{q: "{{{{value}}}}", fixed: "1"}}
      headers: {{X-Note: "{{{{value}}}}"}}
      json: {{whole: "{{{{value}}}}", part: "v={{{{value}}}}", deep: {{list: ["{{{{value}}}}"]}}}}
"#
    ));
    let host = base.trim_start_matches("http://").to_owned();
    let usual =
        bench.call("send", json!({"value": "x"})).await.unwrap()["structuredContent"]["headers"].clone();
    for value in HOSTILE_VALUES {
        let refused = matches!(value, "" | "." | "..") || value.chars().any(char::is_control);
        let told = match bench.call("send", json!({"value": value})).await {
            Ok(told) => told["structuredContent"].clone(),
            Err(error) => {
                assert!(refused, "{value:?}: {error}");
                assert_eq!(error.kind, Kind::Invalid, "{value:?}");
                continue;
            }
        };
        assert!(!refused, "{value:?}");
        assert_eq!(told["host"], host, "{value:?}");
        assert_eq!(told["headers"], usual, "{value:?}");
        assert_eq!(told["note"].as_str().unwrap().trim(), value.trim(), "{value:?}");
        let uri = url::Url::parse(&format!("http://h{}", told["uri"].as_str().unwrap())).unwrap();
        let segments: Vec<&str> = uri.path_segments().unwrap().collect();
        assert_eq!((segments.len(), segments[0], segments[2]), (3, "things", "end"), "{value:?}");
        let pairs: Vec<(String, String)> = uri.query_pairs().into_owned().collect();
        assert_eq!(pairs, [("q".to_owned(), value.to_owned()), ("fixed".to_owned(), "1".to_owned())]);
        let wanted: Value = json!({"whole": value, "part": format!("v={value}"), "deep": {"list": [value]}});
        assert_eq!(told["body"], wanted, "{value:?}");
    }
}
