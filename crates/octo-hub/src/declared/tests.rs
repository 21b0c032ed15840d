//! Declared tools from directories, through the source, against a real sandbox and a real server.
#![expect(
    clippy::disallowed_methods,
    reason = "tests write the files that the source follows, and listen on loopback"
)]

mod cookbook;
mod declared_fixture;
mod hostile_values;
mod manifest_problems;
mod tool_calls;

/// The launcher that the tests start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
