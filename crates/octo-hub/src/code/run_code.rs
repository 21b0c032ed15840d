//! `run_code`: runs a program that calls tools.

use super::code_tools::{CodeTools, declared_tools};
use super::program_slots::ProgramSlots;
use crate::catalogue::item::Entry;
use octo_code::{ChildCommand, CodeLimits, Program, ProgramError, ProgramFailure, ProgramLimit, run_program};
use octo_grants::Clock;
use octo_model::{Effect, Kind, ToolError};
use octo_toolkit::{CallContext, Example, Tool, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// Name of the tool that runs programs.
pub const RUN_CODE_TOOL: &str = "run_code";

/// Bytes of declarations, which fit into a reply of the usual size.
const MAX_DECLARATION_BYTES: usize = 6_500;
/// Names of tools whose declarations are asked for.
const MAX_NAMES: usize = 50;
/// Characters of what a failed program printed before.
const MAX_PRINTED_CHARS: usize = 2_000;
/// Time that a program leaves its call for the reply.
const REPLY_MARGIN: Duration = Duration::from_millis(500);

/// Runs JavaScript or TypeScript that calls tools: `const hits = await tools.fs_search({pattern: "TODO"}); return
/// hits.matches.length`. Tools of servers are `tools.server.tool({…})`. Only what it returns or prints with console.log
/// comes back; failed calls throw. No files, network, timers or modules. Find names with tools_find; `types` shows what
/// tools take and return.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The program: the body of an async function.
    #[serde(default)]
    code: Option<String>,
    /// Instead of code: names of tools, or `server.*`, to declare.
    #[serde(default)]
    types: Vec<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// What the program returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// What it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    printed: String,
    /// Number of calls it made.
    calls: usize,
    /// TypeScript declarations of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    types: Option<String>,
}

pub struct RunCode {
    child: ChildCommand,
    slots: ProgramSlots,
}

impl RunCode {
    /// The tool that runs programs with this command.
    pub fn new(child: ChildCommand) -> Self {
        Self { child, slots: ProgramSlots::default() }
    }

    async fn run_source(&self, source: &str, clock: &Clock, cx: &CallContext) -> Result<Output, ToolError> {
        let _slot = self.slots.acquire(&cx.caller.principal)?;
        let calls = CodeTools::new(cx)?;
        cx.nested_calls()?.wait_for_startup_listing(cx).await;
        let tools = calls.bindings(source)?;
        let program = Program { source, tools: &tools, time_ms: clock.now().as_millisecond() };
        let timeout = cx.time_left().saturating_sub(REPLY_MARGIN);
        let limits = CodeLimits { timeout, ..CodeLimits::default() };
        let ended = cx.run(run_program(&self.child, &program, &calls, &limits)).await?;
        let output = ended.map_err(program_error)?;
        let result =
            output.returned.map(|json| json.to::<Value>()).transpose().map_err(ToolError::internal)?;
        Ok(Output { result, printed: output.printed, calls: output.calls, types: None })
    }

    async fn declare(&self, names: Vec<String>, cx: &CallContext) -> Result<Output, ToolError> {
        let slot = self.slots.acquire(&cx.caller.principal)?;
        let (hub, header) = (cx.nested_calls()?, cx.header().clone());
        let work = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            declared_tools(&*hub, &header, &names, MAX_DECLARATION_BYTES)
        });
        let types = work.await.unwrap_or_else(|error| Err(ToolError::internal(error)))?;
        Ok(Output { result: None, printed: String::new(), calls: 0, types: Some(types) })
    }
}

impl Tool for RunCode {
    const NAME: &'static str = RUN_CODE_TOOL;
    const TITLE: &'static str = "Run a program that calls tools";
    const KEYWORDS: &'static str = "javascript typescript script code mode loop batch combine several calls";
    const REQUESTS: &'static [&'static str] = &[
        "run a small script over many results",
        "call the same tool for each item of a list",
        "combine the output of two servers in one step",
        "go through all pages and count something",
        "filter a huge reply before i see it",
    ];
    const EFFECT: Effect = Effect::unknown();
    const SHOWS_STRUCTURE: bool = false;
    const LONG_RUNNING: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = Clock;

    fn examples() -> Vec<Example> {
        let code = "const zones = ['Asia/Tokyo', 'Europe/Paris'];\n\
                    const times = await Promise.all(zones.map(timezone => tools.time_now({timezone})));\n\
                    return times.map(time => time.utc_offset)";
        vec![
            Example::new("Two calls at once", json!({"code": code})),
            Example::new("What a tool takes and returns", json!({"types": ["time_now"]})),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        if let Some(types) = &output.types {
            return Some(types.clone());
        }
        let result = output.result.as_ref().map(|result| match result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        Some(match (output.printed.trim_end(), result) {
            ("", None) => {
                "The program returned nothing. End it with `return …`, or print with console.log.".to_owned()
            }
            ("", Some(result)) => result,
            (printed, None) => printed.to_owned(),
            (printed, Some(result)) => format!("{printed}\n\nReturned:\n{result}"),
        })
    }

    async fn run(&self, input: Input, clock: Clock, cx: &CallContext) -> Result<Output, ToolError> {
        match (input.code.filter(|code| !code.trim().is_empty()), input.types.as_slice()) {
            (Some(code), []) => self.run_source(&without_fence(&code), &clock, cx).await,
            (None, [_, ..]) if input.types.len() <= MAX_NAMES => self.declare(input.types, cx).await,
            (None, [_, ..]) => Err(ToolError::invalid(format!("`types` has more than {MAX_NAMES} names."))
                .hint("Ask for those of the next program.")),
            (Some(_), [_, ..]) => Err(ToolError::invalid("Give either `code` or `types`.")
                .hint("Ask for `types` first, then write the program.")),
            (None, []) => Err(ToolError::invalid("The program is empty.")
                .hint("Give `code`, such as `return await tools.time_now({})`.")),
        }
    }
}

/// Whether the entry is the tool that runs programs, by any name.
pub fn is_program_tool(entry: &Entry) -> bool {
    entry.item.source.is_native() && entry.item.key == RUN_CODE_TOOL
}

/// The program in a Markdown code block, as models like to write it. Its lines keep their numbers.
fn without_fence(code: &str) -> Cow<'_, str> {
    let opened = code.trim_start();
    let inside = opened.strip_prefix("```").and_then(|rest| rest.trim_end().strip_suffix("```"));
    let Some((_, program)) = inside.and_then(|inside| inside.split_once('\n')) else {
        return Cow::Borrowed(code);
    };
    let skipped = code.len() - opened.len();
    let lines = code.get(..skipped).unwrap_or_default().matches('\n').count() + 1;
    Cow::Owned("\n".repeat(lines) + program)
}

