//! Browser tools against npm's `@playwright/mcp`, on the same Chromium, in turn.

mod browser_products;
mod large_pages;
mod page_server;
mod ref_coverage;
mod result_table;
mod shop_pages;
mod shopping_task;
mod token_estimate;
mod word_generator;

use super::bench_report::median;
use super::cargo;
use anyhow::{Result, bail};
use browser_products::{BrowserProduct, Reply};
use result_table::ResultTable;
use serde_json::json;
use std::path::{Path, PathBuf};

/// The pages, and the number of rounds per product.
const PAGES: [&str; 3] = ["links", "repository", "article"];
const ROUNDS: usize = 9;

/// Without arguments, measures everything with a fresh build. With a program, measures either what is the same on every
/// machine (tokens) or what is not (time).
pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let (program, [counts, times]) = match words {
        [] => {
            cargo(root, &["build", "--profile", "measured", "-p", "octoprox", "--locked"])?;
            (target.join("measured/octoprox"), [true, true])
        }
        ["tokens", program] => (PathBuf::from(program), [true, false]),
        ["time", program] => (PathBuf::from(program), [false, true]),
        _ => bail!("usage: cargo xtask bench browser [tokens PROGRAM | time PROGRAM]"),
    };
    let work = target.join("bench/browser");
    std::fs::create_dir_all(&work)?;
    let home = page_server::start()?;
    // The browser keeps a socket in its directory, so the path must be short.
    let short = std::env::temp_dir().join(format!("octo-{}", std::process::id()));
    let mut both = BrowserBench {
        ours: BrowserProduct::octoprox(&program, &short)?,
        theirs: BrowserProduct::playwright(&work.join("playwright"))?,
        home,
        work,
    };
    let mut table = ResultTable::default();
    if counts {
        for page in PAGES {
            both.measure_tokens(page, &mut table)?;
        }
        both.measure_task(&mut table)?;
    }
    if times {
        for page in PAGES {
            both.measure_time(page, &mut table)?;
        }
    }
    both.ours.close()?;
    both.theirs.close()?;
    let _ = std::fs::remove_dir_all(short);
    table.print()
}

/// The two products, the pages and a work directory.
struct BrowserBench {
    ours: BrowserProduct,
    theirs: BrowserProduct,
    home: String,
    work: PathBuf,
}

impl BrowserBench {
    fn url(&self, page: &str) -> String {
        format!("{}/{page}", self.home)
    }

    /// Tokens of a page, and whether everything in view has a ref.
    fn measure_tokens(&mut self, page: &str, table: &mut ResultTable) -> Result<()> {
        let url = self.url(page);
        let at_once = json!({"url": url, "output_format": "accessibility", "include_links": false});
        let at_once = self.ours.call("browser_navigate", at_once)?;
        let opened = self.ours.call("browser_navigate", json!({"url": url}))?;
        let ours = self.ours.call("browser_snapshot", json!({}))?;
        let named = self.theirs.call("browser_navigate", json!({"url": url}))?;
        let theirs = self.theirs.call("browser_snapshot", json!({}))?;
        self.save_replies(
            page,
            [("ours", &ours), ("ours-at-once", &at_once), ("ours-opened", &opened), ("theirs", &theirs)],
        )?;
        let reach = ref_coverage::ref_coverage(&mut self.ours, &ours)?;
        table.at_most(&format!("{page}: tokens of the snapshot"), ours.tokens(), theirs.tokens(), Some(0.1));
        let whole = named.tokens() + theirs.tokens();
        table.at_most(&format!("{page}: tokens to open and see it"), at_once.tokens(), whole, Some(0.1));
        let usual = opened.tokens() + ours.tokens();
        table.at_most(
            &format!("{page}: the same with default parameters, including text and links"),
            usual,
            whole,
            None,
        );
        table.reach(page, &reach);
        Ok(())
    }

    /// Saves the replies, for counting with a real tokenizer.
    fn save_replies(&self, page: &str, replies: [(&str, &Reply); 4]) -> Result<()> {
        for (whose, reply) in replies {
            std::fs::write(self.work.join(format!("{page}-{whose}.txt")), &reply.model_text)?;
        }
        Ok(())
    }

    /// Time of navigate plus snapshot, in turn; one more round than counted, to warm up.
    fn measure_time(&mut self, page: &str, table: &mut ResultTable) -> Result<()> {
        let url = self.url(page);
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=ROUNDS {
            let [one, other] = [&mut self.ours, &mut self.theirs].map(|product| -> Result<f64> {
                let took = product.call("browser_navigate", json!({"url": url}))?.duration
                    + product.call("browser_snapshot", json!({}))?.duration;
                Ok(took.as_secs_f64() * 1e3)
            });
            let (one, other) = (one?, other?);
            if round > 0 {
                ours.push(one);
                theirs.push(other);
                ratios.push(one / other);
            }
        }
        table.time(page, median(ours), median(theirs), median(ratios));
        Ok(())
    }

    fn measure_task(&mut self, table: &mut ResultTable) -> Result<()> {
        for product in [&mut self.ours, &mut self.theirs] {
            (product.calls, product.tokens) = (0, 0);
        }
        shopping_task::run_with_octoprox(&mut self.ours, &self.home)?;
        shopping_task::run_with_playwright(&mut self.theirs, &self.home)?;
        table.task(&self.ours, &self.theirs);
        Ok(())
    }
}
