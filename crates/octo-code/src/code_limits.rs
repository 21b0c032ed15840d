//! Limits of a program.

use std::time::Duration;

/// Limits of one program. Exceeding one ends it with [`crate::ProgramError::Limit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeLimits {
    /// Time from start to end, including that of the tools it calls.
    pub timeout: Duration,
    /// Seconds of processor time. Waiting for tools costs none.
    pub cpu_seconds: u64,
    /// Memory of the program's values.
    pub memory_bytes: usize,
    /// Calls of tools.
    pub max_calls: usize,
    /// Calls that run at the same time. Further ones wait.
    pub max_concurrent_calls: usize,
    /// What it prints and returns, together.
    pub max_output_bytes: usize,
    /// Length of its source.
    pub max_program_bytes: usize,
}

impl Default for CodeLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(120),
            cpu_seconds: 10,
            memory_bytes: 64 << 20,
            max_calls: 200,
            max_concurrent_calls: 8,
            max_output_bytes: 1 << 20,
            max_program_bytes: 64 << 10,
        }
    }
}
