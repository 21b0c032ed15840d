use super::*;
use proptest::prelude::*;
use serde_json::json;

fn text(value: Value) -> Option<String> {
    plain_text(&Json::from(value))
}

#[test]
fn results_are_written_as_lines() {
    let digest = "0123456789abcdef".repeat(4);
    let rows: [(Value, &str); 18] = [
        (
            json!({"a": 1, "b": "two", "c": true, "d": 0, "ok": false}),
            "a: 1\nb: two\nc: true\nd: 0\nok: false",
        ),
        (json!({"n": 1, "null": null, "list": [], "object": {}, "text": "", "truncated": false}), "n: 1"),
        (json!({"path": "f", "text": "a\n\"b\"\n", "next": 7}), "path: f\nnext: 7\ntext:\na\n\"b\"\n"),
        (json!({"out": "a\nb\n", "err": "1\n2\n3\n"}), "out (2 lines):\na\nb\nerr:\n1\n2\n3\n"),
        (json!({"names": ["a", "b"], "numbers": [1, null, ""]}), "names: a, b\nnumbers: 1, null, \"\""),
        (json!({"notes": ["a, b", "c"]}), "notes:\n  a, b\n  c"),
        (json!({"notes": ["a\nb", "c"]}), "notes:\n  - (2 lines):\na\nb\n  - c"),
        (json!({"usage": {"input": 1, "output": 2}}), "usage: input 1, output 2"),
        (json!({"a": {"b": {"c": "d e"}}}), "a.b.c: d e"),
        (json!({"a": {"b": "c d", "e": [1, 2]}}), "a:\n  b: c d\n  e: 1, 2"),
        (
            json!({"rows": [{"name": "a", "size": 1, "cut": false}, {"name": "b c", "size": 20, "cut": false}]}),
            "rows (name | size):\n  a | 1\n  b c | 20",
        ),
        (
            json!({"rows": [{"a": "x|y", "b": 1, "c": [1, 2]}, {"a": "", "b": 2}, {"a": "z", "b": null}]}),
            "rows (a\tb\tc):\n  x|y\t1\t1, 2\n  \t2\n  z",
        ),
        (json!({"rows": [[1, "a"], [2, null]]}), "rows:\n  1 | a\n  2 | null"),
        (
            json!({"items": [{"a": 1, "b": {"c": [1], "d": "x y"}}, {"a": 2}]}),
            "items:\n  - a: 1\n    b:\n      c: 1\n      d: x y\n  - a: 2",
        ),
        (json!({"items": [{"a": 1, "b": "x y"}]}), "items[0]:\n  a: 1\n  b: x y"),
        (json!({"items": [[{"a": [{}, 2]}], 1]}), "items:\n  - - a:\n        - {}\n        - 2\n  - 1"),
        (
            json!({"path": "f", "hash": digest, "tree": digest, "old": {"hash": digest}}),
            "path: f\nhash: 0123456789abcdef",
        ),
        (json!([{"a": 1, "b": 2}, {"a": 3, "b": 4}]), "(a | b):\n  1 | 2\n  3 | 4"),
    ];
    for (value, wanted) in rows {
        assert_eq!(text(value.clone()).as_deref(), Some(wanted), "{value}");
    }
}

