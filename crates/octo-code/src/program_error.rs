//! Why a program failed, in words for the model that wrote it.

use crate::CodeLimits;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A program that failed, with what it printed before.
#[derive(Debug)]
pub struct ProgramFailure {
    pub error: ProgramError,
    pub printed: String,
    /// Number of calls it made. Calls that change something may have taken effect.
    pub calls: usize,
}

/// Why a program failed. `Display` says what to do next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    #[error("SyntaxError{}: {message}", Position(*.line, *.column))]
    Syntax { message: String, line: Option<u32>, column: Option<u32> },
    /// An exception that the program did not catch.
    #[error("Uncaught error{}: {message}{}", Position(*.line, *.column), hint(.message))]
    Uncaught {
        message: String,
        /// `code` of the error, which those of tools have.
        error_code: Option<String>,
        line: Option<u32>,
        column: Option<u32>,
    },
    #[error("{0}")]
    Limit(ProgramLimit),
    #[error(
        "The program awaits a promise that can never be settled. Await only calls of tools; there are no timers."
    )]
    Deadlock,
    #[error("The program crashed its process. Nest code and data less deeply, or use less memory.")]
    Crashed,
    #[error("The program's process made a system call that is not allowed, and was killed.")]
    ForbiddenSystemCall,
    /// The process sent what no honest one sends.
    #[error("The program's process broke the protocol and was killed: {0}.")]
    Protocol(String),
    #[error("Programs cannot run on this machine, because the sandbox does not work: {0}. Ask the operator.")]
    SandboxUnavailable(String),
    #[error("The process for the program cannot be started: {0}. Ask the operator.")]
    Unavailable(String),
}

/// A limit that a program exceeded, with its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum ProgramLimit {
    #[error("The program did not end within {0} s, including its calls. Make fewer or smaller calls.")]
    Time(u64),
    #[error("The program used more than {0} s of processor time. Look for a loop that does not end.")]
    Cpu(u64),
    #[error("The program needed more than {0} bytes of memory. Keep less of each result.")]
    Memory(usize),
    #[error(
        "The program made more than {0} calls. Use larger pages or filters of the tools, or several programs."
    )]
    Calls(usize),
    #[error("The program printed and returned more than {0} bytes. Select or count what is needed.")]
    Output(usize),
    #[error("The program is longer than {0} bytes. Split it, and do not embed data.")]
    ProgramSize(usize),
}

impl ProgramError {
    /// Stable name of the error.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "syntax_error",
            Self::Uncaught { .. } => "uncaught_error",
            Self::Limit(limit) => limit.code(),
            Self::Deadlock => "deadlock",
            Self::Crashed => "crashed",
            Self::ForbiddenSystemCall => "forbidden_system_call",
            Self::Protocol(_) => "protocol_error",
            Self::SandboxUnavailable(_) => "sandbox_unavailable",
            Self::Unavailable(_) => "unavailable",
        }
    }
}

impl ProgramLimit {
    const fn code(&self) -> &'static str {
        match self {
            Self::Time(_) => "time_limit",
            Self::Cpu(_) => "cpu_limit",
            Self::Memory(_) => "memory_limit",
            Self::Calls(_) => "call_limit",
            Self::Output(_) => "output_limit",
            Self::ProgramSize(_) => "program_too_large",
        }
    }

    pub(crate) fn time(limits: &CodeLimits) -> ProgramError {
        ProgramError::Limit(Self::Time(limits.timeout.as_secs()))
    }
}

/// ` in line 3, column 7`, if they are known.
struct Position(Option<u32>, Option<u32>);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Some(line), column) = self else { return Ok(()) };
        write!(f, " in line {line}")?;
        column.map_or(Ok(()), |column| write!(f, ", column {column}"))
    }
}

/// Names of other environments that models use, and what to do instead.
const MISSING_NAMES: &[(&[&str], &str)] = &[
    (&["fetch", "XMLHttpRequest", "WebSocket"], "A program has no network of its own; call a tool."),
    (
        &["require", "process", "Deno", "Bun", "fs", "std", "os"],
        "A program has no files or modules; call a tool.",
    ),
    (
        &["setTimeout", "setInterval", "setImmediate", "queueMicrotask"],
        "A program has no timers; await calls of tools.",
    ),
    (&["window", "document", "localStorage"], "A program runs outside any browser; call a tool."),
    (
        &["Buffer", "atob", "btoa", "URL", "TextEncoder", "TextDecoder", "crypto"],
        "Only ECMAScript is available.",
    ),
];

fn hint(message: &str) -> String {
    let Some((name, _)) =
        message.strip_prefix("ReferenceError: ").and_then(|rest| rest.split_once(" is not defined"))
    else {
        return String::new();
    };
    let known = MISSING_NAMES.iter().find(|(names, _)| names.contains(&name.trim_matches('\'')));
    known.map(|(_, hint)| format!(". {hint}")).unwrap_or_default()
}
