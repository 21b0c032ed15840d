//! The tools through real grants: real programs in a real workspace.
#![expect(clippy::disallowed_methods, reason = "tests look at the machine behind the grants' back")]

mod bench;
mod commands;
mod contract;
mod output;
mod reports;
mod sessions;

/// The launcher that the others start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
