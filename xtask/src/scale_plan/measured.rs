//! Measured costs, all in one place. docs/scale.md says how each was measured.

/// CPU time of a front for one call, in seconds: 16 sessions through a hub, docs/measurements.md.
pub const FRONT_CPU_PER_CALL: f64 = 118e-6;
/// Memory of a front for an idle session with an open stream: the limit that `tests/tests/heavy/idle_clients.rs` holds.
pub const SESSION_BYTES: f64 = 40.0 * 1024.0;
/// Sessions with an open stream that one process was tested with.
pub const SESSIONS_PER_FRONT: f64 = 10_000.0;
/// Messages that NATS receives for a short call to a worker.
pub const MESSAGES_PER_CALL: f64 = 2.13;
/// Bytes of these messages.
pub const MESSAGE_BYTES_PER_CALL: f64 = 533.0;
/// CPU time of NATS for a message, in seconds, at low load.
pub const BUS_CPU_PER_MESSAGE: f64 = 39e-6;
/// A call has a record of its start and one of its end.
pub const ROWS_PER_CALL: f64 = 2.0;
/// Bytes of an audit row with its indexes.
pub const BYTES_PER_ROW: f64 = 215.0;
/// CPU time of PostgreSQL for an audit row, in seconds, in small groups.
pub const DATABASE_CPU_PER_ROW: f64 = 35e-6;
/// Rows per second that one primary accepted from 64 callers, on two cores.
pub const ROWS_PER_PRIMARY: f64 = 27_000.0;
/// A group of audit records is committed in a fixed time, and a time for each row, in seconds.
pub const COMMIT_SECONDS: f64 = 1.9e-3;
pub const COMMIT_SECONDS_PER_ROW: f64 = 15.2e-6;
