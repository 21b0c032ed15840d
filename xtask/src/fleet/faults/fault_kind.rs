//! The faults that are injected, one at a time.

use crate::fleet::faults::seeded_random::SeededRandom;
use crate::fleet::node_process::NodeProcess;
use crate::fleet::running_fleet::{RunningFleet, nats_address};
use crate::fleet::stop_signal::StopSignal;
use crate::fleet::system_commands::wait_until;
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write;
use std::time::Duration;

/// Longer than a lease, and than anything that nodes wait for each other.
const LONG_FAULT: Duration = Duration::from_secs(13);
/// Longer than a worker keeps its lease without NATS, and than Patroni waits for a primary.
const OFFLINE_FAULT: Duration = Duration::from_secs(25);
/// Shorter than a lease.
const SHORT_FAULT: Duration = Duration::from_secs(3);
/// Longer than a lease.
const CLOCK_JUMP: Duration = Duration::from_secs(60);
const START_TIMEOUT: Duration = Duration::from_secs(60);
const SERVICE_LEASE: &str = "fleet/workspace/default";
const FILLER_FILE: &str = "filler";
const FILLER_BLOCK: usize = 1 << 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultKind {
    KillFront,
    KillWorker,
    KillNats,
    KillPostgresBackend,
    KillPostgres,
    SuspendFront,
    SuspendWorker,
    SuspendNats,
    SuspendPostgres,
    CutFront,
    CutWorker,
    CutNats,
    CutPostgres,
    SplitFrontPostgres,
    SplitFrontNats,
    SplitWorkerPostgres,
    SplitWorkerNats,
    StopFront,
    StopWorker,
    RestartNats,
    RestartPostgres,
    FillDisk,
    JumpFrontClock,
    JumpPostgresClock,
}

impl FaultKind {
    pub const ALL: [Self; 24] = [
        Self::KillFront,
        Self::KillWorker,
        Self::KillNats,
        Self::KillPostgresBackend,
        Self::KillPostgres,
        Self::SuspendFront,
        Self::SuspendWorker,
        Self::SuspendNats,
        Self::SuspendPostgres,
        Self::CutFront,
        Self::CutWorker,
        Self::CutNats,
        Self::CutPostgres,
        Self::SplitFrontPostgres,
        Self::SplitFrontNats,
        Self::SplitWorkerPostgres,
        Self::SplitWorkerNats,
        Self::StopFront,
        Self::StopWorker,
        Self::RestartNats,
        Self::RestartPostgres,
        Self::FillDisk,
        Self::JumpFrontClock,
        Self::JumpPostgresClock,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::KillFront => "kill-front",
            Self::KillWorker => "kill-worker",
            Self::KillNats => "kill-nats",
            Self::KillPostgresBackend => "kill-postgres-backend",
            Self::KillPostgres => "kill-postgres",
            Self::SuspendFront => "suspend-front",
            Self::SuspendWorker => "suspend-worker",
            Self::SuspendNats => "suspend-nats",
            Self::SuspendPostgres => "suspend-postgres",
            Self::CutFront => "cut-front",
            Self::CutWorker => "cut-worker",
            Self::CutNats => "cut-nats",
            Self::CutPostgres => "cut-postgres",
            Self::SplitFrontPostgres => "split-front-postgres",
            Self::SplitFrontNats => "split-front-nats",
            Self::SplitWorkerPostgres => "split-worker-postgres",
            Self::SplitWorkerNats => "split-worker-nats",
            Self::StopFront => "stop-front",
            Self::StopWorker => "stop-worker",
            Self::RestartNats => "restart-nats",
            Self::RestartPostgres => "restart-postgres",
            Self::FillDisk => "fill-disk",
            Self::JumpFrontClock => "jump-front-clock",
            Self::JumpPostgresClock => "jump-postgres-clock",
        }
    }

    /// Whether it needs libfaketime.
    pub fn needs_fake_clock(self) -> bool {
        matches!(self, Self::JumpFrontClock | Self::JumpPostgresClock)
    }

    /// Whether it concerns the server that accepts writes.
    fn is_at_postgres(self) -> bool {
        matches!(self, Self::SuspendPostgres | Self::CutPostgres | Self::JumpPostgresClock)
    }

    pub fn from_name(name: &str) -> Result<Self> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|kind| kind.name() == name);
        found.with_context(|| format!("no fault is called {name}; the faults are {}", names()))
    }
}

pub struct FaultInjector<'a> {
    pub fleet: &'a mut RunningFleet,
    pub random: SeededRandom,
    pub stop: &'a StopSignal,
}

