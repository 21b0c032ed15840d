//! A whole fleet on this machine, to try it, to measure it, and to find out what survives which fault.

mod cpu_limit;
mod fake_clock;
mod faults;
mod fleet_database;
mod fleet_options;
mod front_client;
mod node_process;
mod private_network;
mod running_fleet;
mod scale;
mod stop_signal;
mod system_commands;

use anyhow::{Result, bail, ensure};
use fleet_options::FleetOptions;
use running_fleet::RunningFleet;
use std::path::Path;
use std::time::Duration;
use stop_signal::StopSignal;

const WAIT_INTERVAL: Duration = Duration::from_millis(500);

pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    let Some((&command, words)) = words.split_first() else {
        bail!("fleet: up, down, scale, faults or upgrade")
    };
    let options = FleetOptions::parse(words)?;
    match command {
        "up" => run_until_signal(&options),
        "down" => remove_leftovers(),
        "scale" => scale::run(&options, &StopSignal::install()?),
        "faults" => faults::run(root, &options, &StopSignal::install()?),
        "upgrade" => faults::rolling_upgrade::run(root, &options, &StopSignal::install()?),
        _ => bail!("fleet: up, down, scale, faults or upgrade"),
    }
}

fn run_until_signal(options: &FleetOptions) -> Result<()> {
    let stop = StopSignal::install()?;
    let fleet = RunningFleet::start(options)?;
    for address in fleet.front_addresses() {
        println!("front  http://{address}");
    }
    let listeners = fleet.worker_listeners()?;
    ensure!(listeners.is_empty(), "a worker listens: {}", listeners.join(", "));
    println!("workers listen on no port (ss -ltun in their namespaces)");
    println!("logs   {}/*.log", fleet.folder.0.display());
    if let Some(address) = fleet.front_addresses().first() {
        println!(
            "\ncurl -H 'Authorization: Bearer {}' http://{address}/tools/fs_list --json '{{}}'",
            fleet.token
        );
    }
    while stop.sleep(WAIT_INTERVAL).is_ok() {}
    Ok(())
}

/// Removes what a run left that was killed.
fn remove_leftovers() -> Result<()> {
    for name in private_network::remove_all()? {
        println!("removed network namespace {name}");
    }
    if cpu_limit::remove_all()? {
        println!("removed control groups");
    }
    if running_fleet::remove_folder()? {
        println!("removed {}", running_fleet::FleetFolder::path().display());
    }
    Ok(())
}
