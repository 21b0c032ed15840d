//! Parameter defaults from the contract.

use octo_toolkit::WorkPath;

pub fn current_dir() -> WorkPath {
    WorkPath::here()
}

pub fn exec_timeout_s() -> u64 {
    120
}

pub fn test_timeout_s() -> u64 {
    300
}

pub fn build_timeout_s() -> u64 {
    600
}

pub fn session_timeout_s() -> u64 {
    3_600
}

/// Maximum bytes of a command's output.
pub fn max_output_bytes() -> u64 {
    500_000
}

/// Maximum bytes of output besides a report, which already contains the essentials.
pub fn report_output_bytes() -> u64 {
    60_000
}

/// Maximum bytes of one session read.
pub fn max_read_bytes() -> u64 {
    20_000
}

pub fn wait_ms() -> u64 {
    1_000
}

pub fn enabled() -> bool {
    true
}

pub fn columns() -> u16 {
    120
}

pub fn rows() -> u16 {
    30
}
