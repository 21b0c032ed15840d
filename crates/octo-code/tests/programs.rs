//! Programs as models write them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod code_fixture;

use code_fixture::{TIME_MS, TestTools, child, run, run_with};
use octo_code::{CallError, CodeLimits, Program, ProgramError, ToolBinding, ToolCalls, run_program};
use octo_model::Json;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

async fn assert_returns(table: impl IntoIterator<Item = (&'static str, Value)>) {
    let mut wrong = Vec::new();
    for (source, expected) in table {
        match run(source).await {
            Err(failure) => wrong.push(format!("{source}: {failure:?}")),
            Ok(output) => {
                let returned = output.returned.map(|value| value.to::<Value>().unwrap());
                if returned != Some(expected) {
                    wrong.push(format!("{source}: {returned:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[tokio::test]
async fn programs_return_values() {
    assert_returns([
        ("return 1", json!(1)),
        ("const a: number = await tools.echo({ x: 2 }).then(r => r.x); return a + 1", json!(3)),
        // All pages.
        (
            "const all = [];\nlet page = 1;\nwhile (page) {\n  const r = await tools.github.list_issues({ page });\n  \
             all.push(...r.issues);\n  page = r.next;\n}\nreturn all.length",
            json!(25),
        ),
        // A join of two servers.
        (
            "const { issues } = await tools.github.list_issues({});\nconst logins = [...new Set(issues.map(i => i.author))];\n\
             const people = await Promise.all(logins.map(login => tools.crm.find_person({ login })));\n\
             return Object.fromEntries(logins.map((login, i) => [login, people[i].name]))",
            json!({ "user1": "USER1", "user2": "USER2", "user0": "USER0" }),
        ),
        // A filter over a large result.
        (
            "const rows = await tools.rows({ count: 50000 });\nreturn rows.filter(r => r.value === 7).length",
            json!(50),
        ),
        (
            "const rows = await tools.rows({ count: 1000 });\nconst sum = rows.reduce((s, r) => s + r.value, 0);\n\
             return { sum, top: rows.sort((a, b) => b.value - a.value || a.id - b.id).slice(0, 2).map(r => r.id) }",
            json!({ "sum": 499_500, "top": [857, 714] }),
        ),
        ("return await call('echo', { a: [1, null, 'x'] })", json!({ "a": [1, null, "x"] })),
        ("return await call('github.list_issues', { page: 3 }).then(r => r.next ?? 'end')", json!("end")),
        ("return (await tools['my-server']['echo.v2']({ b: true })).b", json!(true)),
        ("return (await call('my-server:echo.v2', { b: 2 })).b", json!(2)),
        ("return (await call('list_issues', { page: 3 })).next ?? 'end'", json!("end")),
        // Errors of tools.
        (
            "try { await tools.fail({ data: { id: 7 } }) } catch (e) {\n  return [e instanceof Error, e.name, e.code, e.message, e.data.id]\n}",
            json!([true, "ToolError", "not_found", "No such thing.", 7]),
        ),
        (
            "const results = await Promise.allSettled([tools.fail({}), tools.echo({})]);\nreturn results.map(r => r.status)",
            json!(["rejected", "fulfilled"]),
        ),
        ("return await tools.nothing()", json!(null)),
        ("for await (const r of [tools.echo({ a: 1 })]) return r.a", json!(1)),
        ("return Object.keys(tools.github)", json!(["list_issues"])),
        ("let depth = 0;\nfor (let r = await tools.deep(); r; r = r[0]) depth++;\nreturn depth", json!(100)),
    ])
    .await;
}

#[tokio::test]
async fn values_that_json_would_lose() {
    assert_returns([
        ("return [1, 2].map(n => tools.echo({ n }))", json!([{ "n": 1 }, { "n": 2 }])),
        ("return tools.echo({ n: 1 })", json!({ "n": 1 })),
        (
            "return new Map([['a', 1], ['__proto__', 2]])",
            serde_json::from_str(r#"{"a":1,"__proto__":2}"#).unwrap(),
        ),
        ("return { by: new Map([[1, new Set(['x'])]]) }", json!({ "by": [[1, ["x"]]] })),
        ("return [new Map(), new Set()]", json!([{}, []])),
        ("return await tools.echo({ ids: new Set([1, 2]) })", json!({ "ids": [1, 2] })),
        ("return await tools.echo(new Map([['q', 1]]))", json!({ "q": 1 })),
        // Ids that a number would round.
        (
            "return (await tools.ids({})).map(id => id + '')",
            json!(["9007199254740993", "-9007199254740994", "5"]),
        ),
        (
            "const [id, , five] = await tools.ids({});\nreturn [typeof id, typeof five]",
            json!(["string", "number"]),
        ),
    ])
    .await;
    for (source, calls) in [
        ("return { a: tools.echo({}) }", 1),
        ("return await tools.echo({ q: tools.nothing() })", 1),
        ("return await tools.echo(tools.nothing())", 1),
        ("return [[tools.echo({})]]", 1),
        ("return new Map([['a', tools.echo({})]])", 1),
    ] {
        let failure = run(source).await.expect_err(source);
        let text = failure.error.to_string();
        assert!(text.contains("write `await`") && text.contains("Promise.all"), "{source}: {text}");
        assert_eq!((failure.error.code(), failure.calls), ("uncaught_error", calls), "{source}");
    }
    let source = "console.log(tools.echo({}), { a: [tools.echo({})] }, new Map([['k', 1]]), new Set([2]))";
    let printed = run(source).await.unwrap().printed;
    let promise = "\"[a promise: write `await` before the call]\"";
    assert_eq!(printed, format!("{promise} {{\"a\":[{promise}]}} {{\"k\":1}} [2]\n"));
    // A list of calls fails as one call does.
    let failure = run("return [tools.echo({}), tools.fail({})]").await.unwrap_err();
    assert!(failure.error.to_string().contains("column 31: ToolError: No such thing."), "{failure:?}");
}

#[tokio::test]
async fn names_that_begin_like_the_object_of_tools() {
    let binding = |name: &str, path: &[&str]| ToolBinding {
        name: name.to_owned(),
        path: path.iter().map(|part| (*part).to_owned()).collect(),
    };
    let bindings =
        [binding("tools.rows", &["tools.rows"]), binding("rows", &["rows"]), binding("echo", &["echo"])];
    let source = "const names = [];\n\
                  for (const f of [a => tools['tools.rows'](a), a => call('tools.rows', a), a => tools.rows(a), a => call('rows', a),\n\
                  a => call('tools.echo', a)]) names.push(await f({}));\nreturn names";
    let program = Program { source, tools: &bindings, time_ms: TIME_MS };
    let output = run_program(&child(), &program, &CalledNames, &CodeLimits::default()).await.unwrap();
    let expected = json!(["tools.rows", "tools.rows", "rows", "rows", "echo"]);
    assert_eq!(output.returned.unwrap().to::<Value>().unwrap(), expected);
}

/// Tools that answer with the name that was called.
struct CalledNames;

impl ToolCalls for CalledNames {
    async fn call(&self, name: &str, _: Json) -> Result<Json, CallError> {
        Ok(Json::text(name))
    }
}

#[tokio::test]
async fn the_language() {
    assert_returns([
        // Time stands still, in universal time.
        (
            "const d = new Date();\nreturn [Date.now(), d.toISOString(), new Date(2020, 1, 29).toISOString(), d.getTimezoneOffset(), \
             performance.now(), new Date(0).constructor === Date, typeof Date()]",
            json!([
                1_700_000_000_123_i64,
                "2023-11-14T22:13:20.123Z",
                "2020-02-29T00:00:00.000Z",
                0,
                0,
                true,
                "string"
            ]),
        ),
        ("return 'ü€😀'.normalize('NFD').length", json!(5)),
        (
            "return [/(?<y>\\d{4})/.exec('in 2024').groups.y, 2n ** 64n + '']",
            json!(["2024", "18446744073709551616"]),
        ),
        ("return `${1}` // the end", json!("1")),
        (
            "function* g() { yield* [1, 2] }\nclass A { #x = 3; get x() { return this.#x } }\nreturn [...g(), new A().x]",
            json!([1, 2, 3]),
        ),
        (
            "return { u: undefined, f() {}, d: new Date(0), n: NaN }",
            json!({ "d": "1970-01-01T00:00:00.000Z", "n": null }),
        ),
    ])
    .await;
}

#[tokio::test]
async fn typescript() {
    assert_returns([
        (
            "interface Issue { id: number; title?: string }\nconst i: Issue = { id: 1 };\nreturn i.id as number",
            json!(1),
        ),
        (
            "type A<T> = { [K in keyof T]: T[K] };\nfunction first<T,>(all: T[]): T | undefined { return all[0] }\nreturn first<number>([4])!",
            json!(4),
        ),
        (
            "abstract class Base<T> {\n  protected readonly items: T[] = [];\n  private static count?: number;\n  declare x: string;\n  \
             constructor(items: T[]) { this.items = items }\n  abstract size(): number;\n  public get all(): T[] { return this.items }\n  \
             [key: string]: unknown;\n}\nclass List extends Base<number> implements Iterable<number>, Other {\n  \
             override size(): number { return this.items.length }\n}\nreturn new List([1, 2]).size()",
            json!(2),
        ),
        (
            "const f = async <T>(x: T, y?: number, ...z: string[]): Promise<T> => x;\nreturn await f<string>('a')",
            json!("a"),
        ),
        ("const f = (a: number): {\n  b: number\n} => ({ b: a });\nreturn f(3).b", json!(3)),
        (
            "function over(a: string): string;\nfunction over(a: number): number;\nfunction over(a: any) { return a }\nreturn over(1)",
            json!(1),
        ),
        (
            "function f(this: Array<number>, a: number) { return this.length + a }\nreturn f.call([1], 1)",
            json!(2),
        ),
        ("let x = 5 as any\n[1].forEach(() => {})\nlet y = x satisfies number\n;(y)\nreturn y", json!(5)),
        ("const x = 7;\nlet y!: string;\ndeclare const z: number;\nreturn x", json!(7)),
        // Line breaks where a statement must not end.
        ("const f = () => {\n  return <\n    T,\n  >(x: T) => x\n}\nreturn f()(6)", json!(6)),
        ("const f = () => {\n  return <T,> /* of\n */ (x: T): T => x\n}\nreturn f()(7)", json!(7)),
        ("const f = async <\n  T\n>(x: T) => x;\nreturn await f(8)", json!(8)),
        // Names of fields that are marks without a type.
        (
            "class A {\n  get: boolean\n  list() { return 1 }\n  set?: boolean\n  put(x) { return x }\n  static: number\n  run() { return 3 }\n\
             readonly get!: string\n  async: number\n  go() { return 4 }\n  n?: number = 5\n}\n\
             const a = new A();\nreturn [a.list(), a.put(2), a.run(), a.go(), a.n, 'get' in a, 'set' in a, 'static' in a]",
            json!([1, 2, 3, 4, 5, true, true, true]),
        ),
        ("const a = { b: 1 } as const satisfies Record<string, number>;\nreturn a.b!", json!(1)),
        ("try { throw new Error('x') } catch (e: unknown) { return (e as Error).message }", json!("x")),
        (
            "const m = new Map<string, { n: number }>([['a', { n: 1 }]]);\nfor (const [k, v] of m as Iterable<any>) return k + v.n",
            json!("a1"),
        ),
        ("const is = (x: unknown): x is string => typeof x === 'string';\nreturn is('a') ? 1 : 0", json!(1)),
        (
            "class A {\n  x = 1\n  private ['y'] = 2\n  z?: number\n  m?(): void\n}\nconst a = new A();\nreturn [a.x, a['y'], 'z' in a]",
            json!([1, 2, true]),
        ),
        ("const f = (a, b) => a < b > (0);\nreturn typeof f", json!("function")),
    ])
    .await;
}

#[tokio::test]
async fn errors_name_their_place() {
    let mut wrong = Vec::new();
    for (source, code, parts) in [
        ("const x = 1;\nconst y = ;", "syntax_error", &["line 2, column 11"][..]),
        ("const a: number = 1;\nlet a = 2", "syntax_error", &["line 2, column ", "redefinition"]),
        (
            "const rows = [1].map(r => <Row>{ id: r });",
            "syntax_error",
            &["line 1, column 27", "`value as T`"],
        ),
        ("return <\n  Row\n>rows", "syntax_error", &["line 1, column 8", "`value as T`"]),
        ("enum A { B }", "syntax_error", &["line 1, column 1", "enum", "as const"]),
        ("let a = 1;\nnamespace N { export const x = 1 }", "syntax_error", &["line 2", "namespace"]),
        (
            "class A { constructor(private x: number) {} }",
            "syntax_error",
            &["parameter properties", "column 23"],
        ),
        ("import fs from 'fs'", "syntax_error", &["import", "tools"]),
        ("export default 1", "syntax_error", &["return"]),
        ("@dec class A {}", "syntax_error", &["decorators"]),
        ("}); evil(); (async () => {", "syntax_error", &["line 1"]),
        (
            "const a = 1;\n\n  throw new TypeError('broken')",
            "uncaught_error",
            &["line 3, column ", "TypeError: broken"],
        ),
        ("const t: string = 'x';\nnull.x", "uncaught_error", &["line 2", "TypeError"]),
        (
            "function f(a: { b?: number }) {\n  return a.c.d }\nawait tools.echo({});\nf({})",
            "uncaught_error",
            &["line 2"],
        ),
        ("const x = 1;\nawait tools.fail({})", "uncaught_error", &["line 2", "ToolError: No such thing."]),
        ("await tools.github.list_isues({})", "uncaught_error", &["tools.github.list_issues", "line 1"]),
        ("await tools.gitub.list_issues({})", "uncaught_error", &["tools.g"]),
        (
            "await call('github__list_issue', {})",
            "uncaught_error",
            &["Did you mean `tools.github.list_issues`"],
        ),
        ("tools.zzzzzzzzzz", "uncaught_error", &["There are: tools."]),
        ("await tools.echo(1)", "uncaught_error", &["must be one object"]),
        ("await tools.echo([1])", "uncaught_error", &["must be one object"]),
        ("await tools.echo('\\ud800')", "uncaught_error", &["echo"]),
        ("await fetch('https://example.com')", "uncaught_error", &["ReferenceError", "call a tool"]),
        ("require('fs')", "uncaught_error", &["call a tool"]),
        ("await new Promise(r => setTimeout(r, 10))", "uncaught_error", &["no timers"]),
        ("undeclared = 1", "uncaught_error", &["undeclared"]),
        ("return 1n", "uncaught_error", &["not JSON"]),
        ("const a = {}; a.a = a; return a", "uncaught_error", &["not JSON", "circular"]),
        ("tools.fail({})", "uncaught_error", &["nothing awaited", "No such thing."]),
        ("await new Promise(() => {})", "deadlock", &["can never be settled"]),
    ] {
        let error = run(source).await.expect_err(source).error;
        let text = error.to_string();
        if error.code() != code || !parts.iter().all(|part| text.contains(part)) {
            wrong.push(format!("{source}: {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let error = run("await tools.fail({})").await.unwrap_err().error;
    let ProgramError::Uncaught { error_code, .. } = error else { panic!("{error}") };
    assert_eq!(error_code.as_deref(), Some("not_found"));
}

#[tokio::test]
async fn printed_text_is_kept_in_order_and_on_failure() {
    let source = "print('a', 1, { b: [2] }, undefined, null, 3n, Symbol('s'), () => 1);\nconsole.log(new Error('x'));\n\
                  await tools.echo({});\nconsole.error('after');\nthrow 1";
    let failure = run(source).await.unwrap_err();
    assert_eq!(failure.printed, "a 1 {\"b\":[2]} undefined null 3 Symbol(s) () => 1\nError: x\nafter\n");
    assert_eq!(failure.calls, 1);
    let output = run("print('only')").await.unwrap();
    assert_eq!((output.returned, output.printed.as_str()), (None, "only\n"));
}

#[tokio::test]
async fn calls_run_together_up_to_the_limit() {
    let tools = TestTools::default();
    let limits = CodeLimits { max_concurrent_calls: 4, ..CodeLimits::default() };
    let source = "const r = await Promise.all([...Array(20).keys()].map(i => tools.slow({ i })));\nreturn r.map(x => x.i)";
    let output = run_with(source, &tools, &limits).await.unwrap();
    assert_eq!(output.returned.unwrap().to::<Vec<usize>>().unwrap(), (0..20).collect::<Vec<_>>());
    assert_eq!((output.calls, tools.max_running.load(Ordering::SeqCst)), (20, 4));
}

#[tokio::test]
async fn calls_without_await_are_finished() {
    let tools = TestTools::default();
    let output =
        run_with("tools.slow({}); tools.slow({}); return 1", &tools, &CodeLimits::default()).await.unwrap();
    assert_eq!((output.calls, tools.ended.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test]
async fn waiting_arguments_are_bounded() {
    let source = "const text = 'x'.repeat(1e6);\n\
                  const all = await Promise.allSettled(Array(20).fill(0).map(() => tools.size({ text })));\n\
                  const failed = all.filter(r => r.status === 'rejected');\nreturn [all.length - failed.length, failed[0].reason.message]";
    let (done, message) = run(source).await.unwrap().returned.unwrap().to::<(usize, String)>().unwrap();
    assert!(done == 16 && message.contains("Await some of the calls"), "{done} {message}");
}

#[tokio::test]
async fn arguments_and_results_of_a_megabyte_pass() {
    let source = "const text = 'x'.repeat(900000);\nconst all = await Promise.all(Array(8).fill(0).map(() => tools.echo({ text })));\n\
                  return all.every(r => r.text === text)";
    let output = run(source).await.unwrap();
    assert_eq!(output.returned.unwrap().as_str(), "true");
}
