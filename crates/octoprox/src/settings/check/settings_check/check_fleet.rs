//! Checks of the fleet.

use crate::settings::check::settings_check::Checks;
use crate::settings::model::section_models::Fleet;
use octo_fabric::FleetKeys;
use std::net::IpAddr;
use url::{Host, Url};

const MAX_WORKSPACE_NAME_LEN: usize = 100;

impl Checks<'_> {
    pub fn check_fleet(&mut self) {
        let fleet = &self.settings.fleet;
        for (at, server) in fleet.nats.iter().enumerate() {
            let path = format!("fleet.nats.{at}");
            let url = Url::parse(server).ok();
            let url = url.filter(|url| matches!(url.scheme(), "nats" | "tls") && url.has_host());
            match url {
                None => {
                    let hint = "Write it like nats://10.0.0.5:4222 or tls://nats.example:4222.";
                    self.add_problem(&path, "not the address of a NATS server.", hint);
                }
                Some(url) if !url.username().is_empty() || url.password().is_some() => {
                    let hint =
                        "Use the seed of an nkey or the content of a `.creds` file as `fleet.credentials`.";
                    self.add_problem(&path, "contains credentials.", hint);
                }
                Some(url) if url.scheme() == "nats" && !is_loopback(&url) && !allows_plain_text(fleet) => {
                    let hint =
                        "Use tls://, or set `fleet.allow_plain_text: true` in a network that you trust.";
                    self.add_problem(&path, "connects to another machine without TLS.", hint);
                }
                Some(_) => {}
            }
        }
        let name = &fleet.workspace;
        if name.is_empty() || name.len() > MAX_WORKSPACE_NAME_LEN {
            self.add_problem("fleet.workspace", "not a name of a workspace.", "Use 1 to 100 letters.");
        }
        if fleet.nats.is_empty() && fleet.credentials.is_some() {
            self.add_problem("fleet.credentials", "has no effect without `fleet.nats`.", "Set both or none.");
        }
        self.check_access_to_bus(fleet);
    }

    /// Whoever reaches the bus could be every caller.
    fn check_access_to_bus(&mut self, fleet: &Fleet) {
        if let Some(Err(error)) = fleet.secret.as_ref().map(FleetKeys::parse) {
            let hint = "Use the output of `openssl rand -hex 32`, and of `octoprox fleet key` at a worker.";
            self.add_problem("fleet.secret", format!("{error}."), hint);
        }
        if fleet.nats.is_empty() || fleet.allow_open_bus {
            return;
        }
        if fleet.credentials.is_none() {
            let hint = "Give each node a user at the NATS server and set `fleet.credentials` \
                        (OCTOPROX_FLEET_CREDENTIALS) to the seed of its nkey; docs/guide/fleet.md shows how. If nobody \
                        else can reach the server, set `fleet.allow_open_bus: true` instead.";
            self.add_problem(
                "fleet.nats",
                "has no credentials, so whoever reaches this server could call every tool as anybody.",
                hint,
            );
        }
        if fleet.secret.is_none() {
            let hint = "Set `fleet.secret` (OCTOPROX_FLEET_SECRET) to the output of `openssl rand -hex 32`, the same at \
                        all fronts, and at each worker to the output of `octoprox fleet key`. If nobody else can reach \
                        the server, set `fleet.allow_open_bus: true` instead.";
            self.add_problem("fleet.nats", "has no secret, with which nodes prove who they are.", hint);
        }
    }
}

fn allows_plain_text(fleet: &Fleet) -> bool {
    fleet.allow_plain_text || fleet.allow_open_bus
}

/// The parser knows no addresses in URLs of this scheme.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_start_matches('[').trim_end_matches(']');
            name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
