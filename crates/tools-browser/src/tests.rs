//! The tools in a real Chromium, against pages on loopback.
#![expect(clippy::disallowed_methods, reason = "tests serve pages and look at files behind the grants' back")]

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

/// The launcher that the others start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
