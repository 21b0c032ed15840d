//! Real Chromium with pages on loopback.

#![expect(clippy::disallowed_methods, reason = "tests serve pages and look at the machine itself")]

mod blocked_access;
mod engine_fixture;
mod page_actions;
mod page_navigation;
mod session_lifetime;

/// The launcher process that the other tests start: this binary.
#[test]
#[ignore = "worker process, started by other tests"]
fn launcher() {
    octo_toolkit::exec::launcher::main(std::env::args_os());
}
