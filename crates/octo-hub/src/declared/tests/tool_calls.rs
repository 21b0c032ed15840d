//! Results of calls.

use super::declared_fixture::{DeclaredFixture, echo_server};
use octo_model::Kind;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

const COMMANDS: &str = r#"
tools:
  count_lines:
    title: Count lines
    description: Counts the lines of a file.
    effect: reads
    parameters:
      file: {type: path, description: The file., required: true}
    command: {argv: [wc, -l, --, "{{file}}"]}
  shout:
    description: Turns a text into capitals.
    effect: reads
    parameters:
      text: {description: The text., required: true, multiline: true}
    command: {argv: [tr, "a-z", "A-Z"], stdin: "{{text}}"}
  as_json:
    description: Prints JSON.
    effect: reads
    output: json
    parameters:
      shape: {description: What to print., enum: ['{"a": 1}', '[1]', 'no'], default: '{"a": 1}'}
    command: {argv: [printf, "%s", "{{shape}}"]}
  touch:
    description: Makes a file.
    effect: writes
    parameters:
      name: {description: Its name., required: true, pattern: "[a-z]+"}
    command: {argv: [touch, "{{name}}"]}
  touch_reading:
    description: Says that it reads, and writes.
    effect: reads
    command: {argv: [touch, planted]}
  tells:
    description: Prints a variable of its environment.
    effect: reads
    parameters:
      word: {description: A word., default: none}
    command:
      argv: [sh, -c, 'printf "%s %s" "$TOKEN" "$WORD"']
      env: {TOKEN: "{{env.TOKEN}}", WORD: "{{word}}"}
  lacks:
    description: Needs a variable that is not there.
    command: {argv: ["true"], env: {X: "{{env.NOBODY}}"}}
  slow:
    description: Takes too long.
    effect: reads
    timeout_seconds: 1
    command: {argv: [sleep, "20"]}
  fails:
    description: Fails in its own words.
    effect: reads
    command: {argv: [ls, /does-not-exist]}
  searches:
    description: Finds nothing without failing.
    effect: reads
    command: {argv: [grep, nothing, notes.txt], ok_exit: [0, 1]}
"#;

#[tokio::test]
async fn commands_run_in_the_sandbox_and_answer() {
    let bench = DeclaredFixture::new(COMMANDS);
    let real = bench.work.join("notes.txt").display().to_string();
    assert_eq!(bench.text("count_lines", json!({"file": "notes.txt"})).await.unwrap(), format!("3 {real}\n"));
    assert_eq!(bench.text("shout", json!({"text": "two\nlines $(x)"})).await.unwrap(), "TWO\nLINES $(X)");
    assert_eq!(bench.call("as_json", json!({})).await.unwrap()["structuredContent"], json!({"a": 1}));
    let list = bench.call("as_json", json!({"shape": "[1]"})).await.unwrap();
    assert_eq!(list["structuredContent"], json!({"result": [1]}));
    bench.text("touch", json!({"name": "made"})).await.unwrap();
    assert!(bench.work.join("made").exists());
    assert_eq!(bench.text("searches", json!({})).await.unwrap(), "");
    assert_eq!(bench.text("tells", json!({"word": "hello"})).await.unwrap(), "[TOKEN] hello");
}

#[tokio::test]
async fn commands_that_fail_say_why() {
    let bench = DeclaredFixture::new(COMMANDS);
    for (name, arguments, kind, said) in [
        ("fails", json!({}), Kind::Conflict, "No such file"),
        ("slow", json!({}), Kind::Timeout, "timed out after 1 s"),
        ("touch_reading", json!({}), Kind::Conflict, "exited with code"),
        ("as_json", json!({"shape": "no"}), Kind::Unavailable, "JSON"),
        ("lacks", json!({}), Kind::Unavailable, "NOBODY"),
        ("count_lines", json!({"file": "../secret.txt"}), Kind::Invalid, "`..`"),
        ("count_lines", json!({"file": "/etc/passwd"}), Kind::Denied, ""),
        ("count_lines", json!({}), Kind::Invalid, "missing"),
        ("nobody", json!({}), Kind::NotFound, "nobody"),
    ] {
        let error = bench.call(name, arguments).await.unwrap_err();
        assert_eq!(error.kind, kind, "{name}: {error}");
        assert!(error.text().contains(said), "{name}: {error}");
    }
    assert!(!bench.work.join("planted").exists());
}

