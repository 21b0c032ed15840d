//! Programs that attack: each ends within the limits, with the error that says why.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod code_fixture;

use code_fixture::{TestTools, bindings, run, run_with, small_limits};
use octo_code::{ChildCommand, CodeLimits, Program, ProgramError, run_program};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Longest time of a program with [`small_limits`], on a busy machine: programs have a low priority.
const MAX_TIME: Duration = Duration::from_secs(60);

async fn assert_codes(table: &[(&str, &[&str])]) {
    let mut wrong = Vec::new();
    for (source, codes) in table {
        let tools = TestTools::default();
        let began = Instant::now();
        let end = run_with(source, &tools, &small_limits()).await;
        let code = match &end {
            Ok(_) => "ok",
            Err(failure) => failure.error.code(),
        };
        if !codes.contains(&code) || began.elapsed() > MAX_TIME {
            wrong.push(format!("{source}: {end:?}, {codes:?} expected, in {:?}", began.elapsed()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    // A normal program still works.
    assert_eq!(run("return 1 + 1").await.unwrap().returned.unwrap().as_str(), "2");
}

#[tokio::test]
async fn endless_programs() {
    assert_codes(&[
        ("while (true) {}", &["cpu_limit"]),
        ("for (;;) await null", &["cpu_limit"]),
        ("return Array(2 ** 32 - 1)", &["cpu_limit", "memory_limit", "uncaught_error"]),
        ("return new Map([[{ toString() { while (true) {} } }, 1]])", &["ok"]),
        (
            "const f = () => Promise.resolve().then(f); await f()",
            &["cpu_limit", "memory_limit", "uncaught_error"],
        ),
        ("function f() { Promise.resolve().then(f) }\nf(); return 1", &["cpu_limit"]),
        ("try { while (true) {} } finally { while (true) {} }", &["cpu_limit"]),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b')", &["cpu_limit"]),
        ("'x'.repeat(3e7).replace(/x*?y/g, '')", &["cpu_limit", "memory_limit"]),
        ("new Array(2 ** 32 - 1).fill().sort()", &["cpu_limit", "memory_limit", "uncaught_error"]),
    ])
    .await;
}

#[tokio::test]
async fn endless_native_functions() {
    assert_codes(&[
        ("Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)", &["cpu_limit"]),
        ("[].fill.call({ length: 2 ** 53 - 1 }, 1)", &["cpu_limit", "memory_limit"]),
        ("Array.from({ length: 2 ** 53 - 1 }, x => 0)", &["cpu_limit", "memory_limit", "uncaught_error"]),
        ("[3, 1, 2].sort(() => { while (true) {} })", &["cpu_limit"]),
        ("const a = Array(1e4).fill(0); while (true) a.sort(() => Math.random() - 0.5)", &["cpu_limit"]),
        ("JSON.stringify({ toJSON() { while (true) {} } })", &["cpu_limit"]),
        ("const s = JSON.stringify(Array(1e5).fill([1])); while (true) JSON.parse(s)", &["cpu_limit"]),
        ("(2n ** 100000n) ** 1000n", &["cpu_limit", "uncaught_error", "memory_limit"]),
        ("let x = 3n; while (true) x = x * x", &["cpu_limit", "uncaught_error", "memory_limit"]),
        (
            "'a'.padEnd(2 ** 29).split('').reverse().join('')",
            &["cpu_limit", "memory_limit", "uncaught_error"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn endless_values() {
    assert_codes(&[
        ("return { get a() { while (true) {} } }", &["cpu_limit"]),
        ("return { toJSON() { while (true) {} } }", &["cpu_limit"]),
        ("throw { get message() { while (true) {} }, __proto__: Error.prototype }", &["cpu_limit", "uncaught_error"]),
        ("const e = new Error(); Object.defineProperty(e, 'message', { get() { while (true) {} } }); throw e", &["cpu_limit"]),
        ("const it = { [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }; new Set(it)", &["cpu_limit"]),
        ("eval('while (true) {}')", &["cpu_limit"]),
        ("Array.prototype.push = function () { while (true) {} }; await tools.echo({}); [].push(1)", &["cpu_limit"]),
    ])
    .await;
}

#[tokio::test]
async fn programs_that_take_memory_or_stack() {
    assert_codes(&[
        ("const a = []; while (true) a.push('x'.repeat(1e6) + a.length)", &["memory_limit"]),
        ("const a = []; while (true) a.push({})", &["memory_limit", "cpu_limit", "uncaught_error"]),
        ("new Uint8Array(2 ** 31)", &["memory_limit", "uncaught_error"]),
        ("let s = 'x'; while (true) s += s", &["memory_limit", "uncaught_error"]),
        ("'x'.repeat(2 ** 30 - 1)", &["memory_limit", "uncaught_error"]),
        ("new Array(1e9).fill(1)", &["memory_limit", "cpu_limit", "uncaught_error"]),
        (
            "while (true) try { const a = []; while (true) a.push(a.length + 'x'.repeat(1e5)) } catch {}",
            &["cpu_limit"],
        ),
        ("const f = () => f(); f()", &["uncaught_error"]),
        ("const f = () => { try { f() } finally { f() } }; f()", &["uncaught_error", "cpu_limit"]),
        ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a)", &["uncaught_error"]),
        ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a", &["uncaught_error"]),
        ("JSON.parse('['.repeat(1e6))", &["uncaught_error"]),
        ("new RegExp('('.repeat(1e5) + ')'.repeat(1e5))", &["uncaught_error"]),
        ("eval('('.repeat(1e6))", &["uncaught_error"]),
        ("return await tools.rows({ count: 1000000 })", &["memory_limit", "uncaught_error"]),
        ("while (true) tools.rows({ count: 1000 })", &["call_limit"]),
    ])
    .await;
}

#[tokio::test]
async fn deeply_nested_sources() {
    let repeat = |text: &str, count: usize| text.repeat(count);
    for source in [
        repeat("(", 60_000),
        repeat("[", 60_000),
        repeat("!", 60_000) + "1",
        repeat("a=>", 20_000) + "1",
        repeat("a?b:", 15_000) + "c",
        repeat("{", 60_000),
        repeat("if(a)", 12_000) + "b",
        repeat("-~", 30_000) + "1",
        repeat("`${", 20_000),
        "1".to_owned() + &repeat("+1", 30_000),
        "a".to_owned() + &repeat(".a", 30_000),
        "a".to_owned() + &repeat("()", 30_000),
        "let a: ".to_owned() + &repeat("Array<", 10_000),
        "let a: ".to_owned() + &repeat("(", 60_000),
        "type A = ".to_owned() + &repeat("keyof ", 10_000) + "B",
        "let x = a".to_owned() + &repeat(" as B", 12_000),
        repeat("function f(){", 4_500),
        repeat("class A{x=", 6_000),
        "/".to_owned() + &repeat("(", 60_000) + "/",
    ] {
        let began = Instant::now();
        let end = run_with(&source, &TestTools::default(), &small_limits()).await;
        let begin: String = source.chars().take(20).collect();
        let code = end.map_or_else(|failure| failure.error.code(), |_| "ok");
        assert!(
            ["ok", "syntax_error", "crashed", "uncaught_error", "cpu_limit"].contains(&code),
            "{begin}: {code}"
        );
        assert!(began.elapsed() < MAX_TIME, "{begin}");
    }
    assert_eq!(run("return 2").await.unwrap().returned.unwrap().as_str(), "2");
}

#[tokio::test]
async fn floods() {
    assert_codes(&[
        ("while (true) print('x'.repeat(1000))", &["output_limit"]),
        ("while (true) print()", &["output_limit"]),
        ("print('x'.repeat(1e6))", &["output_limit"]),
        ("try { print('x'.repeat(1e6)) } catch {}\nwhile (true) {}", &["output_limit"]),
        ("return 'x'.repeat(1e6)", &["output_limit"]),
        ("throw new Error('x'.repeat(1e6))", &["uncaught_error"]),
        ("throw 'x'.repeat(1e6)", &["uncaught_error"]),
        ("while (true) tools.echo({})", &["call_limit"]),
        ("while (true) await tools.echo({})", &["call_limit"]),
        ("while (true) try { await tools.echo({}) } catch {}", &["call_limit"]),
        ("const f = () => tools.echo({}).then(f, f); await Promise.all([f(), f(), f()])", &["call_limit"]),
        ("for (let i = 0; i < 1e6; i++) try { tools.nope } catch {}", &["ok", "cpu_limit"]),
        ("await tools.echo({ x: 'x'.repeat(2e6) })", &["uncaught_error"]),
        ("await call('x'.repeat(1e6), {})", &["uncaught_error"]),
        ("for (let i = 0; i < 1e5; i++) Promise.reject(i)", &["uncaught_error"]),
    ])
    .await;
}

#[tokio::test]
async fn programs_that_look_for_a_way_out() {
    assert_codes(&[
        ("await import('fs')", &["uncaught_error"]),
        ("await import('std')", &["uncaught_error"]),
        ("await import('os')", &["uncaught_error"]),
        ("import * as std from 'std'", &["syntax_error"]),
        ("return std.open('/etc/passwd')", &["uncaught_error"]),
        ("return require('child_process').execSync('id')", &["uncaught_error"]),
        ("return process.env", &["uncaught_error"]),
        ("return Deno.readTextFileSync('/etc/passwd')", &["uncaught_error"]),
        ("await fetch('http://169.254.169.254/')", &["uncaught_error"]),
        ("new Worker('x')", &["uncaught_error"]),
        ("return scriptArgs", &["uncaught_error"]),
        ("return read('/etc/passwd')", &["uncaught_error"]),
        ("return import.meta.url", &["syntax_error", "uncaught_error"]),
        ("const e = (0, eval)('this'); return typeof e.std + typeof e.os + typeof e.process", &["ok"]),
        ("return Function('return typeof require')()", &["ok"]),
        ("return new (Object.getPrototypeOf(async () => {}).constructor)('return 1')()", &["ok"]),
        (
            "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
            &["uncaught_error", "forbidden_system_call", "time_limit"],
        ),
        ("throw null", &["uncaught_error"]),
        ("throw undefined", &["uncaught_error"]),
        ("throw { toString() { throw 1 } }", &["uncaught_error"]),
        ("throw Symbol('x')", &["uncaught_error"]),
        ("throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 2 } })", &["uncaught_error"]),
        (
            "const e = new Error('x'); e.stack = { toString() { throw 1 } }; e.code = {}; throw e",
            &["uncaught_error"],
        ),
        ("return { get a() { throw new Error('getter') } }", &["uncaught_error"]),
        ("return { toJSON() { throw 1 } }", &["uncaught_error"]),
        ("return new Proxy({}, { ownKeys() { throw new Error('trap') } })", &["uncaught_error"]),
        ("return new Proxy({ a: 1 }, {})", &["ok"]),
        ("return { then() {} }", &["deadlock"]),
        ("return { then(f) { f(1) } }", &["ok"]),
        ("await { then() { throw new Error('x') } }", &["uncaught_error"]),
        ("Promise.reject(new Error('x'))", &["uncaught_error"]),
        ("await Promise.race([])", &["deadlock"]),
        ("await tools", &["ok"]),
        ("Promise.resolve().then(() => print('late')); return 1", &["ok"]),
        ("return Symbol('x')", &["ok"]),
        ("return () => 1", &["ok"]),
        ("globalThis.tools = null; return tools", &["ok"]),
        ("tools.echo = 1", &["uncaught_error"]),
        ("delete tools.github", &["uncaught_error"]),
        ("Error.prepareStackTrace = () => { throw 1 }; throw new Error('x')", &["uncaught_error"]),
        ("Error.stackTraceLimit = Infinity; const f = () => f(); f()", &["uncaught_error"]),
    ])
    .await;
}

/// A program that changes what the bridge is built on harms itself at most.
#[tokio::test]
async fn polluted_globals() {
    for source in [
        "JSON.stringify = () => 'x'; JSON.parse = () => 'y'",
        "globalThis.JSON = null; globalThis.Error = null; globalThis.Object = null; globalThis.Proxy = null",
        "globalThis.Promise = class {}; Promise.prototype.then = null",
        "Object.prototype.toJSON = undefined; Object.prototype.resolve = () => {}; Object.prototype.name = 'x'",
        "Object.prototype.get = () => { throw 1 }; Object.prototype.value = 7; Object.prototype.enumerable = true",
        "Object.defineProperty(Object.prototype, '0', { set() { throw 1 }, get() { return 1 } })",
        "Object.defineProperty(Object.prototype, 'data', { set() { throw 1 } })",
        "Array.prototype[Symbol.iterator] = null; Array.prototype.push = null; Array.prototype.join = null",
        "String.prototype.toString = () => 'z'; Function.prototype.call = null; Function.prototype.apply = null",
        "Object.defineProperty = null; Object.freeze = null; Reflect.construct = null",
        "Number.prototype.toString = null; Map.prototype.get = null",
        "globalThis.print = null; globalThis.call = null; console.log = null",
        "const { call: c } = globalThis; globalThis.call = (n, a) => c('nope', a)",
    ] {
        let source = format!(
            "{source};\nconst r = await tools.echo({{ a: 1 }});\nlet code = 0;\n\
             try {{ await tools.fail({{}}) }} catch (e) {{ code = e.code }}\nreturn {{ a: r.a, code }}"
        );
        let output = run(&source).await.unwrap_or_else(|failure| panic!("{source}: {failure:?}"));
        let returned = output.returned.unwrap().to::<Value>().unwrap();
        assert_eq!(returned, json!({ "a": 1, "code": "not_found" }), "{source}");
    }
}

#[tokio::test]
async fn a_call_that_never_ends() {
    let limits = CodeLimits { timeout: Duration::from_millis(500), ..CodeLimits::default() };
    let tools = TestTools::default();
    let failure = run_with("print('begun'); await tools.never({})", &tools, &limits).await.unwrap_err();
    assert_eq!((failure.error.code(), failure.printed.as_str(), failure.calls), ("time_limit", "begun\n", 1));
    assert_eq!(tools.counts(), (1, 1, 0));
}

#[tokio::test]
async fn a_long_code_of_an_error_is_shortened() {
    let failure = run("throw Object.assign(new Error('x'), { code: 'y'.repeat(1e7) })").await.unwrap_err();
    let ProgramError::Uncaught { error_code, .. } = failure.error else { panic!("{failure:?}") };
    assert!(error_code.is_some_and(|code| code.len() < 5_000));
}

#[tokio::test]
async fn a_source_that_is_too_long() {
    let failure = run(&" ".repeat(70_000)).await.unwrap_err();
    assert_eq!(failure.error.code(), "program_too_large");
}

/// Processes that do not keep the protocol, as if a program had taken over its process.
#[tokio::test]
async fn forged_frames() {
    let frame = |text: &str| {
        let length = u32::try_from(text.len()).unwrap().to_le_bytes();
        length.iter().map(|byte| format!("\\{byte:03o}")).collect::<String>() + &text.replace('"', "\\042")
    };
    let call = |id: &str, name: &str, arguments: &str| {
        frame(&format!(r#"{{"Call":{{"id":{id},"name":"{name}","arguments":{arguments}}}}}"#))
    };
    let print = frame(r#"{"Print":"xxxxxxxxxxxxxxxx"}"#);
    // Doubled in the shell, since the sandbox lets it start no program.
    let [head, tail, doublings] = [r#"{"Call":{"id":0,"name":"echo","arguments":{"a":""#, r#""}}}"#, "21"];
    let length = u32::try_from(head.len() + (1 << 21) + tail.len()).unwrap().to_le_bytes();
    let length: String = length.iter().map(|byte| format!("\\{byte:03o}")).collect();
    let long_call = format!(
        "a=x; i=0; while [ $i -lt {doublings} ]; do a=$a$a; i=$((i+1)); done; printf '{length}%s' '{head}'; printf %s \"$a\" '{tail}'"
    );
    for (script, code) in [
        (long_call, "protocol_error"),
        (format!("printf '{}'", frame("nonsense")), "protocol_error"),
        ("printf '\\377\\377\\377\\377x'".to_owned(), "protocol_error"),
        (format!("printf '{}'", frame(r#"{"Start":{}}"#)), "protocol_error"),
        (format!("printf '{}'", call("1", "echo", "{}")), "protocol_error"),
        (format!("printf '{}'", call("18446744073709551615", "echo", "{}")), "protocol_error"),
        (format!("printf '{}'", call("1e99", "echo", "{}")), "protocol_error"),
        (format!("printf '{}'", call("0", "rm_rf", "{}")), "protocol_error"),
        (format!("printf '{}'", call("0", "echo", "[]")), "protocol_error"),
        (format!("printf '{}'", call("0", "echo", r#"{"a":1,"a":2}"#)), "protocol_error"),
        (
            (0..9).fold(String::new(), |all, id| {
                format!("{all} printf '{}';", call(&id.to_string(), "never", "{}"))
            }),
            "protocol_error",
        ),
        (format!("while :; do printf '{print}' || exit; done"), "output_limit"),
        (format!("while :; do printf '{}' || exit; done", frame(r#"{"Print":""}"#)), "protocol_error"),
        ("printf abc".to_owned(), "crashed"),
        ("while :; do printf '\\000\\000\\000\\000' || exit; done".to_owned(), "protocol_error"),
        ("exit 0".to_owned(), "crashed"),
        ("kill -KILL $$".to_owned(), "crashed"),
        ("kill -SYS $$".to_owned(), "forbidden_system_call"),
        ("exec >&-; exec /bin/sleep 100".to_owned(), "crashed"),
        ("exec /bin/sleep 100".to_owned(), "time_limit"),
        (format!("printf '{}'; exec /bin/sleep 100", frame(r#"{"Returned":1}"#)), "ok"),
    ] {
        let child = ChildCommand { program: "/bin/sh".into(), args: vec!["-c".to_owned(), script.clone()] };
        let bindings = bindings();
        let program = Program { source: "return 1", tools: &bindings, time_ms: 0 };
        let limits =
            CodeLimits { timeout: Duration::from_secs(5), max_output_bytes: 300, ..CodeLimits::default() };
        let end = run_program(&child, &program, &TestTools::default(), &limits).await;
        let got = end.map_or_else(|failure| failure.error.code(), |_| "ok");
        assert_eq!(got, code, "{script}");
    }
    let missing = ChildCommand { program: "/does/not/exist".into(), args: Vec::new() };
    let program = Program { source: "return 1", tools: &[], time_ms: 0 };
    let end = run_program(&missing, &program, &TestTools::default(), &CodeLimits::default()).await;
    assert_eq!(end.unwrap_err().error.code(), "unavailable");
}
