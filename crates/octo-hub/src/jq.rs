//! jq expressions over kept results. They may loop for ever, so they run where they can be killed.

use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use octo_model::{Caller, Json, ToolError};
use octo_toolkit::BoxFuture;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Runs a jq expression somewhere that can be ended at any time.
pub trait Jq: Send + Sync {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>>;
}

/// Expressions that run at the same time, and of one caller among them.
const MAX_RUNS: usize = 4;
const MAX_RUNS_PER_CALLER: usize = 1;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// Of an error that holds what an expression was applied to.
const MAX_ERROR: usize = 300;
/// Top-level keys that an error names.
const MAX_KEYS: usize = 20;
const MAX_KEY: usize = 30;

/// A caller pauses for so many times as long as its last expression took, so that its expressions take a part of a
/// processor and not all of it.
const PAUSE_FACTOR: u32 = 3;
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Lets a few expressions run at a time, each caller's in turn.
pub struct JqQueue {
    all: Arc<Semaphore>,
    callers: Mutex<HashMap<String, Arc<Lane>>>,
    timeout: Duration,
}

/// The expressions of one caller.
#[derive(Debug)]
struct Lane {
    one: Arc<Semaphore>,
    next: Mutex<Instant>,
}

impl Default for Lane {
    fn default() -> Self {
        Self { one: Arc::new(Semaphore::new(MAX_RUNS_PER_CALLER)), next: Mutex::new(Instant::now()) }
    }
}

impl Lane {
    fn next(&self) -> Instant {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to run an expression, until it is dropped.
#[derive(Debug)]
pub struct JqTurn {
    lane: Arc<Lane>,
    begun: Instant,
    _permits: [OwnedSemaphorePermit; 2],
}

impl Drop for JqTurn {
    fn drop(&mut self) {
        let pause = (self.begun.elapsed() * PAUSE_FACTOR).min(MAX_PAUSE);
        *self.lane.next.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + pause;
    }
}

impl Default for JqQueue {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MAX_RUNS)), callers: Mutex::default(), timeout: QUEUE_TIMEOUT }
    }
}

impl JqQueue {
    /// Waits until an expression of this caller may run.
    pub async fn turn(&self, caller: &Caller) -> Result<JqTurn, ToolError> {
        let lane = {
            let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            callers.retain(|_, lane| Arc::strong_count(lane) > 1 || lane.next() > now);
            let key = format!("{}/{}", caller.tenant, caller.subject);
            Arc::clone(callers.entry(key).or_default())
        };
        let turn = async {
            let own = Arc::clone(&lane.one).acquire_owned().await?;
            tokio::time::sleep_until(lane.next()).await;
            Ok([own, Arc::clone(&self.all).acquire_owned().await?])
        };
        match tokio::time::timeout(self.timeout, turn).await {
            Ok(turn) => {
                let _permits = turn.map_err(|error: AcquireError| ToolError::internal(error))?;
                Ok(JqTurn { lane, begun: Instant::now(), _permits })
            }
            Err(_) => Err(ToolError::unavailable("Too many jq expressions are running.")
                .hint("Try again in a moment, with one expression at a time.")
                .retry_after(Duration::from_secs(2))),
        }
    }
}

/// Evaluates in this thread, without any bound on time: for the process that may be killed.
/// Gives one output per line, and stops past `limit` bytes.
pub fn evaluate(program: &str, input: &[u8], limit: usize) -> Result<String, String> {
    let input = read::parse_single(input).map_err(|error| format!("the kept result is not JSON: {error}"))?;
    let loader = Loader::new(jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
    let arena = Arena::default();
    let modules = loader
        .load(&arena, File { code: program, path: () })
        .map_err(|errors| format!("the expression cannot be read: {}", unreadable(program, &errors)))?;
    let filter = Compiler::default()
        .with_funs(jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()))
        .compile(modules)
        .map_err(|errors| format!("the expression cannot be used: {}", undefined(&errors)))?;
    let keys = top_level_keys(&input);
    let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut text = String::new();
    for output in filter.id.run((ctx, input)).map(unwrap_valr) {
        let output = output
            .map_err(|error| format!("the expression failed: {}{keys}", shortened(&error.to_string())))?;
        text.push_str(&output.to_string());
        text.push('\n');
        if text.len() > limit {
            break;
        }
    }
    Ok(text)
}

