//! A private network: one namespace per node, connected by a bridge in a namespace of its own. The host has one link to
//! it. Nothing in it has a route to anywhere else.

use crate::fleet::fake_clock;
use crate::fleet::system_commands::{ip, wait_until};
use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::net::Ipv4Addr;
use std::time::Duration;

/// Everything that is created has a name that begins with it.
pub const NAME_PREFIX: &str = "octo-fleet";
const BRIDGE_NAMESPACE: &str = "octo-fleet-bridge";
/// The link of the host.
const HOST_LINK: &str = NAME_PREFIX;
const SUBNET: [u8; 3] = [10, 213, 77];
const HOST_NUMBER: u8 = 1;
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Removed when dropped.
pub struct PrivateNetwork(());

pub fn address(number: u8) -> Ipv4Addr {
    let [a, b, c] = SUBNET;
    Ipv4Addr::new(a, b, c, number)
}

pub fn subnet() -> String {
    format!("{}/24", address(0))
}

pub fn namespace(node: &str) -> String {
    format!("{NAME_PREFIX}-{node}")
}

impl PrivateNetwork {
    pub fn create() -> Result<Self> {
        ip(&format!("netns add {BRIDGE_NAMESPACE}"))?;
        let network = Self(());
        ip(&format!("-n {BRIDGE_NAMESPACE} link add bridge type bridge"))?;
        ip(&format!("-n {BRIDGE_NAMESPACE} link set bridge up"))?;
        ip(&format!("link add {HOST_LINK} type veth peer name host netns {BRIDGE_NAMESPACE}"))?;
        ip(&format!("-n {BRIDGE_NAMESPACE} link set host master bridge up"))?;
        ip(&format!("addr add {}/24 dev {HOST_LINK}", address(HOST_NUMBER)))?;
        ip(&format!("link set {HOST_LINK} up"))?;
        Ok(network)
    }

    pub fn add_node(&self, node: &str, address: Ipv4Addr) -> Result<()> {
        let namespace = namespace(node);
        ip(&format!("netns add {namespace}"))?;
        ip(&format!("link add eth0 netns {namespace} type veth peer name {node} netns {BRIDGE_NAMESPACE}"))?;
        ip(&format!("-n {BRIDGE_NAMESPACE} link set {node} master bridge up"))?;
        ip(&format!("-n {namespace} link set lo up"))?;
        ip(&format!("-n {namespace} addr add {address}/24 dev eth0"))?;
        ip(&format!("-n {namespace} link set eth0 up"))?;
        Ok(())
    }

    /// Drops what arrives at a node, unless it belongs to a connection that the node opened.
    pub fn refuse_inbound(&self, node: &str) -> Result<()> {
        for rule in [
            "-A INPUT -i lo -j ACCEPT",
            "-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
            "-P INPUT DROP",
        ] {
            iptables(node, rule)?;
        }
        Ok(())
    }

    /// Unplugs a node, or connects it again.
    pub fn set_link(&self, node: &str, is_up: bool) -> Result<()> {
        let state = if is_up { "up" } else { "down" };
        ip(&format!("-n {BRIDGE_NAMESPACE} link set {node} {state}")).map(drop)
    }

    /// Drops everything between a node and an address, or no longer.
    pub fn set_path(&self, node: &str, peer: Ipv4Addr, is_open: bool) -> Result<()> {
        let verb = if is_open { "-D" } else { "-I" };
        iptables(node, &format!("{verb} INPUT -s {peer} -j DROP"))?;
        iptables(node, &format!("{verb} OUTPUT -d {peer} -j DROP"))
    }
}

impl Drop for PrivateNetwork {
    fn drop(&mut self) {
        if let Err(error) = remove_all() {
            eprintln!("fleet: cannot remove the network: {error:#}");
        }
    }
}

fn iptables(node: &str, rule: &str) -> Result<()> {
    ip(&format!("netns exec {} iptables {rule}", namespace(node))).map(drop)
}

/// The namespaces of a fleet that exist.
pub fn namespaces() -> Result<Vec<String>> {
    let list = ip("netns list")?;
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    Ok(names.filter(|name| name.starts_with(&format!("{NAME_PREFIX}-"))).map(str::to_owned).collect())
}

fn processes_in(namespace: &str) -> Result<Vec<Pid>> {
    let list = ip(&format!("netns pids {namespace}"))?;
    let pids = list.split_whitespace().map(|pid| Pid::from_raw(pid.parse()?).context("no process 0"));
    pids.collect()
}

/// Ends the processes in the namespaces of a fleet and removes the namespaces. Returns what it removed.
pub fn remove_all() -> Result<Vec<String>> {
    let names = namespaces()?;
    for name in &names {
        let pids = processes_in(name)?;
        for pid in &pids {
            // It may have ended in the meantime.
            let _ = kill_process(*pid, Signal::KILL);
        }
        wait_until(&format!("the end of {name}"), EXIT_TIMEOUT, || {
            processes_in(name).is_ok_and(|pids| pids.is_empty())
        })?;
        pids.iter().for_each(|pid| fake_clock::remove_files(pid.as_raw_nonzero().get().unsigned_abs()));
        ip(&format!("netns del {name}"))?;
    }
    // It may have gone with the other end.
    let _ = ip(&format!("link del {HOST_LINK}"));
    Ok(names)
}
