//! Real Chromium against pages on loopback.

#![expect(clippy::disallowed_methods, reason = "tests serve pages and look at the machine itself")]

mod blocked_access;
mod engine_fixture;
mod page_actions;
mod page_navigation;
mod session_lifetime;

/// The launcher that the others start: this very binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_toolkit::exec::launcher::main(std::env::args_os());
}
