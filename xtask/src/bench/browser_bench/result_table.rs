//! Results with their targets; a missed target fails the run.

use super::browser_products::BrowserProduct;
use super::ref_coverage::RefCoverage;
use anyhow::{Result, ensure};

/// Maximum tokens of the task.
const MAX_TASK_TOKENS: usize = 10_000;

#[derive(Default)]
pub struct ResultTable {
    rows: Vec<String>,
    missed: Vec<String>,
}

impl ResultTable {
    /// Counts of both products, and the maximum ratio.
    pub fn at_most(&mut self, what: &str, ours: usize, theirs: usize, promised: Option<f64>) {
        let ratio = to_f64(ours) / to_f64(theirs);
        let said = promised.map_or("–".to_owned(), |most| format!("at most {most}"));
        self.row(what, &ours.to_string(), &theirs.to_string(), ratio, &said);
        self.check(what, promised.is_none_or(|most| ratio <= most));
    }

    pub fn reach(&mut self, page: &str, reach: &RefCoverage) {
        let (what, with) =
            (format!("{page}: elements in view with a ref"), reach.all.saturating_sub(reach.missing.len()));
        self.rows.push(format!("| {what} | {with} of {} | – | – | all |", reach.all));
        self.check(&format!("{what}, without: {}", reach.missing.join(", ")), reach.missing.is_empty());
    }

    /// Milliseconds of both products, and the median of the ratios.
    pub fn time(&mut self, page: &str, ours: f64, theirs: f64, ratio: f64) {
        let what = format!("{page}: navigate plus snapshot, ms");
        self.row(&what, &format!("{ours:.0}"), &format!("{theirs:.0}"), ratio, "at most 1");
        self.check(&what, ratio <= 1.0);
    }

    pub fn task(&mut self, ours: &BrowserProduct, theirs: &BrowserProduct) {
        self.at_most("task: calls", ours.calls, theirs.calls, Some(1.0));
        let ratio = to_f64(ours.tokens) / to_f64(theirs.tokens);
        let what = "task: tokens";
        self.row(what, &ours.tokens.to_string(), &theirs.tokens.to_string(), ratio, "under 10000");
        self.check(what, ours.tokens < MAX_TASK_TOKENS);
    }

    fn row(&mut self, what: &str, ours: &str, theirs: &str, ratio: f64, promised: &str) {
        self.rows.push(format!("| {what} | {ours} | {theirs} | {ratio:.3} | {promised} |"));
    }

    fn check(&mut self, what: &str, kept: bool) {
        if !kept {
            self.missed.push(what.to_owned());
        }
    }

    pub fn print(self) -> Result<()> {
        println!("\n| measurement | octoprox | Playwright MCP | ratio | target |\n|---|---|---|---|---|");
        for row in &self.rows {
            println!("{row}");
        }
        ensure!(self.missed.is_empty(), "missed: {}", self.missed.join("; "));
        Ok(())
    }
}

fn to_f64(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}
