//! Checks of the fleet.

use crate::settings::check::settings_check::Checks;
use url::Url;

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
    }
}
