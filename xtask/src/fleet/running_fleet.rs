//! A fleet on this machine: PostgreSQL, NATS, fronts and workers, each in a network namespace of its own.

use crate::fleet::cpu_limit::CpuLimit;
use crate::fleet::fake_clock;
use crate::fleet::fleet_database::FleetDatabase;
use crate::fleet::fleet_options::FleetOptions;
use crate::fleet::node_process::{NodeProcess, ProcessStart};
use crate::fleet::private_network::{PrivateNetwork, address, namespace, namespaces};
use crate::fleet::system_commands::{ip, output_of, run, wait_until};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const NATS_NUMBER: u8 = 20;
const FRONT_NUMBER: u8 = 30;
const WORKER_NUMBER: u8 = 40;
const FRONT_PORT: u16 = 7000;
const START_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);
/// Size of the file system that the workers share.
const WORKSPACE_SIZE: &str = "16m";
/// Lets commands know which worker runs them.
const WORKER_SETTINGS: &str = "shell: {env_passthrough: [FLEET_NODE]}\n";

/// Ended and removed when dropped; fields are dropped in their order.
pub struct RunningFleet {
    pub fronts: Vec<NodeProcess>,
    pub workers: Vec<NodeProcess>,
    pub nats: Vec<NodeProcess>,
    pub database: FleetDatabase,
    pub front_limits: Vec<CpuLimit>,
    pub network: PrivateNetwork,
    /// The token of all fronts.
    pub token: String,
    pub folder: FleetFolder,
    pub binary: PathBuf,
    hub_variables: Vec<(String, String)>,
}

/// Where the fleet has its files; removed when dropped. The user of PostgreSQL has to reach it.
pub struct FleetFolder(pub PathBuf);

impl FleetFolder {
    pub fn path() -> PathBuf {
        std::env::temp_dir().join("octo-fleet")
    }

    fn create() -> Result<Self> {
        let folder = Self(Self::path());
        fs::create_dir_all(folder.workspace())?;
        fs::create_dir_all(folder.front_workspace())?;
        let workspace = folder.workspace();
        let workspace = workspace.to_str().context("the path is not UTF-8")?;
        run(&[
            "mount",
            "-t",
            "tmpfs",
            "-o",
            &format!("size={WORKSPACE_SIZE},mode=777"),
            "octo-fleet",
            workspace,
        ])?;
        Ok(folder)
    }

    /// What the workers serve: one file system that all of them have.
    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    /// Has the workflows.
    pub fn front_workspace(&self) -> PathBuf {
        self.0.join("front-workspace")
    }

    /// Sets how far the clock of a node is ahead of the real one. Its processes notice within a second.
    pub fn set_clock(&self, node: &str, ahead: Duration) -> Result<()> {
        Ok(fs::write(self.clock(node), format!("+{}", ahead.as_secs()))?)
    }

    fn clock(&self, node: &str) -> PathBuf {
        self.0.join(format!("{node}.clock"))
    }

    /// Starts a program so that its clock can be set.
    pub fn clock_command(&self, node: &str) -> Result<Vec<String>> {
        self.set_clock(node, Duration::ZERO)?;
        Ok(fake_clock::command(&self.clock(node)))
    }

    pub fn log(&self, node: &str) -> PathBuf {
        self.0.join(format!("{node}.log"))
    }
}

impl Drop for FleetFolder {
    fn drop(&mut self) {
        if let Err(error) = remove_folder() {
            eprintln!("fleet: {error:#}");
        }
    }
}

