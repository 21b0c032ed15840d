//! The tools in a real Chromium, against pages on loopback.
#![expect(clippy::disallowed_methods, reason = "tests serve pages and look at files behind the grants' back")]

mod acting;
mod bench;
mod contract;
mod flow;
mod hostile;
mod pages;
mod pointer;
mod replies;
mod sizes;
mod staying;

/// The launcher that the others start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
