//! Tools in memory, and a way to run programs against them.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests use a part of it each"
)]

use octo_code::{
    CallError, ChildCommand, CodeLimits, Program, ProgramFailure, ProgramOutput, ToolBinding, ToolCalls,
    run_program,
};
use octo_model::Json;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The time that programs see.
pub const TIME_MS: i64 = 1_700_000_000_123;

#[derive(Default)]
pub struct TestTools {
    begun: AtomicUsize,
    running: AtomicUsize,
    pub max_running: AtomicUsize,
    pub ended: AtomicUsize,
}

impl TestTools {
    /// Calls that have begun, that are over in any way, and that were answered.
    pub fn counts(&self) -> (usize, usize, usize) {
        let begun = self.begun.load(Ordering::SeqCst);
        (begun, begun - self.running.load(Ordering::SeqCst), self.ended.load(Ordering::SeqCst))
    }
}

/// A running call.
struct RunningCall<'a>(&'a TestTools);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

impl ToolCalls for TestTools {
    async fn call(&self, name: &str, arguments: Json) -> Result<Json, CallError> {
        let arguments: Value = arguments.to().unwrap();
        self.begun.fetch_add(1, Ordering::SeqCst);
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _call = RunningCall(self);
        self.max_running.fetch_max(running, Ordering::SeqCst);
        let result = answer(name, &arguments).await;
        self.ended.fetch_add(1, Ordering::SeqCst);
        result.map(|value| Json::of(&value))
    }
}

async fn answer(name: &str, arguments: &Value) -> Result<Value, CallError> {
    let number = |key: &str| arguments[key].as_u64().unwrap_or(1);
    Ok(match name {
        "github__list_issues" => {
            let page = number("page");
            let ids = (page - 1) * 10 + 1..=(page * 10).min(25);
            let issues: Vec<_> = ids
                .map(|id| json!({ "id": id, "title": format!("Issue {id}"), "author": format!("user{}", id % 3) }))
                .collect();
            json!({ "issues": issues, "next": (page < 3).then_some(page + 1) })
        }
        "crm__find_person" => json!({ "name": arguments["login"].as_str().unwrap().to_uppercase() }),
        "echo" => arguments.clone(),
        "fail" => {
            let data = arguments.get("data").map(Json::of);
            return Err(CallError {
                code: "not_found".to_owned(),
                message: "No such thing.".to_owned(),
                data,
            });
        }
        "rows" => (0..number("count")).map(|id| json!({ "id": id, "value": id * 7 % 1_000 })).collect(),
        "deep" => serde_json::from_str(&format!("{}{}", "[".repeat(100), "]".repeat(100))).unwrap(),
        "slow" => {
            tokio::time::sleep(Duration::from_millis(30)).await;
            arguments.clone()
        }
        "never" => std::future::pending().await,
        "nothing" => Value::Null,
        "ids" => serde_json::from_str("[9007199254740993,-9007199254740994,5]").unwrap(),
        "size" => arguments.to_string().len().into(),
        other => panic!("{other}"),
    })
}

pub fn bindings() -> Vec<ToolBinding> {
    let paths: [&[&str]; 12] = [
        &["github", "list_issues"],
        &["crm", "find_person"],
        &["echo"],
        &["fail"],
        &["rows"],
        &["deep"],
        &["slow"],
        &["never"],
        &["nothing"],
        &["ids"],
        &["size"],
        &["my-server", "echo.v2"],
    ];
    let path_of = |path: &&[&str]| path.iter().map(|part| (*part).to_owned()).collect();
    let name_of = |path: &[&str]| if path[0] == "my-server" { "echo".to_owned() } else { path.join("__") };
    paths.iter().map(|path| ToolBinding { name: name_of(path), path: path_of(path) }).collect()
}

pub fn child() -> ChildCommand {
    ChildCommand { program: env!("CARGO_BIN_EXE_code_child").into(), args: Vec::new() }
}

/// Limits at which hostile programs end soon.
pub fn small_limits() -> CodeLimits {
    CodeLimits {
        timeout: Duration::from_secs(60),
        cpu_seconds: 1,
        memory_bytes: 32 << 20,
        max_output_bytes: 64 << 10,
        ..CodeLimits::default()
    }
}

pub async fn run_with(
    source: &str,
    tools: &TestTools,
    limits: &CodeLimits,
) -> Result<ProgramOutput, ProgramFailure> {
    let bindings = bindings();
    run_program(&child(), &Program { source, tools: &bindings, time_ms: TIME_MS }, tools, limits).await
}

pub async fn run(source: &str) -> Result<ProgramOutput, ProgramFailure> {
    run_with(source, &TestTools::default(), &CodeLimits::default()).await
}
