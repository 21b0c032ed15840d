//! Code mode: a model's JavaScript or TypeScript program runs in a sandboxed process of its own and calls tools.
//!
//! [`run_program`] starts the process, answers its calls through [`ToolCalls`] and kills it at the limits.
//! [`child_main`] is that process. [`declarations`] tells the model what it can call.

mod child;
mod code_limits;
mod declarations;
mod frame;
mod message;
mod program_error;
mod program_run;
mod tool_calls;

pub use child::child_main;
pub use code_limits::CodeLimits;
pub use declarations::{ToolDeclaration, declarations};
pub use program_error::{ProgramError, ProgramFailure, ProgramLimit};
pub use program_run::{ChildCommand, MAX_RESULT_BYTES, Program, ProgramOutput, run_program};
pub use tool_calls::{CallError, ToolBinding, ToolCalls};