impl FaultInjector<'_> {
    /// Injects a fault and ends it; processes that ended are started again. Returns what it met.
    pub fn inject(&mut self, kind: FaultKind) -> Result<String> {
        match kind {
            FaultKind::KillFront => self.restart_front(Signal::KILL),
            FaultKind::StopFront => self.restart_front(Signal::TERM),
            FaultKind::KillWorker => self.restart_worker(Signal::KILL),
            FaultKind::StopWorker => self.restart_worker(Signal::TERM),
            FaultKind::KillNats => {
                let at = self.random.below(self.fleet.nats.len());
                restart(self.fleet.nats.get_mut(at).context("no NATS")?, Signal::KILL)
            }
            FaultKind::RestartNats => {
                self.fleet.nats.iter().try_for_each(|member| member.signal(Signal::TERM))?;
                self.fleet.nats.iter_mut().try_for_each(NodeProcess::wait)?;
                self.fleet.nats.iter_mut().try_for_each(NodeProcess::start_again)?;
                Ok("all members".to_owned())
            }
            FaultKind::KillPostgresBackend => self.kill_backend(),
            FaultKind::KillPostgres => self.restart_postgres(Signal::KILL),
            // A fast shutdown.
            FaultKind::RestartPostgres => self.restart_postgres(Signal::INT),
            FaultKind::SuspendFront | FaultKind::SuspendWorker => self.suspend(kind),
            FaultKind::SuspendNats | FaultKind::SuspendPostgres => self.suspend(kind),
            FaultKind::CutFront | FaultKind::CutWorker => self.cut(kind),
            FaultKind::CutNats | FaultKind::CutPostgres => self.cut(kind),
            FaultKind::SplitFrontPostgres | FaultKind::SplitFrontNats => self.split(kind),
            FaultKind::SplitWorkerPostgres | FaultKind::SplitWorkerNats => self.split(kind),
            FaultKind::FillDisk => self.fill_disk(),
            FaultKind::JumpFrontClock | FaultKind::JumpPostgresClock => self.jump_clock(kind),
        }
    }

    fn restart_front(&mut self, signal: Signal) -> Result<String> {
        let at = self.random.below(self.fleet.fronts.len());
        restart(self.fleet.fronts.get_mut(at).context("no fronts")?, signal)
    }

    fn restart_worker(&mut self, signal: Signal) -> Result<String> {
        let at = self.worker();
        restart(self.fleet.workers.get_mut(at).context("no workers")?, signal)
    }

    /// The worker that serves, mostly.
    fn worker(&mut self) -> usize {
        let any = self.random.below(self.fleet.workers.len());
        if self.random.below(4) == 0 {
            return any;
        }
        let sql = format!("SELECT holder FROM octoprox.leases WHERE name = '{SERVICE_LEASE}'");
        let holder = self.fleet.database.query(&sql).unwrap_or_default().concat();
        let serves = |worker: &NodeProcess| holder.split(' ').next() == Some(worker.node());
        self.fleet.workers.iter().position(serves).unwrap_or(any)
    }

    fn kill_backend(&mut self) -> Result<String> {
        let sql =
            "SELECT pid FROM pg_stat_activity WHERE usename = 'octoprox' AND backend_type = 'client backend'";
        let pids: Vec<i32> =
            self.fleet.database.query(sql)?.iter().filter_map(|pid| pid.parse().ok()).collect();
        let first = self.random.below(pids.len().max(1));
        // Connections come and go.
        let mut backends = pids.iter().cycle().skip(first).take(pids.len()).filter(|pid| is_backend(**pid));
        let chosen = *backends.next().context("no connections to PostgreSQL")?;
        kill_process(Pid::from_raw(chosen).context("not a process")?, Signal::KILL)?;
        Ok(format!("process {chosen}"))
    }

    /// With Patroni, the whole node ends and another one takes over.
    fn restart_postgres(&mut self, signal: Signal) -> Result<String> {
        let database = &mut self.fleet.database;
        database.wait_for_standbys()?;
        let (is_replicated, primary) = (database.is_replicated(), database.primary()?);
        let node = primary.node().to_owned();
        if is_replicated && signal == Signal::KILL {
            primary.signal_all(signal)?;
        } else {
            primary.signal(signal)?;
        }
        primary.wait()?;
        if is_replicated {
            wait_until("failover", START_TIMEOUT, || database.query("SELECT 1").is_ok())?;
        }
        // The processes of the last server may need a moment to end.
        wait_until("PostgreSQL", START_TIMEOUT, || {
            let server = database.servers.iter_mut().find(|server| server.node() == node);
            let is_running = server.is_some_and(|server| server.is_running() || server.start_again().is_ok());
            is_running && database.query("SELECT 1").is_ok()
        })?;
        Ok(node)
    }

    /// The process of a node that a kind of fault concerns.
    fn target(&mut self, kind: FaultKind) -> Result<&NodeProcess> {
        if kind.is_at_postgres() {
            self.fleet.database.wait_for_standbys()?;
            return self.fleet.database.primary().map(|primary| &*primary);
        }
        let (fronts, members) = (self.fleet.fronts.len(), self.fleet.nats.len());
        let process = match kind {
            FaultKind::SuspendFront
            | FaultKind::CutFront
            | FaultKind::SplitFrontNats
            | FaultKind::SplitFrontPostgres
            | FaultKind::JumpFrontClock => {
                let at = self.random.below(fronts);
                self.fleet.fronts.get(at)
            }
            FaultKind::SuspendNats | FaultKind::CutNats => {
                let at = self.random.below(members);
                self.fleet.nats.get(at)
            }
            _ => {
                let at = self.worker();
                self.fleet.workers.get(at)
            }
        };
        process.context("no such node")
    }

    /// As if the machine slept: the commands that a worker runs sleep, too.
    fn suspend(&mut self, kind: FaultKind) -> Result<String> {
        let (stop, time) = (self.stop, self.long_fault(kind));
        let process = self.target(kind)?;
        process.signal_all(Signal::STOP)?;
        let waited = stop.sleep(time);
        process.signal_all(Signal::CONT)?;
        waited?;
        Ok(process.node().to_owned())
    }

    fn fault_time(&mut self, kind: FaultKind) -> Duration {
        let long = self.long_fault(kind);
        *self.random.choose(&[SHORT_FAULT, long]).unwrap_or(&long)
    }

    fn long_fault(&self, kind: FaultKind) -> Duration {
        let fails_over = kind.is_at_postgres() && self.fleet.database.is_replicated();
        if kind == FaultKind::SplitWorkerNats || fails_over { OFFLINE_FAULT } else { LONG_FAULT }
    }

    fn cut(&mut self, kind: FaultKind) -> Result<String> {
        let time = self.fault_time(kind);
        let node = self.target(kind)?.node().to_owned();
        self.fleet.network.set_link(&node, false)?;
        let waited = self.stop.sleep(time);
        self.fleet.network.set_link(&node, true)?;
        waited?;
        Ok(format!("{node}, {} s", time.as_secs()))
    }

    fn split(&mut self, kind: FaultKind) -> Result<String> {
        let time = self.fault_time(kind);
        let node = self.target(kind)?.node().to_owned();
        let peers: Vec<_> = match kind {
            FaultKind::SplitFrontPostgres | FaultKind::SplitWorkerPostgres => {
                self.fleet.database.addresses().collect()
            }
            _ => (1..).zip(&self.fleet.nats).map(|(number, _)| nats_address(number)).collect(),
        };
        let set_paths =
            |is_open| peers.iter().try_for_each(|peer| self.fleet.network.set_path(&node, *peer, is_open));
        set_paths(false)?;
        let waited = self.stop.sleep(time);
        set_paths(true)?;
        waited?;
        Ok(format!("{node}, {} s", time.as_secs()))
    }

    /// Sets the clock of a node forwards, and then back.
    fn jump_clock(&mut self, kind: FaultKind) -> Result<String> {
        let node = self.target(kind)?.node().to_owned();
        self.fleet.folder.set_clock(&node, CLOCK_JUMP)?;
        let waited = self.stop.sleep(SHORT_FAULT);
        self.fleet.folder.set_clock(&node, Duration::ZERO)?;
        waited?;
        Ok(format!("{node}, {} s", CLOCK_JUMP.as_secs()))
    }

    fn fill_disk(&self) -> Result<String> {
        let path = self.fleet.folder.workspace().join(FILLER_FILE);
        let mut file = fs::File::create(&path)?;
        // Ends with an error when the disk is full; smaller blocks then fill the rest.
        for block in [FILLER_BLOCK, 1 << 12] {
            while file.write_all(&vec![0; block]).is_ok() {}
        }
        let waited = self.stop.sleep(SHORT_FAULT);
        fs::remove_file(&path)?;
        waited?;
        Ok("workspace".to_owned())
    }
}

fn restart(process: &mut NodeProcess, signal: Signal) -> Result<String> {
    process.signal(signal)?;
    process.wait()?;
    process.start_again()?;
    Ok(process.node().to_owned())
}

/// Whether a process of this machine is a process of PostgreSQL, also below Patroni.
fn is_backend(pid: i32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"postgres"))
}
