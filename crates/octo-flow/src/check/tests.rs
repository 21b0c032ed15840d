use super::*;
use octo_model::{Effect, EffectOrigin};
use serde_json::json;

struct FakeTools {
    model: bool,
}

impl ToolLookup for FakeTools {
    fn tool(&self, name: &str) -> Result<ToolInfo, ToolError> {
        let facts = |input: Value, output: Option<Value>, effect| ToolInfo {
            input,
            output,
            effect,
            effect_origin: EffectOrigin::Native,
        };
        let text = json!({"type": "string"});
        Ok(match name {
            "read" => facts(
                json!({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
                    "path": text, "limit": {"type": "integer", "maximum": 10}, "mode": {"enum": ["a", "b"]},
                    "tags": {"type": "array"}, "deep": {"type": "object"}, "any": {},
                }}),
                Some(json!({"type": "object", "properties": {
                    "text": text, "lines": {"type": "integer"}, "size": {"type": "number"},
                    "rows": {"type": "array", "items": {"type": "object", "properties": {"title": text}}},
                    "more": {"$ref": "#/$defs/more"}, "open": {"type": "object", "additionalProperties": true},
                }, "$defs": {"more": {"type": "object", "properties": {"x": {"type": "boolean"}}}}})),
                Effect::reads(),
            ),
            "post" => facts(json!({"type": "object", "properties": {"body": text}}), None, Effect::writes()),
            other => {
                return Err(
                    ToolError::not_found(format!("Tool not found: `{other}`.")).hint("Did you mean `read`?")
                );
            }
        })
    }

    fn require_model(&self) -> Result<(), ToolError> {
        if self.model { Ok(()) } else { Err(ToolError::unavailable("No language model is set.")) }
    }
}

/// The problems of a text, as `line: message`.
fn problems(text: &str) -> Vec<String> {
    let told = |problem: &Diagnostic| format!("{}: {}", problem.position.line, problem.message);
    match CompiledWorkflow::parse(text) {
        Err(problems) => problems.iter().map(told).collect(),
        Ok(plan) => check(&plan, &FakeTools { model: false }).errors.iter().map(told).collect(),
    }
}

const HEAD: &str = "version: 1\nname: t\n";

#[test]
fn good_workflows_have_no_problems() {
    for text in [
        "steps:\n- {id: a, tool: read, with: {path: x}}\n",
        "params: {p: {required: true}, o: {}}\nsteps:\n- {id: a, tool: read, with: {path: '{{ params.p }}', limit: 3, mode: a}}\n- {id: b, tool: post, with: {body: '{{ steps.a.output.text }} {{ default(params.o, \"\") }}'}}\noutputs: {n: '{{ steps.a.output.lines }}', rows: '{{ steps.a.output.rows[*].title }}'}\n",
        "steps:\n- id: a\n  tool: read\n  with: {path: x}\n  on_error: continue\n- id: b\n  if: exists(steps.a.output) and steps.a.output.lines > 3\n  tool: post\n  with: {body: '{{ steps.a.output.text }}'}\n- id: c\n  if: exists(steps.a.error)\n  tool: post\n  with: {body: '{{ steps.a.error.kind }}'}\n",
        "steps:\n- id: p\n  parallel:\n  - [{id: a, tool: read, with: {path: x}}]\n  - [{id: b, tool: read, with: {path: y}}]\n- {id: c, tool: post, with: {body: '{{ steps.a.output.text }}{{ steps.b.output.text }}'}}\n",
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- id: l\n  for_each: steps.a.output.rows\n  as: row\n  steps:\n  - {id: i, tool: post, with: {body: '{{ row.title }} {{ index }}'}}\n- {id: z, tool: post, with: {body: 'All: {{ steps.l.output[*].i }}'}}\n",
        "steps:\n- id: a\n  tool: post\n  on_error:\n    steps: [{id: h, tool: post, with: {body: '{{ steps.a.error.message }}'}}]\n- {id: s, if: \"steps.a.status == 'failed'\", fail: 'It failed.'}\n",
        "steps:\n- {id: a, tool: read, with: {path: x, any: '{{ params }}', tags: ['{{ 1 }}'], deep: {x: '{{ 2 }}'}}}\n- {id: b, tool: read, with: {path: '{{ steps.a.output.open.what.ever }}', limit: '{{ steps.a.output.size }}'}}\n",
        "steps:\n- {id: a, tool: read, with: {path: x}, on_error: continue}\n- {id: b, if: not exists(steps.a.output) or steps.a.output.lines > 3, tool: post}\n- {id: c, if: 'not (not exists(steps.a.output) or false)', tool: post, with: {body: '{{ steps.a.output.text }}'}}\n",
        "{\"steps\": [{\"id\": \"a\", \"tool\": \"post\"}]}",
    ] {
        let text = if text.starts_with('{') {
            text.replacen('{', "{\"version\": 1, \"name\": \"t\", ", 1)
        } else {
            format!("{HEAD}{text}")
        };
        assert_eq!(problems(&text), Vec::<String>::new(), "{text}");
    }
}

