//! The database of a fleet: one server, or several that Patroni fails over.

use crate::fleet::node_process::{NodeProcess, ProcessStart};
use crate::fleet::private_network::{PrivateNetwork, address, subnet};
use crate::fleet::running_fleet::{FleetFolder, random_text, variable};
use crate::fleet::system_commands::{output_of, run, wait_until};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const POSTGRES_NUMBER: u8 = 10;
const ETCD_NUMBER: u8 = 19;
/// Database and role of the hubs.
const ROLE: &str = "octoprox";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const AS_POSTGRES: [&str; 3] = ["--reuid=postgres", "--regid=postgres", "--clear-groups"];

/// Ended when dropped.
pub struct FleetDatabase {
    /// One for each server; with Patroni, which starts and ends the server.
    pub servers: Vec<NodeProcess>,
    etcd: Option<NodeProcess>,
    password: String,
}

impl FleetDatabase {
    /// Starts one server, whose clock can be set, or several with Patroni.
    pub fn start(
        folder: &FleetFolder,
        network: &PrivateNetwork,
        count: u8,
        has_fake_clock: bool,
    ) -> Result<Self> {
        let database = if count == 1 {
            start_single(folder, network, has_fake_clock)?
        } else {
            start_patroni(folder, network, count)?
        };
        wait_until("PostgreSQL", START_TIMEOUT, || database.psql("postgres", "SELECT 1").is_ok())?;
        database.wait_for_standbys()?;
        let password = &database.password;
        database.psql("postgres", &format!("CREATE ROLE {ROLE} LOGIN PASSWORD '{password}'"))?;
        database.psql("postgres", &format!("CREATE DATABASE {ROLE} OWNER {ROLE}"))?;
        Ok(database)
    }

    pub fn is_replicated(&self) -> bool {
        self.etcd.is_some()
    }

    /// Connection string of the hubs.
    pub fn dsn(&self) -> String {
        let hosts: Vec<String> = self.addresses().map(|host| host.to_string()).collect();
        format!("postgres://{ROLE}:{}@{}/{ROLE}", self.password, hosts.join(","))
    }

    pub fn addresses(&self) -> impl Iterator<Item = Ipv4Addr> {
        (POSTGRES_NUMBER..).zip(&self.servers).map(|(number, _)| address(number))
    }

    /// Rows of a query at the server that accepts writes, as lines of fields with `|` in between. Row-level security does
    /// not apply.
    pub fn query(&self, sql: &str) -> Result<Vec<String>> {
        Ok(self.psql(ROLE, sql)?.lines().map(str::to_owned).collect())
    }

    /// Waits until another server may take over without losing a commit, as Patroni sees it.
    pub fn wait_for_standbys(&self) -> Result<()> {
        let is_ready = || {
            let urls = self.addresses().map(|host| format!("http://{host}:8008/synchronous"));
            urls.into_iter()
                .any(|url| run(&["curl", "-sf", "--max-time", "2", "-o", "/dev/null", &url]).is_ok())
        };
        if self.is_replicated() {
            wait_until("a standby", START_TIMEOUT, is_ready)?;
        }
        Ok(())
    }

    /// The server that accepts writes.
    pub fn primary(&mut self) -> Result<&mut NodeProcess> {
        let host: Ipv4Addr = self.query("SELECT host(inet_server_addr())")?.concat().parse()?;
        let at = self.addresses().position(|address| address == host).context("an unknown server")?;
        self.servers.get_mut(at).context("no server")
    }

    fn psql(&self, database: &str, sql: &str) -> Result<String> {
        let hosts: Vec<String> = self.addresses().map(|host| format!("{host}:5432")).collect();
        let dsn = format!(
            "postgres://postgres@{}/{database}?connect_timeout=3&target_session_attrs=read-write",
            hosts.join(",")
        );
        let mut command = Command::new("psql");
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--command", sql, &dsn]);
        output_of(command.env("PGPASSWORD", &self.password))
    }
}

impl Drop for FleetDatabase {
    fn drop(&mut self) {
        // Killed, they would leave shared memory.
        for server in &self.servers {
            let _ = server.signal(Signal::INT);
        }
        for server in &mut self.servers {
            let _ = server.wait();
        }
    }
}