/// Removes the files of a fleet. Returns whether there were any.
pub fn remove_folder() -> Result<bool> {
    let folder = FleetFolder(FleetFolder::path());
    let (path, workspace) = (folder.0.clone(), folder.workspace());
    // Removed here, and not again.
    std::mem::forget(folder);
    if !path.exists() {
        return Ok(false);
    }
    let mounts = fs::read_to_string("/proc/self/mounts")?;
    let workspace = workspace.to_str().context("the path is not UTF-8")?;
    if mounts.lines().any(|line| line.split_whitespace().nth(1) == Some(workspace)) {
        // Launchers of commands may need a moment to end.
        wait_until("the end of the workspace", START_TIMEOUT, || run(&["umount", workspace]).is_ok())?;
    }
    fs::remove_dir_all(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    Ok(true)
}

impl RunningFleet {
    pub fn start(options: &FleetOptions) -> Result<Self> {
        Self::start_build(variable("OCTOPROX_BIN")?.into(), options)
    }

    pub fn start_build(binary: PathBuf, options: &FleetOptions) -> Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "only root can create network namespaces");
        ensure!(
            namespaces()?.is_empty() && !FleetFolder::path().exists(),
            "a fleet exists already: run cargo xtask fleet down"
        );
        let folder = FleetFolder::create()?;
        let network = PrivateNetwork::create()?;
        let token = random_text()?;
        let database = FleetDatabase::start(&folder, &network, options.databases, options.fake_clocks)?;
        let members = options.nats.unwrap_or(1);
        let nats = start_nats(&folder, &network, members)?;
        let nats_urls: Vec<String> =
            (1..=members).map(|number| format!("nats://{}:4222", nats_address(number))).collect();
        let hub_variables = [
            ("OCTOPROX_STORE_POSTGRES", database.dsn()),
            ("OCTOPROX_SECRET", random_text()?),
            ("OCTOPROX_FLEET_NATS", nats_urls.join(",")),
            // Nobody else reaches these networks.
            ("OCTOPROX_FLEET_ALLOW_OPEN_BUS", "true".to_owned()),
            ("OCTOPROX_FLEET_SECRET", random_text()?),
            ("OCTOPROX_ENABLE_SHELL", "true".to_owned()),
        ];
        let hub_variables = hub_variables.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let mut fleet = Self {
            fronts: Vec::new(),
            workers: Vec::new(),
            nats,
            database,
            front_limits: Vec::new(),
            network,
            token,
            folder,
            binary,
            hub_variables,
        };
        fleet.octoprox(&["migrate"])?;
        (1..=options.workers).try_for_each(|number| fleet.add_worker(number))?;
        (1..=options.fronts).try_for_each(|number| fleet.add_front(number, options))?;
        fleet.wait_until_ready()?;
        Ok(fleet)
    }

    /// Runs a command of the hub on this machine, with the database of the fleet.
    pub fn octoprox(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.binary);
        command.args(args).env_clear().envs(self.variables_of("operator"));
        output_of(command.current_dir(self.folder.front_workspace()))
    }

    fn variables_of(&self, node: &str) -> Vec<(String, String)> {
        let home = self.folder.0.join(node).display().to_string();
        let own = [
            ("HOME", home.clone()),
            ("OCTOPROX_STATE_DIR", format!("{home}/state")),
            ("OCTOPROX_STORE_NODE", node.to_owned()),
            ("FLEET_NODE", node.to_owned()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.hub_variables.iter().cloned().chain(own).collect()
    }

    fn hub_start(&self, node: String, args: &[&str], directory: PathBuf) -> ProcessStart {
        ProcessStart {
            program: self.binary.clone(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            variables: self.variables_of(&node),
            directory,
            log: self.folder.log(&node),
            members_file: None,
            node,
        }
    }

    fn add_worker(&mut self, number: u8) -> Result<()> {
        let node = format!("worker{number}");
        self.network.add_node(&node, worker_address(number))?;
        self.network.refuse_inbound(&node)?;
        let settings = self.folder.0.join("worker.yaml");
        fs::write(&settings, WORKER_SETTINGS)?;
        let settings = settings.display().to_string();
        let start = self.hub_start(node, &["--config", &settings, "worker"], self.folder.workspace());
        self.workers.push(NodeProcess::start(start)?);
        Ok(())
    }

    fn add_front(&mut self, number: u8, options: &FleetOptions) -> Result<()> {
        let node = format!("front{number}");
        let host = address(FRONT_NUMBER + number);
        self.network.add_node(&node, host)?;
        let args = ["serve", "--roles", "front", "--host", &host.to_string()];
        let mut start = self.hub_start(node, &args, self.folder.front_workspace());
        start.variables.push(("GATEWAY_TOKEN".to_owned(), self.token.clone()));
        if options.fake_clocks {
            let mut words = self.folder.clock_command(&start.node)?;
            words.push(start.program.display().to_string());
            words.append(&mut start.args);
            start.program = words.remove(0).into();
            start.args = words;
        }
        if let Some(cores) = options.front_cpu {
            let limit = CpuLimit::create(&start.node, cores)?;
            start.members_file = Some(limit.members_file());
            self.front_limits.push(limit);
        }
        self.fronts.push(NodeProcess::start(start)?);
        Ok(())
    }

    pub fn front_addresses(&self) -> Vec<SocketAddr> {
        (1..).zip(&self.fronts).map(|(number, _)| front_address(number)).collect()
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let addresses = self.front_addresses();
        for (front, address) in self.fronts.iter_mut().zip(addresses) {
            let node = front.node().to_owned();
            let log = self.folder.log(&node);
            wait_until(&node, START_TIMEOUT, || {
                TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).is_ok() || !front.is_running()
            })?;
            ensure!(front.is_running(), "{node} has ended:\n{}", fs::read_to_string(log)?);
        }
        Ok(())
    }

    /// What the workers listen on in their namespaces, which should be nothing.
    pub fn worker_listeners(&self) -> Result<Vec<String>> {
        let mut listeners = Vec::new();
        for worker in &self.workers {
            let list = ip(&format!("netns exec {} ss -Hltun", namespace(worker.node())))?;
            listeners.extend(list.lines().map(|line| format!("{}: {line}", worker.node())));
        }
        Ok(listeners)
    }
}

pub fn nats_address(number: u8) -> Ipv4Addr {
    address(NATS_NUMBER + number)
}

pub fn worker_address(number: u8) -> Ipv4Addr {
    address(WORKER_NUMBER + number)
}

fn front_address(number: u8) -> SocketAddr {
    (address(FRONT_NUMBER + number), FRONT_PORT).into()
}

pub fn variable(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set: run eval \"$(scripts/services env)\", or set it yourself")
    })
}

pub fn random_text() -> Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    let more = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(format!("{}{}", id.trim(), more.trim()).replace('-', ""))
}

fn start_nats(folder: &FleetFolder, network: &PrivateNetwork, count: u8) -> Result<Vec<NodeProcess>> {
    let program: PathBuf = variable("NATS_SERVER")?.into();
    let route = |number| format!("nats://{}:6222", nats_address(number));
    let routes: Vec<String> = (1..=count).map(route).collect();
    let start = |number| {
        let node = format!("nats{number}");
        network.add_node(&node, nats_address(number))?;
        let mut args = vec!["--name".to_owned(), node.clone(), "--addr".to_owned()];
        args.extend([nats_address(number).to_string(), "--port".to_owned(), "4222".to_owned()]);
        if count > 1 {
            args.extend(["--cluster_name".to_owned(), "fleet".to_owned()]);
            args.extend(["--cluster".to_owned(), route(number)]);
            args.extend(["--routes".to_owned(), routes.join(",")]);
        }
        NodeProcess::start(ProcessStart {
            program: program.clone(),
            args,
            variables: Vec::new(),
            directory: folder.0.join(&node),
            log: folder.log(&node),
            members_file: None,
            node,
        })
    };
    (1..=count).map(start).collect()
}
