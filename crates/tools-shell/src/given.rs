//! Defaults of parameters, where the contract names them.

use octo_toolkit::WorkPath;

pub fn here() -> WorkPath {
    WorkPath::here()
}

pub fn two_minutes() -> u64 {
    120
}

pub fn five_minutes() -> u64 {
    300
}

pub fn ten_minutes() -> u64 {
    600
}

pub fn one_hour() -> u64 {
    3_600
}

/// Bytes of output of a command.
pub fn output() -> u64 {
    500_000
}

/// Bytes of output beside a report, which has the gist already.
pub fn output_beside_report() -> u64 {
    60_000
}

/// Bytes of one reading of a session.
pub fn reading() -> u64 {
    20_000
}

pub fn one_second() -> u64 {
    1_000
}

pub fn yes() -> bool {
    true
}

pub fn columns() -> u16 {
    120
}

pub fn rows() -> u16 {
    30
}
