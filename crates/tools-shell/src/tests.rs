//! The tools through real grants: real programs in a real workspace.
#![expect(clippy::disallowed_methods, reason = "tests inspect the machine without the grants")]

mod exec_tools;
mod long_output;
mod session_tools;
mod shell_fixture;
mod test_and_build_tools;
mod tool_contract;

/// The launcher that the other tests start: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
