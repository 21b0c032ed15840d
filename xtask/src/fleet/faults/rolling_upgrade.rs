//! Replaces every process by another build, one after the other and under load: no call may fail.

use crate::fleet::faults::call_history::Outcome;
use crate::fleet::faults::{
    check_histories, create_records, prepare_workspaces, run_under_load, wait_for_recovery,
};
use crate::fleet::fleet_options::FleetOptions;
use crate::fleet::node_process::NodeProcess;
use crate::fleet::running_fleet::{RunningFleet, variable};
use crate::fleet::stop_signal::StopSignal;
use anyhow::{Result, ensure};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Load between two replacements.
const CALM_TIME: Duration = Duration::from_secs(5);

/// From the build in `OCTOPROX_OLD_BIN` to that in `OCTOPROX_BIN`.
pub fn run(root: &Path, options: &FleetOptions, stop: &StopSignal) -> Result<()> {
    let (old, new): (PathBuf, PathBuf) =
        (variable("OCTOPROX_OLD_BIN")?.into(), variable("OCTOPROX_BIN")?.into());
    let records = create_records(root)?;
    let mut fleet = RunningFleet::start_build(old, &FleetOptions { kinds: Vec::new(), ..*options })?;
    prepare_workspaces(&fleet)?;
    run_under_load(&mut fleet, options, &records, |fleet| replace_all(fleet, new, stop))?;
    let calls = check_histories(&fleet, options, &records, &[])?;
    let failed: Vec<_> = calls
        .iter()
        .filter_map(|call| call.end.as_ref().map(|end| (call, end)))
        .filter(|(_, end)| end.outcome != Outcome::Done)
        .collect();
    for (call, end) in &failed {
        println!("{} {}: {} {}", call.id, call.kind.name(), end.outcome.name(), end.detail);
    }
    ensure!(failed.is_empty(), "{} of {} calls failed", failed.len(), calls.len());
    ensure!(!calls.is_empty(), "no calls were made");
    println!("{} calls, none failed", calls.len());
    Ok(())
}

fn replace_all(fleet: &mut RunningFleet, new: PathBuf, stop: &StopSignal) -> Result<()> {
    fleet.binary.clone_from(&new);
    // The old build uses the new tables from here on.
    fleet.octoprox(&["migrate"])?;
    let (fronts, token) = (fleet.front_addresses(), fleet.token.clone());
    for process in fleet.workers.iter_mut().chain(&mut fleet.fronts) {
        stop.sleep(CALM_TIME)?;
        let started = Instant::now();
        replace(process, &new)?;
        let replaced = started.elapsed();
        let recovery = wait_for_recovery(&fronts, &token)?;
        println!(
            "{} replaced after {:.1} s, all fronts answer after {:.1} s more",
            process.node(),
            replaced.as_secs_f64(),
            recovery.as_secs_f64()
        );
    }
    stop.sleep(CALM_TIME)
}

/// Waits for the calls of the old process.
fn replace(process: &mut NodeProcess, new: &Path) -> Result<()> {
    process.signal(Signal::TERM)?;
    process.wait()?;
    new.clone_into(&mut process.start.program);
    process.start_again()
}
