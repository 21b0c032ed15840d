//! Real Chromium against pages on loopback.

#![expect(clippy::disallowed_methods, reason = "tests serve pages and look at the machine itself")]

mod acting;
mod bench;
mod going;
mod refusing;
mod staying;

/// The launcher that the others start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_toolkit::exec::launcher::main(std::env::args_os());
}