fn program_error(failure: ProgramFailure) -> ToolError {
    let kind = match &failure.error {
        ProgramError::Syntax { .. } => Kind::Invalid,
        // The arguments are right: what they are is no help.
        ProgramError::Uncaught { .. } | ProgramError::Deadlock => Kind::Conflict,
        ProgramError::Limit(ProgramLimit::Time(_)) => Kind::Timeout,
        ProgramError::Limit(_) | ProgramError::Crashed => Kind::TooLarge,
        ProgramError::ForbiddenSystemCall | ProgramError::Protocol(_) => Kind::Denied,
        ProgramError::SandboxUnavailable(_) | ProgramError::Unavailable(_) => Kind::Unavailable,
    };
    let mut hints = Vec::new();
    if failure.calls > 0 {
        let calls = counted(failure.calls, "call", "calls");
        hints.push(format!("The program made {calls} before; any effects remain."));
    }
    let printed = failure.printed.trim_end();
    if !printed.is_empty() {
        let start = printed.char_indices().rev().nth(MAX_PRINTED_CHARS - 1).map_or(0, |(start, _)| start);
        let last = printed.get(start..).unwrap_or_default();
        hints.push(format!("It printed:\n{}{last}", if start > 0 { "…" } else { "" }));
    }
    let mut message = failure.error.to_string();
    // What a program throws is rarely a sentence.
    if !hints.is_empty() && !message.ends_with(['.', '!', '?']) {
        message.push('.');
    }
    let mut error = ToolError::new(kind, message);
    if failure.calls > 0 {
        error = error.with_unknown_outcome();
    }
    if hints.is_empty() { error } else { error.hint(hints.join(" ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_no_program_is_an_invalid_argument() {
        let (message, line, column) = ("x".to_owned(), None, None);
        let thrown = ProgramError::Uncaught { message: message.clone(), error_code: None, line, column };
        for (error, kind) in [
            (ProgramError::Syntax { message, line, column }, Kind::Invalid),
            (thrown, Kind::Conflict),
            (ProgramError::Deadlock, Kind::Conflict),
            (ProgramError::Limit(ProgramLimit::Cpu(10)), Kind::TooLarge),
        ] {
            let shown = error.to_string();
            let failure = ProgramFailure { error, printed: String::new(), calls: 0 };
            assert_eq!(program_error(failure).kind, kind, "{shown}");
        }
    }

    #[test]
    fn what_a_program_throws_is_a_sentence_before_a_hint() {
        for (thrown, calls, text) in [
            ("boom", 0, "Uncaught error: boom"),
            ("boom", 1, "Uncaught error: boom. The program made 1 call before; any effects remain."),
            ("Why?", 1, "Uncaught error: Why? The program made 1 call before; any effects remain."),
        ] {
            let (line, column) = (None, None);
            let error = ProgramError::Uncaught { message: thrown.to_owned(), error_code: None, line, column };
            let failure = ProgramFailure { error, calls, printed: String::new() };
            let error = program_error(failure);
            assert_eq!((error.text().as_str(), error.is_outcome_unknown), (text, calls > 0));
        }
    }

    #[test]
    fn a_program_may_be_in_a_code_block() {
        for (code, program) in [
            ("return 1", "return 1"),
            ("```js\nreturn 1\n```", "\nreturn 1\n"),
            (" \n ```\nreturn 1\n``` \n", "\n\nreturn 1\n"),
            ("```return 1```", "```return 1```"),
            ("return `a```", "return `a```"),
        ] {
            assert_eq!(without_fence(code), program, "{code}");
        }
    }
}
