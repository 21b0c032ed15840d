use super::*;
use serde_json::json;

struct TestScope(Value);

impl Scope for TestScope {
    fn find(&self, path: &ExprPath) -> Option<(std::sync::Arc<Value>, usize)> {
        self.0.get(&path.root).map(|value| (value.clone().into(), 0))
    }
}

fn test_scope() -> TestScope {
    TestScope(json!({
        "params": {"n": 3, "s": "abc", "nil": null, "odd name": 1, "f": 1.0},
        "steps": {"a": {"output": {"rows": [{"t": "x"}, {"t": "y"}], "text": "one\n\ntwo\n"}, "status": "done"}},
        "item": true,
    }))
}

#[test]
fn expressions_and_their_values() {
    for (text, value) in [
        ("params.n", json!(3)),
        ("{{ params.n }}", json!(3)),
        ("steps.a.output.rows[1].t", json!("y")),
        ("steps.a.output.rows[*].t", json!(["x", "y"])),
        ("params['odd name']", json!(1)),
        ("params.n == 3", json!(true)),
        ("params.f == 1", json!(true)),
        ("params.n != 3 or item", json!(true)),
        ("not item and params.missing", json!(false)),
        ("not not item", json!(true)),
        ("not (params.n > 2)", json!(false)),
        ("params.s < 'abd' and params.s >= \"abc\"", json!(true)),
        ("-1.5e1 < 0", json!(true)),
        ("exists(params.nil)", json!(false)),
        ("exists(params.gone.deeper)", json!(false)),
        ("exists(params.n)", json!(true)),
        ("default(params.gone, [1, 'x', null])", json!([1, "x", null])),
        ("default(params.nil, 5)", json!(5)),
        ("default(params.n, 5)", json!(3)),
        ("length(params.s)", json!(3)),
        ("length(steps.a.output.rows)", json!(2)),
        ("contains(params.s, 'bc')", json!(true)),
        ("contains(steps.a.output.rows[*].t, 'z')", json!(false)),
        ("contains(params, 'n')", json!(true)),
        ("join(steps.a.output.rows[*].t, ', ')", json!("x, y")),
        ("join([1, true, 'a'], '')", json!("1truea")),
        ("lines(steps.a.output.text)", json!(["one", "two"])),
        ("[1, 2] == [1.0, 2]", json!(true)),
        (r"'it\'s \n'", json!("it's \n")),
        ("null == params.nil", json!(true)),
        ("steps.a.status == 'done'", json!(true)),
    ] {
        let expr = parse_expr(text).unwrap_or_else(|why| panic!("{text}: {why}"));
        assert_eq!(expr.eval(&test_scope()), Ok(value), "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    for (text, part) in [
        ("", "unexpected end"),
        ("params.", "unexpected end"),
        ("params..n", "unexpected `"),
        ("1 +", "unexpected `"),
        ("a b", "unexpected `"),
        ("(a", "expected `)`"),
        ("'abc", "unterminated"),
        ("lenght(a)", "did you mean `length`"),
        ("exists(1)", "takes a path"),
        ("length()", "takes one"),
        ("join(a)", "takes two"),
        ("a[-1]", "number"),
        ("a[", "number"),
        ("1.2.3", "invalid number"),
        ("a == b == c", "unexpected `"),
    ] {
        let why = parse_expr(text).unwrap_err();
        assert!(why.contains(part), "{text}: {why}");
    }
    let deep = format!("{}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(parse_expr(&deep).unwrap_err().contains("too deeply"));
    let lists = "[".repeat(100_000);
    assert!(parse_expr(&lists).is_err());
    assert!(parse_expr(&"not ".repeat(100_000)).is_err());
}

#[test]
fn values_that_do_not_fit_are_faults() {
    for (text, absent) in [
        ("params.gone", true),
        ("params.n.deeper", true),
        ("steps.a.output.rows[2]", true),
        ("steps.a.output.rows[*].gone", true),
        ("nobody", true),
        ("params.n and true", false),
        ("params.s < 3", false),
        ("length(params.n)", false),
        ("contains(params.n, 1)", false),
        ("join(params.s, ',')", false),
        ("lines(params.n)", false),
        ("default(params.n.x < 1, 2)", true),
    ] {
        let value = parse_expr(text).unwrap().eval(&test_scope());
        match value {
            Err(EvalError::Absent(_)) => assert!(absent, "{text}"),
            Err(EvalError::TypeMismatch(_)) => assert!(!absent, "{text}"),
            // The comparison inside is absent, so the other is taken.
            Ok(value) => assert_eq!((text, value), ("default(params.n.x < 1, 2)", json!(2))),
        }
    }
}

#[test]
fn texts_are_filled_in_and_lone_expressions_keep_their_type() {
    for (text, value) in [
        ("plain", json!("plain")),
        ("{{ params.n }}", json!(3)),
        ("n={{params.n}}!", json!("n=3!")),
        ("{{ steps.a.output.rows }} ", json!(r#"[{"t":"x"},{"t":"y"}] "#)),
        (r"\{{ params.n }}", json!("{{ params.n }}")),
        ("{{ '}}' }}", json!("}}")),
        ("{{params.s}}{{params.n}}", json!("abc3")),
    ] {
        assert_eq!(Template::parse(text).unwrap().eval(&test_scope()), Ok(value), "{text}");
    }
    for text in ["{{", "{{ a", "{{ }}", "{{ a } }", "{{#if a}}"] {
        assert!(Template::parse(text).is_err(), "{text}");
    }
    let given = json!({"a": ["{{ params.n }}", {"b": "x"}], "c": 1});
    let read = Template::read(&given, "", &mut |_, why| panic!("{why}"));
    assert_eq!(read.eval(&test_scope()), Ok(json!({"a": [3, {"b": "x"}], "c": 1})));
    assert!(matches!(Template::read(&json!({"x": [1, "y"]}), "", &mut |_, _| ()), Template::Literal(_)));
    let mut wrong = Vec::new();
    Template::read(&json!({"a/b": ["{{ ) }}"]}), "/with", &mut |at, _| wrong.push(at.to_owned()));
    assert_eq!(wrong, ["/with/a~1b/0"]);
}

#[test]
fn paths_are_written_as_they_are_read() {
    for text in ["steps.a.output[0][*].b", "params[\"odd name\"]", "item"] {
        let Expr::Path(path) = parse_expr(text).unwrap() else { panic!("{text}") };
        assert_eq!(path.to_string(), text);
    }
}
