//! Process metrics, under the standard Prometheus names.

use super::prometheus_text::{Exposition, unlabelled};
use rustix::process::{Resource, getrlimit};

/// Clock ticks per second reported to user space, regardless of the kernel's own clock.
const TICKS_PER_SECOND: f64 = 100.0;

/// Fields of `/proc/self/stat`.
struct Stat {
    user_ticks: u64,
    system_ticks: u64,
    threads: u64,
    start_ticks: u64,
    virtual_bytes: u64,
}

impl Stat {
    fn read() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The process name before it may contain anything, including parentheses.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let field = |at: usize| fields.get(at)?.trim().parse().ok();
        Some(Self {
            user_ticks: field(11)?,
            system_ticks: field(12)?,
            threads: field(17)?,
            start_ticks: field(19)?,
            virtual_bytes: field(20)?,
        })
    }
}

/// Returns the resident memory of this process.
fn resident_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Returns the boot time, in seconds since 1970.
fn boot_seconds() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok())
}

pub fn add_process_metrics(to: &mut Exposition) {
    if let Some(stat) = Stat::read() {
        let seconds = |ticks: u64| ticks as f64 / TICKS_PER_SECOND;
        to.counter(
            "process_cpu_seconds_total",
            "Total user and system CPU time spent in seconds.",
            unlabelled(seconds(stat.user_ticks + stat.system_ticks)),
        );
        to.gauge(
            "process_virtual_memory_bytes",
            "Virtual memory size in bytes.",
            unlabelled(stat.virtual_bytes),
        );
        to.gauge("process_threads", "Number of OS threads in the process.", unlabelled(stat.threads));
        if let Some(boot) = boot_seconds() {
            to.gauge(
                "process_start_time_seconds",
                "Start time of the process since unix epoch in seconds.",
                unlabelled(boot as f64 + seconds(stat.start_ticks)),
            );
        }
    }
    if let Some(resident) = resident_bytes() {
        to.gauge("process_resident_memory_bytes", "Resident memory size in bytes.", unlabelled(resident));
    }
    if let Ok(open) = std::fs::read_dir("/proc/self/fd") {
        to.gauge("process_open_fds", "Number of open file descriptors.", unlabelled(open.count()));
    }
    if let Some(most) = getrlimit(Resource::Nofile).current {
        to.gauge("process_max_fds", "Maximum number of open file descriptors.", unlabelled(most));
    }
}
