//! Problems in a file are reported, and everything else is served.

use super::super::{FileContents, load_tools};
use super::declared_fixture::DeclaredFixture;
use octo_grants::config_dirs::ConfigFile;
use octo_model::Kind;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;

fn config_file(name: &str, text: &str) -> ConfigFile {
    ConfigFile { path: PathBuf::from(name), content: Ok(text.to_owned()) }
}

#[test]
fn mistakes_are_told_with_file_and_line_and_the_rest_is_served() {
    let fine = "tools: {fine: {description: x, command: {argv: [echo]}}}";
    let tool = |rest: &str| format!("# first\ntools:\n  a:\n    description: x\n{rest}");
    let known = "    parameters: {b: {description: y}}\n";
    for (text, line, what) in [
        ("tools:\n  a: [".to_owned(), 0, ""),
        ("tols: {}".to_owned(), 1, "tols"),
        (tool("    comand: {argv: [x]}\n"), 5, "comand"),
        (tool("    effect: sometimes\n"), 5, "sometimes"),
        (tool("    command: {argv: [{what: x}]}\n"), 5, ""),
        (tool(""), 4, "tools.a: a tool must be either"),
        (
            tool("    command: {argv: [x]}\n    request: {base: 'https://e.example'}\n"),
            4,
            "a tool must be either",
        ),
        (
            tool("    command: {argv: [x, '{{bb}}']}\n    parameters: {b: {description: y}}\n"),
            4,
            "did you mean `b`?",
        ),
        (tool(&format!("    command: {{argv: [x]}}\n{known}")), 4, "never used"),
        (tool("    timeout_seconds: 0\n    command: {argv: [x]}\n"), 4, "timeout_seconds"),
        (
            tool("    command: {argv: [x, '{{b}}']}\n    parameters: {b: {description: y, pattern: '('}}\n"),
            4,
            "schema",
        ),
        (
            tool(
                "    command: {argv: [x, '{{b}}']}\n    parameters: {b: {description: y, type: integer, default: z}}\n",
            ),
            4,
            "does not match",
        ),
        (
            tool(
                "    command: {argv: [x, '{{b}}']}\n    parameters: {b: {description: y, type: integer, pattern: z}}\n",
            ),
            4,
            "not a string",
        ),
        ("tools: {fs_read_text: {description: x, command: {argv: [x]}}}".to_owned(), 1, "a native tool has"),
        ("tools: {'a b': {description: x, command: {argv: [x]}}}".to_owned(), 1, "letters, digits"),
        ("tools: {a: {description: ' ', command: {argv: [x]}}}".to_owned(), 1, "description is empty"),
    ] {
        let reserved = BTreeSet::from(["fs_read_text".to_owned()]);
        let tools =
            load_tools(&[config_file("broken.yaml", &text), config_file("fine.yaml", fine)], &reserved);
        assert_eq!(tools.all.keys().collect::<Vec<_>>(), ["fine"], "{text}");
        let [problem] = tools.problems() else { panic!("{text}: {:?}", tools.problems()) };
        assert!(problem.file == "broken.yaml" && problem.what.contains(what), "{text}: {problem}");
        assert!(line == 0 || problem.line == Some(line), "{text}: {problem}");
    }
}

#[test]
fn later_files_win_and_a_broken_replacement_leaves_nothing() {
    let of = |argv: &str| format!("tools: {{a: {{description: x, command: {{argv: [{argv}]}}}}}}");
    let both =
        load_tools(&[config_file("1.yaml", &of("one")), config_file("2.yaml", &of("two"))], &BTreeSet::new());
    assert_eq!(both.all["a"].file, "2.yaml");
    assert!(both.problems()[0].what.contains("overrides the one in 1.yaml"));
    let broken = load_tools(
        &[config_file("1.yaml", &of("one")), config_file("2.yaml", &of("'{{x}}'"))],
        &BTreeSet::new(),
    );
    assert!(broken.all.is_empty());
}

#[tokio::test]
async fn tools_that_agents_could_write_are_not_read() {
    let bench = DeclaredFixture::new("tools: {a: {description: x, command: {argv: [echo]}}}");
    let planted = bench.work.join("planted.yaml");
    std::fs::write(&planted, "tools: {evil: {description: x, command: {argv: [echo]}}}").unwrap();
    std::os::unix::fs::symlink(&planted, bench.tools.join("link.yaml")).unwrap();
    std::fs::write(bench.tools.join("last.yaml"), "tools: {z: {description: x, command: {argv: [echo]}}}")
        .unwrap();
    let mut listing = bench.source.listing();
    while bench.names() != ["a", "z"] {
        let changed = tokio::time::timeout(std::time::Duration::from_secs(10), listing.changed());
        changed.await.expect("nothing changed").unwrap();
    }
    assert_eq!(bench.call("evil", json!({})).await.unwrap_err().kind, Kind::NotFound);
}
