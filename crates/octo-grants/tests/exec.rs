//! Real programs in each sandbox that works on this machine.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests inspect the machine itself and may panic"
)]

#[path = "exec/bench.rs"]
mod bench;
#[path = "exec/ends.rs"]
mod ends;
#[path = "exec/leaks.rs"]
mod leaks;
#[path = "exec/output.rs"]
mod output;
#[path = "exec/refused.rs"]
mod refused;
#[path = "exec/sandbox.rs"]
mod sandbox;
#[path = "exec/sessions.rs"]
mod sessions;
#[path = "exec/swaps.rs"]
mod swaps;

/// The launcher that the other tests start: this binary.
#[test]
#[ignore = "a process that other tests start"]
fn launcher() {
    octo_grants::exec::launcher::main(std::env::args_os());
}
