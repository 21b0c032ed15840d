//! Messages between the parent and the process of a program.

use crate::{CallError, CodeLimits, ProgramError, ProgramLimit, ToolBinding};
use octo_model::Json;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// From the parent.
#[derive(Debug, Serialize, Deserialize)]
pub enum ParentMessage {
    /// Comes first, once.
    Start(Start),
    /// The value stays text; the program parses it.
    Result { id: usize, result: Result<Box<RawValue>, CallError> },
}

/// The program and what it may use.
#[derive(Debug, Serialize, Deserialize)]
pub struct Start {
    pub source: String,
    pub tools: Vec<ToolBinding>,
    /// Milliseconds since 1970 that the program sees as the present.
    pub time_ms: i64,
    pub cpu_seconds: u64,
    pub memory_bytes: usize,
    pub max_calls: usize,
    pub max_concurrent_calls: usize,
    pub max_output_bytes: usize,
}

/// From the process. The parent trusts none of it.
#[derive(Debug, Serialize, Deserialize)]
pub enum ChildMessage {
    /// Ids count up from 0.
    Call {
        id: usize,
        name: String,
        arguments: Json,
    },
    Print(String),
    /// The program returned a value. Nothing follows.
    Returned(Json),
    /// The program returned `undefined`. Nothing follows.
    Ended,
    /// The program failed. Nothing follows.
    Failed(ReportedError),
}

/// The errors that only the process can tell. It reports kinds of limits; their values are those of the parent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ReportedError {
    Syntax { message: String, line: Option<u32>, column: Option<u32> },
    Uncaught { message: String, error_code: Option<String>, line: Option<u32>, column: Option<u32> },
    Calls,
    Memory,
    Output,
    Deadlock,
    Sandbox(String),
}

impl ReportedError {
    pub fn into_error(self, limits: &CodeLimits) -> ProgramError {
        match self {
            Self::Syntax { message, line, column } => ProgramError::Syntax { message, line, column },
            Self::Uncaught { message, error_code, line, column } => {
                ProgramError::Uncaught { message, error_code, line, column }
            }
            Self::Calls => ProgramError::Limit(ProgramLimit::Calls(limits.max_calls)),
            Self::Memory => ProgramError::Limit(ProgramLimit::Memory(limits.memory_bytes)),
            Self::Output => ProgramError::Limit(ProgramLimit::Output(limits.max_output_bytes)),
            Self::Deadlock => ProgramError::Deadlock,
            Self::Sandbox(why) => ProgramError::SandboxUnavailable(why),
        }
    }
}
