//! The tools in a real Chromium, with pages on loopback.
#![expect(clippy::disallowed_methods, reason = "tests serve pages and inspect files without grants")]

mod browser_fixture;
mod contract;
mod hostile_pages;
mod multi_page_flows;
mod pointer;
mod replies;
mod session_isolation;
mod test_pages;
mod token_costs;
mod tool_actions;

/// The launcher process that the other tests start: this binary.
#[test]
#[ignore = "worker process, started by other tests"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
