//! Options of the commands, as `--name value`.

use anyhow::{Context, Result, bail, ensure};
use std::time::Duration;

const MAX_NODES: u8 = 9;

pub struct FleetOptions {
    pub fronts: u8,
    pub workers: u8,
    /// Members of the NATS cluster.
    pub nats: Option<u8>,
    /// Servers of PostgreSQL; with more than one, Patroni fails over.
    pub databases: u8,
    /// Cores of each front.
    pub front_cpu: Option<f64>,
    /// Whether the clocks of fronts and PostgreSQL can be set.
    pub fake_clocks: bool,
    pub injections: usize,
    /// Names of the faults to inject; all of them, if it is empty.
    pub kinds: Vec<String>,
    pub seed: u64,
    pub clients: usize,
    /// Duration of a measurement.
    pub time: Duration,
    pub rounds: usize,
}

impl FleetOptions {
    pub fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self {
            fronts: 3,
            workers: 3,
            nats: None,
            databases: 1,
            front_cpu: None,
            fake_clocks: false,
            injections: 200,
            kinds: Vec::new(),
            seed: 1,
            clients: 6,
            time: Duration::from_secs(5),
            rounds: 3,
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("{} needs a value", pair.concat()) };
            options.set(name, value).with_context(|| format!("{name} {value}"))?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        match name {
            "--fronts" => self.fronts = node_count(value)?,
            "--workers" => self.workers = node_count(value)?,
            "--nats" => self.nats = Some(node_count(value)?),
            "--databases" => self.databases = node_count(value)?,
            "--front-cpu" => self.front_cpu = Some(value.parse()?),
            "--injections" => self.injections = value.parse()?,
            "--kinds" => self.kinds = value.split(',').map(str::to_owned).collect(),
            "--seed" => self.seed = value.parse()?,
            "--clients" => self.clients = value.parse()?,
            "--seconds" => self.time = Duration::from_secs(value.parse()?),
            "--rounds" => self.rounds = value.parse()?,
            _ => bail!("unknown option"),
        }
        Ok(())
    }
}

fn node_count(value: &str) -> Result<u8> {
    let count = value.parse()?;
    ensure!((1..=MAX_NODES).contains(&count), "from 1 to {MAX_NODES}");
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_values() {
        let options = FleetOptions::parse(&["--nats", "3", "--front-cpu", "0.2", "--kinds", "a,b"]).unwrap();
        assert_eq!((options.nats, options.front_cpu, options.kinds.len()), (Some(3), Some(0.2), 2));
        for wrong in [&["--nats"][..], &["--nats", "0"], &["--nats", "10"], &["--other", "1"]] {
            assert!(FleetOptions::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