/// What the input has to offer, for an error: most expressions fail because a key is somewhere else.
fn top_level_keys(input: &Val) -> String {
    let Val::Obj(members) = input else { return String::new() };
    let name = |key: &Val| key.to_string().trim_matches('"').chars().take(MAX_KEY).collect::<String>();
    let mut names: Vec<String> =
        members.keys().take(MAX_KEYS).map(|key| format!("`{}`", name(key))).collect();
    if members.len() > MAX_KEYS {
        names.push("…".to_owned());
    }
    match names.is_empty() {
        true => String::new(),
        false => format!(". The top-level keys are {}", names.join(", ")),
    }
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_ERROR).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Where and why an expression cannot be read.
fn unreadable(program: &str, errors: &load::Errors<&str, ()>) -> String {
    let first = errors.first().map(|(_, error)| match error {
        load::Error::Io(errors) => errors.first().map(|(path, _)| format!("it refers to the file `{path}`")),
        load::Error::Lex(errors) => {
            errors.first().map(|(expected, at)| wanted(program, expected.as_str(), at))
        }
        load::Error::Parse(errors) => {
            errors.first().map(|(expected, at)| wanted(program, expected.as_str(), at))
        }
    });
    shortened(&first.flatten().unwrap_or_else(|| "it is incomplete".to_owned()))
}

fn wanted(program: &str, expected: &str, at: &str) -> String {
    let offset = at.as_ptr().addr().checked_sub(program.as_ptr().addr()).filter(|at| *at <= program.len());
    let before = offset.and_then(|offset| program.get(..offset));
    let place = match before.map(|before| before.chars().count() + 1) {
        Some(column) if !at.is_empty() => format!("at character {column}"),
        _ => "at the end".to_owned(),
    };
    format!("{expected} was expected {place}")
}

/// The names that an expression uses and that do not exist.
fn undefined(errors: &jaq_core::compile::Errors<&str, ()>) -> String {
    let all = errors.iter().flat_map(|(_, errors)| errors);
    let names = all.take(3).map(|(name, undefined)| format!("there is no {} `{name}`", undefined.as_str()));
    shortened(&names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_and_says_what_is_wrong() {
        assert_eq!(evaluate(".a[] | .+1", br#"{"a":[1,2]}"#, 100).unwrap(), "2\n3\n");
        assert_eq!(evaluate("map(select(.x)) | length", br#"[{"x":true},{"x":false}]"#, 100).unwrap(), "1\n");
        for (program, input) in [(".a[", "{}"), ("nosuch", "{}"), (".a.b", "3"), (".", "not json")] {
            assert!(evaluate(program, input.as_bytes(), 100).is_err(), "{program}");
        }
        let long = format!("\"{}\"", "x".repeat(1_000_000));
        for (program, input, wanted) in [
            (".a[", "{}", "the expression cannot be read: "),
            (".a | nosuch(1)", "{}", "there is no filter `nosuch`"),
            ("$x", "1", "there is no variable `$x`"),
            (". as [$a | 1", "1", "was expected"),
            ("fromjson", long.as_str(), "the expression failed: "),
            (".a", long.as_str(), "the expression failed: "),
            (".items[]", r#"{"json":{"items":[]},"status":200}"#, "The top-level keys are `json`, `status`"),
        ] {
            let error = evaluate(program, input.as_bytes(), 100).unwrap_err();
            assert!(error.contains(wanted) && !error.contains("Error"), "{program}: {error}");
            assert!(error.len() < 1_000, "{program}: {}", error.len());
        }
        assert!(evaluate("range(1e9)", b"null", 50).unwrap().len() < 80);
    }

    #[tokio::test]
    async fn one_caller_does_not_keep_the_others_waiting() {
        let queue = JqQueue::default();
        let (ada, bob) = (Caller::named("ada"), Caller::named("bob"));
        let turn = queue.turn(&ada).await.unwrap();
        let soon = Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, queue.turn(&ada)).await.is_err());
        let other = tokio::time::timeout(soon, queue.turn(&bob)).await;
        assert!(other.is_ok());
        drop((turn, other));
        // Ada has used the queue for more than 50 ms and pauses for longer than that; then nobody is remembered.
        assert!(tokio::time::timeout(soon, queue.turn(&ada)).await.is_err());
        assert!(queue.turn(&bob).await.is_ok());
        assert!(queue.turn(&ada).await.is_ok());
        tokio::time::sleep(soon).await;
        assert!(queue.turn(&Caller::named("cy")).await.is_ok());
        assert_eq!(queue.callers.lock().unwrap().len(), 1);
    }

    #[tokio::test]
    async fn whoever_waits_too_long_is_told_to_come_back() {
        let queue = JqQueue { timeout: Duration::from_millis(50), ..JqQueue::default() };
        let mut turns = Vec::new();
        for n in 0..MAX_RUNS {
            turns.push(queue.turn(&Caller::named(format!("caller-{n}"))).await.unwrap());
        }
        let error = queue.turn(&Caller::named("ada")).await.unwrap_err();
        assert!(error.retry_after.is_some() && error.kind == octo_model::Kind::Unavailable);
    }
}