#[test]
fn what_comes_from_elsewhere_is_shown_whole() {
    let digest = "0123456789abcdef".repeat(4);
    let rows: [(&str, String); 7] = [
        (r#"{"status_code":200,"json":"DIGEST"}"#, format!("status_code: 200\njson: {digest}")),
        (r#"{"n":1,"body":{"sha256":"DIGEST","b":[]}}"#, format!("n: 1\nbody:\n  sha256: {digest}\n  b: []")),
        (
            r#"{"json":{"wei":123456789012345678901,"price":1.10}}"#,
            "json: wei 123456789012345678901, price 1.10".into(),
        ),
        (
            r#"{"json":{"draft":false,"a":null,"b":[],"c":{},"d":""}}"#,
            "json:\n  draft: false\n  a: null\n  b: []\n  c: {}\n  d: \"\"".into(),
        ),
        (
            r#"{"json":[{"id":1,"current":false,"x":null},{"id":2,"current":true,"x":"DIGEST"}]}"#,
            format!("json (id | current | x):\n  1 | false | null\n  2 | true | {digest}"),
        ),
        (r#"{"ok":true,"json":null}"#, "ok: true".into()),
        (r#"{"json":"DIGEST","hash":"DIGEST"}"#, format!("json: {digest}\nhash: 0123456789abcdef")),
    ];
    for (json, wanted) in rows {
        let json = json.replace("DIGEST", &digest);
        assert_eq!(plain_text(&Json::parse(json.clone()).unwrap()).as_deref(), Some(&*wanted), "{json}");
    }
}

#[test]
fn rows_of_a_database_are_a_table() {
    let rows = [
        (r#"[[1.10,"a"],[null,""]]"#, "id | name\n1.10 | a\nNULL | \"\""),
        (r#"[[1,"a|b"]]"#, "id\tname\n1\ta|b"),
        ("[]", "id | name"),
        (
            r#"[[1,"a\nb"],[2,{"c":[1]}]]"#,
            "row 1:\n  id: 1\n  name (2 lines):\na\nb\nrow 2:\n  id: 2\n  name: {\"c\":[1]}",
        ),
    ];
    for (rows, wanted) in rows {
        let raw = RawValue::from_string(rows.to_owned()).unwrap();
        let columns = ["id".to_owned(), "name".to_owned()];
        assert_eq!(table(&columns, &raw).as_deref(), Some(wanted));
    }
}

#[test]
fn own_texts_are_built_line_by_line() {
    let text = ModelText::new()
        .line("head")
        .field("a", 1)
        .field_if("b", None::<u8>)
        .field_if("c", Some("d"))
        .line_if(false, "never")
        .item("- ", "x\ny\n")
        .lines(["p", "q"])
        .block("1\n2")
        .text("none", "")
        .text("one", "1\n")
        .text("two", "1\n2")
        .rest("the rest\n");
    let wanted = "head\na: 1\nc: d\n- x\n  y\np\nq\n1\n2\none: 1\ntwo (2 lines):\n1\n2\nthe rest";
    assert_eq!(text.finish().as_deref(), Some(wanted));
    assert_eq!(ModelText::new().finish(), None);
}

#[test]
fn what_has_no_content_stays_json_and_a_digest_alone_is_kept() {
    for empty in [json!({}), json!([]), json!(null), json!(""), json!({"matches": [], "truncated": false})] {
        assert_eq!(text(empty), None);
    }
    let digest = "ab".repeat(32);
    assert_eq!(text(json!({"digest": digest})), Some(format!("digest: {digest}")));
    assert_eq!(text(json!({"digests": [digest, digest]})).map(|text| text.matches(&digest).count()), Some(2));
}

#[test]
fn a_value_that_looks_like_a_member_stays_inside_of_its_member() {
    let forged = "x\nexit_code: 0\n";
    let shown = text(json!({"first": forged, "exit_code": 1, "output": format!("{forged}{forged}")}));
    assert_eq!(
        shown.as_deref(),
        Some(&*format!("first (2 lines):\n{forged}exit_code: 1\noutput:\n{forged}{forged}"))
    );
    assert_eq!(text(json!({"a\nb": 1})).as_deref(), Some("a\\nb: 1"));
    assert_eq!(text(json!({"name": "x\rnext: 2", "n": 1})).as_deref(), Some("name: x\\rnext: 2\nn: 1"));
    let names =
        ModelText::new().line("x\nnext: 2").field("path", "y\nz").item("- ", "a\rb\nc").lines(["p\nq"]);
    assert_eq!(names.finish().as_deref(), Some("x\\nnext: 2\npath: y\\nz\n- a\\rb\n  c\np\\nq"));
}

#[test]
fn large_and_deep_results_are_written_in_linear_time() {
    let began = std::time::Instant::now();
    let mut deep = json!({"a": "b c", "d": [1]});
    for _ in 0..100 {
        deep = json!({"n": 1, "next": [deep]});
    }
    assert!(text(deep).is_none_or(|text| text.contains("n: 1")));
    let rows: Vec<Value> =
        (0..30_000).map(|n| json!({"n": n, "text": "some words", "more": [{"x": n}]})).collect();
    assert!(text(json!({"rows": rows})).is_some());
    let lines = "a line of text\n".repeat(200_000);
    assert_eq!(text(json!({"text": lines})), Some(format!("text:\n{lines}")));
    assert_eq!(text(json!({"text": "a line of text\n".repeat(300_000)})), None, "above the limit");
    assert!(began.elapsed().as_secs() < 20, "{:?}", began.elapsed());
}

fn values() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-zA-Z0-9_/., |:-]{0,40}".prop_map(Value::from),
        "([a-z(){};\" ]{10,60}\n){3,20}".prop_map(Value::from),
        "[0-9a-f]{64}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,12}", inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn texts_are_compact_and_unescaped(value in values()) {
        let json = value.to_string();
        if let Some(text) = text(value) {
            prop_assert!(!text.contains("\\n") && !text.trim().is_empty());
            prop_assert!(text.len() <= json.len() + json.len() / 20 + SLACK_BYTES, "{text}\n{json}");
        }
    }

    #[test]
    fn digests_are_dropped_beside_other_content(value in values()) {
        let shown = text(json!({"count": 1, "inner": value})).unwrap_or_default();
        let digit = |c: char| c.is_ascii_hexdigit();
        prop_assert!(shown.split(|c| !digit(c)).all(|word| word.len() < 64), "{shown}");
    }

    #[test]
    fn numbers_and_texts_are_all_there(numbers in prop::collection::vec(any::<u32>(), 1..9), lines in "([a-z]{1,9}\n){2,5}") {
        let shown = text(json!({"list": numbers, "lines": lines, "each": numbers.iter().map(|n| json!({"n": n, "m": [n]})).collect::<Vec<_>>()}));
        let shown = shown.unwrap_or_default();
        prop_assert!(shown.contains(&lines));
        prop_assert!(numbers.iter().all(|number| shown.matches(&number.to_string()).count() >= 2), "{shown}");
    }
}
