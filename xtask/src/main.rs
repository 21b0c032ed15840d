//! Development tasks: `cargo xtask COMMAND`.

#![allow(
    clippy::disallowed_methods,
    reason = "reads and writes the source tree and runs cargo; not part of the product"
)]

mod bench;
mod docs;
mod fleet;
mod new_tool;
mod rust_scan;
mod scale_plan;
mod tidy;
mod workspace_root;

use anyhow::{Result, bail};
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy                      check dependencies between crates, code sizes and lint allowances
  docs [--check]            generate docs/reference from the binary, or fail if it differs
  scale-plan [--check]      compute the tables of docs/scale.md, or fail if they differ
  new-tool TOOLBOX NAME     create a tool in crates/tools-TOOLBOX
  bench [SECONDS ROUNDS [BINARY]]
                            benchmark the hub against baselines and an earlier build; needs nginx
  bench files               benchmark the file tools against ripgrep; needs rg
  bench gateway [SECONDS ROUNDS]
                            benchmark calls and lists with 60 servers against one
  bench gateway built DIRECTORY SECONDS ROUNDS
                            the same with existing binaries
  bench sql                 benchmark db_query against the bare driver; needs scripts/services start
  bench web                 benchmark fetch_url against a bare GET
  bench browser             benchmark the browser against Playwright MCP; needs scripts/services
  fleet up [--fronts N] [--workers N] [--nats N] [--databases N] [--front-cpu CORES]
                            run a whole fleet in network namespaces until it is interrupted; needs root
  fleet down                remove what a fleet left that was killed
  fleet scale [--seconds N] [--rounds N] [--front-cpu CORES]
                            measure calls per second with one, two and three fronts
  fleet faults [--injections N] [--seed N] [--kinds NAME,...] [--clients N] [--databases N]
                            inject faults under load, and check that nothing is lost, doubled or stuck
  fleet upgrade [--databases N]
                            replace each process of the build OCTOPROX_OLD_BIN under load, and check that no call
                            fails";

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
    let root = workspace_root::find_workspace()?;
    match words {
        ["tidy"] => tidy::run(&root),
        ["docs"] => docs::run(&root, docs::Mode::Write),
        ["docs", "--check"] => docs::run(&root, docs::Mode::Check),
        ["scale-plan"] => scale_plan::write(&root),
        ["scale-plan", "--check"] => scale_plan::check(&root),
        ["bench"] => bench::run(&root, "2", "5", None),
        ["bench", "browser", words @ ..] => bench::browser_bench::run(&root, words),
        ["bench", "files"] => bench::files_bench::run(&root),
        ["bench", "gateway"] => bench::gateway_bench::run(&root, "2", "9"),
        ["bench", "gateway", "built", folder, seconds, rounds] => {
            bench::gateway_bench::run_built(&root, std::path::Path::new(folder), seconds, rounds)
        }
        ["bench", "gateway", seconds, rounds] => bench::gateway_bench::run(&root, seconds, rounds),
        ["bench", "sql"] => bench::sql_bench::run(&root),
        ["bench", "web"] => bench::web_bench::run(&root),
        ["bench", seconds, rounds] => bench::run(&root, seconds, rounds, None),
        ["bench", seconds, rounds, before] => bench::run(&root, seconds, rounds, Some(before)),
        ["fleet", words @ ..] => fleet::run(&root, words),
        ["new-tool", toolbox, name] => new_tool::run(&root, toolbox, name),
        _ => bail!(USAGE),
    }
}