fn start_single(
    folder: &FleetFolder,
    network: &PrivateNetwork,
    has_fake_clock: bool,
) -> Result<FleetDatabase> {
    let (node, host) = ("postgres", address(POSTGRES_NUMBER));
    let home = folder.0.join(node);
    let home_text = home.to_str().context("the path is not UTF-8")?;
    run(&[&variable("POSTGRES_CLUSTER")?, "init", home_text, "5432"])?;
    append(&home.join("data/postgresql.conf"), &format!("listen_addresses = '{host}'\n"))?;
    append(&home.join("data/pg_hba.conf"), &format!("host all all {} scram-sha-256\n", subnet()))?;
    network.add_node(node, host)?;
    let mut args = AS_POSTGRES.map(str::to_owned).to_vec();
    if has_fake_clock {
        args.extend(folder.clock_command(node)?);
    }
    args.extend([format!("{}/postgres", programs()?), "-D".to_owned(), "data".to_owned()]);
    let process = NodeProcess::start(ProcessStart {
        node: node.to_owned(),
        program: "setpriv".into(),
        args,
        variables: Vec::new(),
        directory: home.clone(),
        log: folder.log(node),
        members_file: None,
    })?;
    let password = fs::read_to_string(home.join("password"))?.trim().to_owned();
    Ok(FleetDatabase { servers: vec![process], etcd: None, password })
}

fn start_patroni(folder: &FleetFolder, network: &PrivateNetwork, count: u8) -> Result<FleetDatabase> {
    ensure!(
        Path::new("/usr/bin/patroni").exists(),
        "Patroni is not installed: run scripts/services install patroni"
    );
    let etcd = start_etcd(folder, network)?;
    let password = random_text()?;
    let start = |number: u8| {
        let node = format!("postgres{number}");
        let host = address(POSTGRES_NUMBER + number - 1);
        network.add_node(&node, host)?;
        let home = folder.0.join(&node);
        fs::create_dir_all(&home)?;
        fs::write(home.join("patroni.yaml"), patroni_settings(&node, host, &home, &password)?)?;
        run(&["chown", "-R", "postgres:postgres", home.to_str().context("the path is not UTF-8")?])?;
        let mut args = AS_POSTGRES.map(str::to_owned).to_vec();
        args.extend(["/usr/bin/patroni".to_owned(), "patroni.yaml".to_owned()]);
        NodeProcess::start(ProcessStart {
            program: "setpriv".into(),
            args,
            variables: Vec::new(),
            directory: home,
            log: folder.log(&node),
            members_file: None,
            node,
        })
    };
    let servers = (1..=count).map(start).collect::<Result<_>>()?;
    Ok(FleetDatabase { servers, etcd: Some(etcd), password })
}

fn start_etcd(folder: &FleetFolder, network: &PrivateNetwork) -> Result<NodeProcess> {
    let node = "etcd";
    network.add_node(node, address(ETCD_NUMBER))?;
    let url = format!("http://{}:2379", address(ETCD_NUMBER));
    let args =
        ["--enable-v2", "--data-dir", "data", "--listen-client-urls", &url, "--advertise-client-urls", &url];
    NodeProcess::start(ProcessStart {
        node: node.to_owned(),
        program: variable("ETCD")?.into(),
        args: args.map(str::to_owned).to_vec(),
        variables: Vec::new(),
        directory: folder.0.join(node),
        log: folder.log(node),
        members_file: None,
    })
}

/// A commit waits for the other server, so that none is lost when one takes over.
fn patroni_settings(node: &str, host: Ipv4Addr, home: &Path, password: &str) -> Result<String> {
    let settings = serde_json::json!({
        "scope": "fleet",
        "name": node,
        "restapi": {"listen": format!("{host}:8008"), "connect_address": format!("{host}:8008")},
        // With version 3 of the API, Patroni 3.0 does not find a standby again after its primary was suspended.
        "etcd": {"hosts": format!("{}:2379", address(ETCD_NUMBER))},
        "bootstrap": {
            "dcs": {
                "ttl": 20,
                "loop_wait": 2,
                "retry_timeout": 5,
                "synchronous_mode": true,
                "postgresql": {"use_pg_rewind": true, "parameters": {"max_connections": 120}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "data-checksums"],
        },
        "postgresql": {
            "listen": format!("{host}:5432"),
            "connect_address": format!("{host}:5432"),
            "data_dir": home.join("data"),
            "bin_dir": programs()?,
            "parameters": {"unix_socket_directories": home},
            "basebackup": [{"checkpoint": "fast"}],
            "pg_hba": [
                format!("host all all {} scram-sha-256", subnet()),
                format!("host replication all {} scram-sha-256", subnet()),
            ],
            "authentication": {
                "superuser": {"username": "postgres", "password": password},
                "replication": {"username": "replicator", "password": password},
                "rewind": {"username": "rewinder", "password": password},
            },
        },
    });
    Ok(settings.to_string())
}

/// The programs of the newest server that is installed.
fn programs() -> Result<String> {
    let versions = fs::read_dir("/usr/lib/postgresql").context("PostgreSQL is not installed")?;
    let versions = versions.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let version = versions.max().context("PostgreSQL is not installed")?;
    Ok(format!("/usr/lib/postgresql/{version}/bin"))
}

fn append(file: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    Ok(fs::File::options().append(true).open(file)?.write_all(text.as_bytes())?)
}