/// Texts, and the expected problem of each.
const MISTAKES: &[(&str, &str)] = &[
    // Form
    ("steps: []\n", "3: "),
    ("stepz:\n- {id: a, tool: post}\n", "3: Unknown key `stepz`."),
    ("steps:\n- {id: a, tool: post}\n- tool: post\n", "5: `id` is missing."),
    ("steps:\n- {id: 'a b', tool: post}\n", "4: \"a b\" is not a valid name."),
    ("steps:\n- id: a\n", "4: A step must have exactly one of"),
    ("steps:\n- {id: a, tool: post, llm: {prompt: x}}\n", "4: A step must have exactly one of"),
    ("steps:\n- id: a\n  tool: post\n  retires: 3\n", "6: Unknown key `retires`."),
    ("steps:\n- id: a\n  tool: post\n  retry: {times: many}\n", "6: \"many\" is not of type integer."),
    ("steps:\n- id: a\n  tool: post\n  on_error: ignore\n", "6: \"ignore\" is not one of"),
    (
        "steps:\n- id: a\n  tool: post\n  on_error:\n    steps:\n    - {id: b, tol: post}\n",
        "8: Unknown key `tol`.",
    ),
    ("steps:\n- {id: a, tool: post}\n- {id: a, tool: post}\n", "5: Duplicate step id `a`."),
    (
        "steps:\n- id: g\n  timeout_seconds: 3\n  steps: [{id: a, tool: post}]\n",
        "5: `timeout_seconds` only applies to",
    ),
    ("params:\n  n: {type: integer, default: x}\nsteps:\n- {id: a, tool: post}\n", "4: The default \"x\""),
    ("steps:\n- id: l\n  for_each: [1]\n  as: steps\n  tool: post\n", "6: `steps` is reserved."),
    // Expressions
    ("steps:\n- id: a\n  tool: post\n  with:\n    body: '{{ params. }}'\n", "7: Invalid expression"),
    ("steps:\n- id: a\n  if: 1 = 2\n  tool: post\n", "5: Invalid expression"),
    ("steps:\n- {id: a, tool: post, with: {body: '{{ params.x }}'}}\n", "4: Unknown parameter `x`."),
    (
        "params: {x: {}}\nsteps:\n- {id: a, tool: post, with: {body: '{{ params.x }}'}}\n",
        "5: `params.x` may be absent",
    ),
    (
        "params: {x: {required: true}}\nsteps:\n- {id: a, tool: post, with: {body: '{{ x }}'}}\n",
        "5: Unknown name `x`.",
    ),
    (
        "steps:\n- {id: a, tool: post, with: {body: '{{ steps.b.output }}'}}\n- {id: b, tool: post}\n",
        "4: The step `b` has not run here yet.",
    ),
    ("steps:\n- {id: a, tool: post, with: {body: '{{ steps.c.output }}'}}\n", "4: Unknown step `c`."),
    (
        "steps:\n- {id: a, tool: post}\n- {id: b, tool: post, with: {body: '{{ steps.a }}'}}\n",
        "5: `steps.a` alone",
    ),
    (
        "steps:\n- {id: a, tool: post}\n- {id: b, tool: post, with: {body: '{{ steps.a.outptu }}'}}\n",
        "5: A step has no `outptu`.",
    ),
    (
        "steps:\n- {id: a, tool: post}\n- {id: b, tool: post, with: {body: '{{ steps.a.error.kind }}'}}\n",
        "5: `steps.a.error.kind` may be absent",
    ),
    (
        "steps:\n- {id: a, if: 'true', tool: post}\n- {id: b, tool: post, with: {body: '{{ steps.a.output }}'}}\n",
        "5: `steps.a.output` may be absent: the step has an `if`.",
    ),
    (
        "steps:\n- {id: a, tool: post, on_error: continue}\n- {id: b, tool: post, with: {body: '{{ steps.a.output }}'}}\n",
        "5: `steps.a.output` may be absent: the step may have failed.",
    ),
    (
        "steps:\n- id: p\n  parallel:\n  - [{id: a, tool: post}]\n  - [{id: b, tool: post, with: {body: '{{ steps.a.output }}'}}]\n",
        "7: The step `a` has not run here yet.",
    ),
    (
        "steps:\n- id: l\n  for_each: [1]\n  steps: [{id: i, tool: post}]\n- {id: z, tool: post, with: {body: '{{ steps.i.output }}'}}\n",
        "7: The step `i` has not run here yet.",
    ),
    (
        "steps:\n- {id: l, for_each: [1], tool: post}\n- {id: z, tool: post, with: {body: '{{ item }}'}}\n",
        "5: Unknown name `item`.",
    ),
    (
        "steps:\n- {id: a, tool: post}\noutputs:\n  x: '{{ steps.a.nothing }}'\n",
        "6: A step has no `nothing`.",
    ),
    // Tools
    ("steps:\n- id: a\n  tool: raed\n", "5: Tool not found: `raed`."),
    ("steps:\n- id: a\n  tool: read\n", "5: read requires `path`."),
    (
        "steps:\n- id: a\n  tool: read\n  with:\n    path: x\n    limt: 3\n",
        "8: read has no parameter `limt`.",
    ),
    (
        "steps:\n- id: a\n  tool: read\n  with:\n    path: 3\n",
        "7: `path` must be a string, but this is an integer.",
    ),
    (
        "steps:\n- id: a\n  tool: read\n  with:\n    path: x\n    limit: 11\n",
        "8: `limit` is invalid: 11 is greater",
    ),
    ("steps:\n- id: a\n  tool: read\n  with:\n    path: x\n    mode: c\n", "8: `mode` is invalid"),
    (
        "steps:\n- id: a\n  tool: read\n  with: {path: x}\n- id: b\n  tool: read\n  with:\n    path: '{{ steps.a.output.lines }}'\n",
        "10: `path` must be a string, but this is an integer.",
    ),
    (
        "steps:\n- id: a\n  tool: read\n  with:\n    path: x\n    limit: 'n {{ 1 }}'\n",
        "8: `limit` must be an integer, but this is a string.",
    ),
    (
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- {id: b, tool: post, with: {body: '{{ steps.a.output.txt }}'}}\n",
        "5: `steps.a.output.txt` does not exist.",
    ),
    (
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- {id: b, tool: post, with: {body: '{{ steps.a.output.rows[*].name }}'}}\n",
        "5: `steps.a.output.rows[*].name` does not exist.",
    ),
    (
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- {id: b, tool: post, with: {body: '{{ steps.a.output.more.y }}'}}\n",
        "5: `steps.a.output.more.y` does not exist.",
    ),
    (
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- {id: b, tool: post, with: {body: '{{ steps.a.output.text.x }}'}}\n",
        "5: `steps.a.output.text.x` does not exist.",
    ),
    (
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- {id: b, for_each: steps.a.output.text, tool: post}\n",
        "5: This is a string, not a list.",
    ),
    (
        "steps:\n- {id: a, tool: read, with: {path: x}}\n- {id: b, if: steps.a.output.text, tool: post}\n",
        "5: This is a string, not a boolean.",
    ),
    ("steps:\n- id: a\n  llm: {prompt: x}\n", "5: No language model is set."),
    (
        "steps:\n- id: a\n  for_each: [1, 2]\n  tool: post\n  with:\n    body: '{{ item }}'\n",
        "8: `body` must be a string, but this is an integer.",
    ),
    // Steps that never run
    ("steps:\n- id: a\n  if: false\n  tool: post\n", "5: This step can never run: its `if` is always false."),
    (
        "steps:\n- id: a\n  if: 1 == 2\n  tool: post\n",
        "5: This step can never run: its `if` is always false.",
    ),
    (
        "steps:\n- id: a\n  for_each: []\n  tool: post\n",
        "5: This step can never run: its `for_each` is empty",
    ),
    (
        "steps:\n- {id: a, fail: no}\n- {id: b, tool: post}\n",
        "5: This step can never run: a step before it always fails.",
    ),
    ("steps:\n- {id: g, steps: [{id: a, fail: no}]}\n- {id: b, tool: post}\n", "5: This step can never run"),
];

