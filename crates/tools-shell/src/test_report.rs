//! Test reports, parsed from the output of common test runners.

mod cargo;
mod go;
mod go_json;
mod jest;
pub mod junit;
mod mocha;
mod nextest;
mod node;
mod pytest;
mod source_location;
mod summary_numbers;
mod tap;
mod unittest;
mod vitest;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

/// Maximum number of failures.
const MAX_FAILURES: usize = 50;

/// Maximum bytes of one failure's message.
const MAX_MESSAGE_BYTES: usize = 2_000;

/// A failed test.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// Name of the test, as printed by its framework.
    pub name: String,
    /// File of the failure, as printed by the framework.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The message, shortened to 2,000 bytes.
    pub message: String,
}

/// Result of a test run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TestReport {
    pub framework: &'static str,
    /// `None` if the tool does not report it.
    pub passed: Option<u64>,
    pub failed: u64,
    pub skipped: u64,
    pub seconds: Option<f64>,
    pub failures: Vec<Failure>,
    /// Number of failures beyond the first fifty.
    pub omitted: usize,
}

impl TestReport {
    fn new(framework: &'static str) -> Self {
        Self { framework, ..Self::default() }
    }

    pub fn total(&self) -> Option<u64> {
        self.passed.map(|passed| passed + self.failed + self.skipped)
    }

    fn passes(&mut self, count: u64) {
        self.passed = Some(self.passed.unwrap_or(0) + count);
    }

    fn takes(&mut self, seconds: Option<f64>) {
        if let Some(seconds) = seconds {
            self.seconds = Some(self.seconds.unwrap_or(0.0) + seconds);
        }
    }

    fn fails(&mut self, failure: Failure) {
        if !self.failures.iter().any(|known| known.name == failure.name && known.file == failure.file) {
            self.failures.push(failure);
        }
    }

    fn truncate(mut self) -> Self {
        self.omitted = self.failures.len().saturating_sub(MAX_FAILURES);
        self.failures.truncate(MAX_FAILURES);
        for failure in &mut self.failures {
            let end = failure.message.floor_char_boundary(MAX_MESSAGE_BYTES);
            failure.message.truncate(end);
        }
        self
    }
}

type ReportParser = fn(&str, &str) -> Option<TestReport>;

/// The most specific formats first.
const PARSERS: &[ReportParser] = &[
    go_json::read,
    nextest::read,
    cargo::read,
    pytest::read,
    vitest::read,
    jest::read,
    unittest::read,
    go::read,
    node::read,
    mocha::read,
    tap::read,
];

/// The report of the first recognized framework.
pub fn read(stdout: &str, stderr: &str) -> Option<TestReport> {
    let (stdout, stderr) = (crate::ansi::strip_ansi(stdout), crate::ansi::strip_ansi(stderr));
    PARSERS.iter().find_map(|read| read(&stdout, &stderr)).map(TestReport::truncate)
}
