//! What the house does to itself: `cargo xtask COMMAND`.

#![allow(
    clippy::disallowed_methods,
    reason = "reads and writes the source tree and runs cargo; not part of the product"
)]

mod bench;
mod docs;
mod new_tool;
mod root;
mod scan;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy                      check the order of crates, sizes and lint allowances; print the doors
  docs [--check]            write docs/reference from the binary, or fail where it differs
  new-tool TOOLBOX NAME     start a tool in crates/tools-TOOLBOX
  bench [SECONDS ROUNDS]    measure the hub beside what it is made of; needs nginx
  bench files               measure the file tools beside ripgrep; needs rg
  bench gateway [SECONDS ROUNDS]
                            measure calls and lists with 60 servers beside one
  bench gateway built FOLDER SECONDS ROUNDS
                            the same with programs that were built already
  bench sql                 measure db_query beside the bare driver; needs scripts/services start
  bench web                 measure fetch_url beside a bare GET
  bench browser             measure the browser beside Playwright MCP; needs scripts/services";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[&str]) -> Result<()> {
    let root = root::find()?;
    match words {
        ["tidy"] => tidy::run(&root),
        ["docs"] => docs::run(&root, docs::Mode::Write),
        ["docs", "--check"] => docs::run(&root, docs::Mode::Check),
        ["bench"] => bench::run(&root, "2", "5"),
        ["bench", "browser", words @ ..] => bench::browser::run(&root, words),
        ["bench", "files"] => bench::files::run(&root),
        ["bench", "gateway"] => bench::gateway::run(&root, "2", "9"),
        ["bench", "gateway", "built", folder, seconds, rounds] => {
            bench::gateway::run_built(&root, std::path::Path::new(folder), seconds, rounds)
        }
        ["bench", "gateway", seconds, rounds] => bench::gateway::run(&root, seconds, rounds),
        ["bench", "sql"] => bench::sql::run(&root),
        ["bench", "web"] => bench::web::run(&root),
        ["bench", seconds, rounds] => bench::run(&root, seconds, rounds),
        ["new-tool", toolbox, name] => new_tool::run(&root, toolbox, name),
        _ => bail!(USAGE),
    }
}
