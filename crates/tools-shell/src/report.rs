//! What a run of tests said, read from the output of the tools that people use.

mod cargo;
mod counts;
mod go;
mod go_json;
mod jest;
pub mod junit;
mod mocha;
mod nextest;
mod node;
mod place;
mod pytest;
mod tap;
mod unittest;
mod vitest;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::Serialize;

/// More failures than this tell nothing more.
const MOST: usize = 50;

/// Bytes of one failure's message.
const LONGEST: usize = 2_000;

/// One test that failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Failure {
    /// The test's name, as its framework writes it.
    pub name: String,
    /// File where it failed, as the framework writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// What it said, shortened to 2,000 bytes.
    pub message: String,
}

/// What the tests came to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    pub framework: &'static str,
    /// Nothing where the tool does not tell.
    pub passed: Option<u64>,
    pub failed: u64,
    pub skipped: u64,
    pub seconds: Option<f64>,
    pub failures: Vec<Failure>,
    /// Failures beyond the first fifty.
    pub more: usize,
}

impl Report {
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

    fn bounded(mut self) -> Self {
        self.more = self.failures.len().saturating_sub(MOST);
        self.failures.truncate(MOST);
        for failure in &mut self.failures {
            let end = failure.message.floor_char_boundary(LONGEST);
            failure.message.truncate(end);
        }
        self
    }
}

type Read = fn(&str, &str) -> Option<Report>;

/// The most telling marks first.
const READERS: &[Read] = &[
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

/// The report of the first framework that is recognised.
pub fn read(stdout: &str, stderr: &str) -> Option<Report> {
    let (stdout, stderr) = (crate::ansi::plain(stdout), crate::ansi::plain(stderr));
    READERS.iter().find_map(|read| read(&stdout, &stderr)).map(Report::bounded)
}
