//! Playbooks from directories, through the source.
#![expect(clippy::disallowed_methods, reason = "tests write the files that the source follows")]

use super::*;
use octo_grants::config_dirs::ConfigDirs;
use octo_model::{Caller, Kind};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const GREETING: &str = r#"
prompts:
  greet:
    title: Greet
    description: |
      Greets
      somebody.
    template: |
      Hello {{name}}{{#if mood}}, you look {{mood}}{{else}}.{{/if}}
      {{#if loud}}
      LOUD
      {{/if}}
      {{#unless (eq style "short")}}In {{style}} words.{{/unless}}
    arguments:
      name:
        description: Who.
        required: true
      mood: {description: How., suggest: [happy, hopeful, unhappy]}
      loud: {description: Whether to shout., values: [true, false]}
      style: {description: How long., values: [short, long], default: long}
  listed:
    description: With a list of arguments.
    template: "{{a}} & {{b}} <{{a}}>"
    arguments:
      - {name: a, description: One., required: true}
      - {name: b, description: Two., required: true}
"#;

fn source_of(folders: &[&Path]) -> Arc<dyn Source> {
    source(&[], ConfigDirs::new(folders.iter().map(|path| path.to_path_buf()).collect()))
}

fn with(text: &str) -> (tempfile::TempDir, Arc<dyn Source>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.yaml"), text).unwrap();
    let source = source_of(&[folder.path()]);
    (folder, source)
}

async fn run(source: &Arc<dyn Source>, op: Operation) -> Result<Value, ToolError> {
    let cx = CallContext::new(
        Arc::new(Caller::local()),
        Instant::now() + Duration::from_secs(10),
        CancellationToken::new(),
    );
    source.run(op, &cx).await.map(|members| members.to_json().to().unwrap())
}

async fn get(source: &Arc<dyn Source>, name: &str, arguments: Value) -> Result<String, ToolError> {
    let params = JsonObject::new().with("arguments", Json::from(arguments));
    let result = run(source, Operation { method: Method::GetPrompt, name: name.to_owned(), params }).await?;
    assert_eq!(result["messages"][0]["role"], "user");
    assert_eq!(result["messages"][0]["content"]["type"], "text");
    Ok(result["messages"][0]["content"]["text"].as_str().unwrap().to_owned())
}

fn names(source: &Arc<dyn Source>) -> Vec<String> {
    source.listing().borrow().listing.prompts.iter().map(|prompt| prompt.key.clone()).collect()
}

#[tokio::test]
async fn prompts_are_filled_in_with_and_without_what_is_optional() {
    let (_folder, source) = with(GREETING);
    for (name, arguments, text) in [
        ("greet", json!({"name": "Ann"}), "Hello Ann.\nIn long words."),
        ("greet", json!({"name": "Ann", "style": "short"}), "Hello Ann."),
        (
            "greet",
            json!({"name": "Ann", "mood": "fine", "loud": "true", "style": "short"}),
            "Hello Ann, you look fine\nLOUD",
        ),
        ("greet", json!({"name": "Ann", "loud": false, "style": "short"}), "Hello Ann."),
        ("greet", json!({"name": "Ann", "mood": "", "style": null}), "Hello Ann.\nIn long words."),
        ("listed", json!({"a": "<b>&\"", "b": 7}), "<b>&\" & 7 <<b>&\">"),
        ("listed", json!({"a": "{{b}}", "b": "{{#if a}}"}), "{{b}} & {{#if a}} <{{b}}>"),
    ] {
        assert_eq!(get(&source, name, arguments.clone()).await.unwrap(), text, "{arguments}");
    }
}

#[tokio::test]
async fn arguments_that_are_missing_unknown_or_wrong_are_named() {
    let (_folder, source) = with(GREETING);
    for (name, arguments, wanted) in [
        ("greet", json!({}), "requires the argument `name`. Its arguments: name (required), mood"),
        ("greet", json!({"name": " "}), "requires the argument `name`"),
        ("listed", json!({}), "requires the arguments `a`, `b`"),
        ("greet", json!({"nam": "x"}), "Unknown argument `nam`. Did you mean `name`?"),
        ("greet", json!({"name": "x", "style": "shrt"}), "cannot be `shrt`. Did you mean `short`?"),
        ("greet", json!({"name": ["x"]}), "must be a string"),
        ("greet", json!("x"), "must be a JSON object"),
    ] {
        let error = get(&source, name, arguments.clone()).await.unwrap_err();
        assert_eq!(error.kind, Kind::Invalid);
        assert!(error.text().contains(wanted), "{arguments}: {}", error.text());
    }
    assert_eq!(get(&source, "nobody", json!({})).await.unwrap_err().kind, Kind::NotFound);
    let large = "x".repeat(5 << 20);
    assert_eq!(get(&source, "greet", json!({"name": large})).await.unwrap_err().kind, Kind::TooLarge);
}

#[tokio::test]
async fn definitions_say_what_the_protocol_wants() {
    let (_folder, source) = with(GREETING);
    let listing = source.listing().borrow().clone();
    assert!(listing.listing.supports_completion);
    let greet: Value = listing.listing.prompts[0].members.to_json().to().unwrap();
    assert_eq!(
        greet,
        json!({"name": "greet", "title": "Greet", "description": "Greets somebody.", "arguments": [
            {"name": "name", "description": "Who.", "required": true},
            {"name": "mood", "description": "How.", "required": false},
            {"name": "loud", "description": "Whether to shout. One of: true, false.", "required": false},
            {"name": "style", "description": "How long. One of: short, long. Default: long.", "required": false},
        ]})
    );
}

#[tokio::test]
async fn arguments_are_completed() {
    let (_folder, source) = with(GREETING);
    for (argument, typed, wanted) in [
        ("mood", "", json!(["happy", "hopeful", "unhappy"])),
        ("mood", "HAP", json!(["happy", "unhappy"])),
        ("style", "s", json!(["short"])),
        ("style", "x", json!([])),
        ("name", "", json!([])),
        ("nobody", "", json!([])),
    ] {
        let asked = JsonObject::new().with("name", argument).with("value", typed);
        let reference = JsonObject::new().with("type", "ref/prompt").with("name", "greet");
        let params = JsonObject::new().with("ref", reference).with("argument", asked);
        let op = Operation { method: Method::Complete, name: "greet".to_owned(), params };
        let completion = run(&source, op).await.unwrap()["completion"].clone();
        assert_eq!(completion["values"], wanted, "{argument} {typed}");
        assert_eq!(completion["total"], wanted.as_array().unwrap().len());
        assert_eq!(completion["hasMore"], false);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_the_rest_is_served() {
    for (text, line, what, served) in [
        ("prompts:\n  a:\n    description: x\n    template: [\n", 0, "", 0),
        ("prompts:\n  a: {description: x}\n", 2, "template", 0),
        ("prompts:\n  a: {description: x, template: y, temlate: z}\n", 2, "temlate", 0),
        ("promts: {}\n", 1, "promts", 0),
        (
            "prompts:\n  a:\n    description: x\n    template: |\n      one\n      {{#if b}}\n      two\n    arguments: {b: {description: y}}\n  c: {description: x, template: y}\n",
            0,
            "prompts.a",
            1,
        ),
        (
            "prompts:\n  a:\n    description: x\n    template: |\n      one\n\n      {{nme}}\n    arguments: {name: {description: y}}\n  c: {description: x, template: y}\n",
            7,
            "`nme` is not an argument; did you mean `name`?",
            1,
        ),
        (
            "prompts:\n  a:\n    description: x\n    template: |\n      {{#if name}}\n      one\n      {{other}}\n      {{/if}}\n    arguments: {name: {description: y}}\n",
            7,
            "`other`",
            0,
        ),
        ("prompts:\n  a:\n    description: x\n    template: 'see {{who}}'\n", 4, "`who`", 0),
        ("prompts:\n  a:\n    description: x\n    template: '{{> other}}'\n", 4, "partials", 0),
        (
            "prompts:\n  a:\n    description: x\n    template: '{{#each this}}x{{/each}}'\n",
            4,
            "unknown block `each`",
            0,
        ),
        (
            "prompts:\n  a:\n    description: x\n    template: '{{lookup this \"x\"}}'\n",
            4,
            "not an argument",
            0,
        ),
        (
            "prompts:\n  a:\n    description: x\n    template: y\n    arguments: [{name: if}]\n",
            0,
            "invalid argument name",
            0,
        ),
        (
            "prompts:\n  a:\n    description: x\n    template: y\n    arguments: [{name: b, required: true, default: 1}]\n",
            0,
            "required and have a default",
            0,
        ),
        (
            "prompts:\n  a:\n    description: x\n    template: y\n    arguments: [{name: b, values: [1], default: 2}]\n",
            0,
            "not one of its values",
            0,
        ),
        ("prompts:\n  'a b': {description: x, template: y}\n", 0, "letters, digits", 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.yaml"), text).unwrap();
        fs::write(folder.path().join("b.yaml"), "prompts: {fine: {description: x, template: y}}").unwrap();
        let folders = ConfigDirs::new(vec![folder.path().to_owned()]);
        let stock = prompt_set::load_prompts(&[], &folders.read(), None);
        assert_eq!(stock.all.len(), served + 1, "{text}");
        let problems = problems(&[], &folders);
        assert_eq!(problems.len(), 1, "{text}: {problems:?}");
        assert!(
            problems[0].file.ends_with("a.yaml") && problems[0].what.contains(what),
            "{text}: {}",
            problems[0]
        );
        assert!(line == 0 || problems[0].line == Some(line), "{text}: {}", problems[0]);
    }
}

#[test]
fn later_folders_win_and_say_so() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(one.path().join("a.yaml"), "prompts: {x: {description: first, template: y}}").unwrap();
    fs::write(two.path().join("a.yaml"), "prompts: {x: {description: second, template: y}}").unwrap();
    let shipped: BuiltinPrompts = &[("shipped", "prompts: {x: {description: zeroth, template: y}}")];
    let folders = ConfigDirs::new(vec![one.path().to_owned(), two.path().to_owned()]);
    let stock = prompt_set::load_prompts(shipped, &folders.read(), None);
    assert_eq!(stock.all["x"].description, "second");
    assert_eq!(stock.problems().len(), 1);
    assert!(stock.problems()[0].what.contains("overrides"));
}

#[tokio::test]
async fn a_changed_playbook_is_seen_a_broken_one_stays_as_it_was_and_a_deleted_one_goes() {
    let (folder, source) = with(GREETING);
    let file = folder.path().join("a.yaml");
    let mut listing = source.listing();
    let mut changed = async || {
        tokio::time::timeout(Duration::from_secs(10), listing.changed())
            .await
            .expect("nothing changed")
            .unwrap();
    };
    fs::write(&file, "prompts: {new: {description: x, template: 'New {{a}}', arguments: [{name: a}]}}")
        .unwrap();
    while names(&source) != ["new"] {
        changed().await;
    }
    assert_eq!(get(&source, "new", json!({"a": "text"})).await.unwrap(), "New text");
    fs::write(
        &file,
        "prompts: {new: {description: x, template: '{{a'}, other: {description: x, template: y}}",
    )
    .unwrap();
    while names(&source) != ["new", "other"] {
        changed().await;
    }
    assert_eq!(get(&source, "new", json!({"a": "text"})).await.unwrap(), "New text");
    fs::write(folder.path().join("b.yaml"), "prompts: {more: {description: x, template: y}}").unwrap();
    fs::write(&file, "prompts: [").unwrap();
    while names(&source) != ["more", "new", "other"] {
        changed().await;
    }
    fs::remove_file(&file).unwrap();
    while names(&source) != ["more"] {
        changed().await;
    }
}

#[tokio::test]
async fn a_playbook_may_be_json_and_other_json_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let playbook = json!({"prompts": {"hi": {
        "description": "Greets.", "tags": ["short", "kind"], "template": "Hello {{name}}!",
        "arguments": {"name": {"description": "Who.", "required": true}},
    }}});
    fs::write(folder.path().join("p.json"), playbook.to_string()).unwrap();
    fs::write(folder.path().join("package.json"), r#"{"name": "x", "version": "1"}"#).unwrap();
    let source = source_of(&[folder.path()]);
    assert_eq!(names(&source), ["hi"]);
    assert_eq!(get(&source, "hi", json!({"name": "Ada"})).await.unwrap(), "Hello Ada!");
    let definition = source.listing().borrow().listing.prompts[0].members.to_json().to::<Value>().unwrap();
    assert_eq!(definition["_meta"]["octoprox/tags"], json!(["short", "kind"]));
    assert_eq!(problems(&[], &ConfigDirs::new(vec![folder.path().to_owned()])), []);
}
