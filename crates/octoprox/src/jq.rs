//! jq in a process of its own, which can be ended at any time.
//!
//! The child reads the expression as a JSON string on the first line, then the input; arguments of a process can be
//! read by everybody on the machine, its standard input cannot. It answers with one line, `ok` or `error`, and a text.

use crate::program::this_program;
use octo_grants::Command;
use octo_hub::jq::{Jq, MAX_OUTPUT, evaluate};
use octo_model::{Json, Kind, ToolError};
use octo_toolkit::BoxFuture;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// The hidden command that is the child.
pub const COMMAND: &str = "jq-worker";
const PATIENCE: Duration = Duration::from_secs(10);
/// What an expression may allocate. A result takes about fifteen times its size as values.
const MAX_MEMORY: u64 = 256 << 20;
/// What the process may map, this program and its libraries included.
const MAX_ADDRESSES: u64 = 2 << 30;
/// jq can read its environment, and whoever wrote the expression need not know whose machine this is.
const UNTOLD: [&str; 6] = ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR"];
/// How much lower its priority is than the hub's.
const PRIORITY_BELOW_CALLS: i32 = 10;
const OK: &str = "ok\n";
const ERROR: &str = "error\n";

/// Starts this very program again for each expression.
pub struct Worker {
    program: String,
    patience: Duration,
}

impl Worker {
    pub fn new() -> io::Result<Self> {
        Ok(Self::of(&this_program()?, PATIENCE))
    }

    /// A worker that is this program, and for how long it is waited for.
    pub fn of(program: &Path, patience: Duration) -> Self {
        Self { program: program.to_string_lossy().into_owned(), patience }
    }

    fn late(&self) -> ToolError {
        let seconds = self.patience.as_secs_f64();
        ToolError::new(Kind::Timeout, format!("The jq expression did not end within {seconds} s."))
            .hint("Select before you combine; avoid expressions that repeat for ever.")
    }

    async fn answer(&self, program: &str, input: &Json) -> io::Result<String> {
        let command = Command {
            program: self.program.clone(),
            args: vec![COMMAND.to_owned()],
            env: UNTOLD.map(|name| (name.to_owned(), String::new())).into(),
            cwd: Some("/".into()),
        };
        let (mut stdin, stdout, _stderr, _group) = command.spawn()?.split();
        let head = Json::text(program);
        let told = async {
            stdin.write_all(head.bytes()).await?;
            stdin.write_all(b"\n").await?;
            stdin.write_all(input.bytes()).await?;
            stdin.shutdown().await?;
            drop(stdin);
            Ok::<_, io::Error>(())
        };
        let mut text = Vec::new();
        let mut stdout = stdout.take(2 * MAX_OUTPUT as u64);
        let heard = stdout.read_to_end(&mut text);
        // A child that has heard enough closes its end; what counts is the answer.
        let (_, heard) = tokio::join!(told, heard);
        heard?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

impl Jq for Worker {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let answer = tokio::time::timeout(self.patience, self.answer(program, &input)).await;
            let answer = answer.map_err(|_| self.late())?.map_err(ToolError::internal)?;
            if let Some(text) = answer.strip_prefix(OK) {
                return Ok(text.to_owned());
            }
            match answer.strip_prefix(ERROR) {
                Some(why) => Err(ToolError::invalid(format!("jq: {}.", why.trim_end_matches('.')))
                    .hint("Try a simpler expression first, such as `keys` or `.[0]`.")),
                None => Err(gone()),
            }
        })
    }
}

fn gone() -> ToolError {
    ToolError::new(Kind::TooLarge, "The jq expression needed too much memory or time.")
        .hint("Select a part first, such as `.rows[:100]`.")
}

/// The child: bounds itself, evaluates, answers.
pub fn work(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    let seconds = PATIENCE.as_secs();
    setrlimit(Resource::Cpu, Rlimit { current: Some(seconds), maximum: Some(seconds) })?;
    for (resource, most) in [(Resource::Data, MAX_MEMORY), (Resource::As, MAX_ADDRESSES)] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // Calls of others come first.
    let _ = rustix::process::nice(PRIORITY_BELOW_CALLS);
    let mut text = Vec::new();
    input.read_to_end(&mut text)?;
    match outcome(&text) {
        Ok(answer) => {
            output.write_all(OK.as_bytes())?;
            output.write_all(answer.as_bytes())
        }
        Err(why) => {
            output.write_all(ERROR.as_bytes())?;
            output.write_all(why.as_bytes())
        }
    }
}

fn outcome(text: &[u8]) -> Result<String, String> {
    let end = text.iter().position(|byte| *byte == b'\n').ok_or("there is no expression")?;
    let (head, input) = text.split_at(end);
    let program: String =
        serde_json::from_slice(head).map_err(|error| format!("the expression is no text: {error}"))?;
    evaluate(&program, input, MAX_OUTPUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_expression() {
        for (text, answer) in [
            ("\".a\"\n{\"a\": 1}", Ok("1\n")),
            ("\".a\\n|.b\"\n{\"a\": {\"b\": [2]}}", Ok("[2]\n")),
            ("no line", Err(())),
            ("nothing\n{}", Err(())),
            ("\".a[\"\n{}", Err(())),
        ] {
            assert_eq!(outcome(text.as_bytes()).map_err(|_| ()), answer.map(str::to_owned), "{text}");
        }
    }
}