#[test]
fn mistakes_are_told_with_their_lines() {
    for (text, wanted) in MISTAKES {
        let found = problems(&format!("{HEAD}{text}"));
        // A misspelled name may also count as a missing one.
        let fits = found.iter().any(|problem| problem.starts_with(*wanted)) && found.len() <= 2;
        assert!(fits, "{text}\nwanted {wanted}\nfound {found:#?}");
    }
}

#[test]
fn several_mistakes_are_told_at_once_and_with_hints() {
    let text = format!("{HEAD}steps:\n- {{id: a, tool: raed}}\n- id: b\n  tool: read\n  with: {{limt: 3}}\n");
    let found = check(&CompiledWorkflow::parse(&text).unwrap(), &FakeTools { model: true });
    let told: Vec<(u64, String)> = found
        .errors
        .iter()
        .map(|problem| (problem.position.line, problem.hint.clone().unwrap_or_default()))
        .collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!(told[0], (4, "Did you mean `read`?".to_owned()));
    assert_eq!(told[1], (6, "Add it to `with:`: a string.".to_owned()));
    assert_eq!(told[2], (7, "Did you mean `limit`?".to_owned()));
}

#[test]
fn what_would_be_called_is_told() {
    let text = format!(
        "{HEAD}params: {{idle: {{}}}}\nsteps:\n- {{id: a, tool: read, with: {{path: x}}}}\n- {{id: b, tool: post}}\n- {{id: c, llm: {{prompt: x, schema: {{type: object, properties: {{n: {{type: integer}}}}}}}}}}\n- {{id: d, tool: post, with: {{body: 'n {{{{ steps.c.output.n }}}}'}}}}\n"
    );
    let found = check(&CompiledWorkflow::parse(&text).unwrap(), &FakeTools { model: true });
    assert!(found.errors.is_empty(), "{:?}", found.errors);
    let told: Vec<_> = found
        .tools
        .iter()
        .map(|used| (used.name.as_str(), used.class.as_str(), used.repeatable, used.steps.join(",")))
        .collect();
    assert_eq!(told, [("read", "reads", true, "a".to_owned()), ("post", "writes", false, "b,d".to_owned())]);
    assert_eq!(found.warnings[0].message, "The parameter `idle` is never used.");
}

#[test]
fn what_is_too_much_is_told_in_a_few_words() {
    let many: String = (0..1_000).map(|at| format!("  - [{{id: s{at}, tool: post}}]\n")).collect();
    let (open, close) = ("[{\"id\": \"a\", \"steps\": ".repeat(100), "}]".repeat(100));
    for (text, words) in [
        (format!("{HEAD}steps:\n- id: p\n  parallel:\n{many}"), "has more than"),
        (format!("{{\"version\": 1, \"name\": \"t\", \"steps\": {open}[]{close}}}"), "nested too deeply"),
    ] {
        let said = problems(&text);
        assert!(said.len() == 1 && said[0].contains(words) && said[0].len() < 100, "{said:?}");
    }
}