#[tokio::test]
async fn definitions_have_a_schema_and_the_four_hints() {
    let bench = DeclaredFixture::new(COMMANDS);
    let listing = bench.source.listing().borrow().clone();
    let of = |name: &str| -> Value {
        let tool = listing.listing.tools.iter().find(|tool| tool.key == name).unwrap();
        assert!(tool.effect_origin.is_trusted());
        tool.members.to_json().to().unwrap()
    };
    let count = of("count_lines");
    assert_eq!(
        count["inputSchema"],
        json!({"type": "object", "properties": {"file": {"type": "string", "description": "The file.", "maxLength": 10_000}},
            "required": ["file"], "additionalProperties": false})
    );
    assert_eq!(count["annotations"]["readOnlyHint"], true);
    assert_eq!(of("touch")["inputSchema"]["properties"]["name"]["pattern"], "^(?:[a-z]+)$");
    assert_eq!(of("touch")["annotations"]["destructiveHint"], false);
    assert_eq!(of("lacks")["annotations"]["destructiveHint"], true);
    assert_eq!(of("lacks")["title"], "lacks");
}

#[tokio::test]
async fn requests_are_sent_and_answers_given() {
    let base = echo_server().await;
    let bench = DeclaredFixture::new(&format!(
        r#"
tools:
  look:
    description: Looks something up.
    effect: reads
    output: json
    parameters:
      id: {{type: integer, description: Which., required: true, min: 1}}
      tags: {{type: array, description: More., max: 3}}
    request:
      base: {base}/items/
      path: ["{{{{id}}}}"]
      query: {{tag: "{{{{tags}}}}"}}
      headers: {{Authorization: "Bearer {{{{env.TOKEN}}}}"}}
  gone: {{description: Is not there., request: {{base: {base}/missing}}}}
  broken: {{description: Is broken., request: {{base: {base}/broken}}}}
  private: {{description: Is not allowed., request: {{base: "http://127.0.0.2:9/"}}}}
"#
    ));
    let told = bench.call("look", json!({"id": 7, "tags": ["a b", "c"]})).await.unwrap();
    let told = &told["structuredContent"];
    assert_eq!(
        (told["method"].as_str(), told["uri"].as_str()),
        (Some("GET"), Some("/items/7?tag=a+b&tag=c"))
    );
    assert_eq!(told["authorization"], "Bearer [TOKEN]");
    for (name, kind) in [("gone", Kind::NotFound), ("broken", Kind::Unavailable), ("private", Kind::Denied)] {
        assert_eq!(bench.call(name, json!({})).await.unwrap_err().kind, kind, "{name}");
    }
}

#[tokio::test]
async fn a_changed_file_is_seen_and_a_broken_one_takes_its_tools_with_it() {
    let bench = DeclaredFixture::new("tools: {one: {description: x, command: {argv: [echo, '1']}}}");
    assert_eq!(bench.names(), ["one"]);
    let mut listing = bench.source.listing();
    let mut changed = async || {
        tokio::time::timeout(Duration::from_secs(10), listing.changed())
            .await
            .expect("nothing changed")
            .unwrap();
    };
    let file = bench.tools.join("tools.yaml");
    fs::write(&file, "tools: {two: {description: x, command: {argv: [echo, '2']}}}").unwrap();
    while bench.names() != ["two"] {
        changed().await;
    }
    assert_eq!(bench.text("two", json!({})).await.unwrap(), "2\n");
    assert_eq!(bench.call("one", json!({})).await.unwrap_err().kind, Kind::NotFound);
    fs::write(bench.tools.join("more.yaml"), "tools: {more: {description: x, command: {argv: [echo]}}}")
        .unwrap();
    fs::write(&file, "tools: [").unwrap();
    while bench.names() != ["more"] {
        changed().await;
    }
}

#[tokio::test]
async fn a_playbook_of_another_product_gives_its_tools() {
    let bench = DeclaredFixture::new(
        "prompts: {}\ntools:\n  first-lines:\n    description: Prints the first lines of a file.\n    execution:\n      command: >-\n        head -n <<count>> \"<<file>>\"\n    args:\n      count: {description: How many., required: true, type: string}\n      file: {description: The file., required: true, type: path}\n",
    );
    assert_eq!(bench.names(), ["first-lines"]);
    let said = bench.call("first-lines", json!({"count": "2", "file": "notes.txt"})).await.unwrap();
    assert!(said.to_string().contains("alpha\\nbeta"), "{said}");
}
