//! Logins at servers that are no longer good.

use super::{Finding, Verdict};
use crate::cli::session::alone;
use crate::gateway::login;
use crate::secret_key::credentials;
use crate::settings::{Loaded, World};
use crate::toolboxes::reach;
use octo_grants::{Credentials, Net};
use octo_model::Caller;
use octo_upstream::login::{Identity, Logins, State};
use std::sync::Arc;

/// A finding for each login that was lost. Where nobody has logged in yet there is nothing to look at.
pub fn logins(loaded: &Loaded, world: &World) -> Vec<Finding> {
    let settings = &loaded.settings;
    let folder = settings.logins.store.as_ref().or(settings.state_dir.as_ref());
    if !folder.is_some_and(|folder| folder.join("credentials.db").is_file()) {
        return Vec::new();
    }
    let Ok(store) = credentials(settings, world) else { return Vec::new() };
    let looked = alone(async {
        let net = Net::new(reach(settings))?;
        let logins = Logins::new(Credentials::new(Arc::new(store)), Identity::new(""))?;
        let mut findings = Vec::new();
        for (name, server) in &settings.servers {
            let Some(spec) = login::of(name, server, &net) else { continue };
            logins.set(spec);
            match logins.status(&Caller::local(), name).await {
                Ok(status) if status.state == State::Lost => {
                    let why = status.why.map(|why| format!(": {why}")).unwrap_or_default();
                    let says = format!("the login at {name} was lost{why}");
                    findings.push(Finding::bad(
                        Verdict::Warn,
                        "login",
                        says,
                        format!("octoprox login {name}"),
                    ));
                }
                Ok(status) if status.state == State::Connected => {
                    findings.push(Finding::ok("login", format!("{name} is logged in")));
                }
                Ok(_) => {}
                Err(error) => {
                    findings.push(Finding::bad(
                        Verdict::Fail,
                        "login",
                        error.text(),
                        "Check the secret and the state directory.",
                    ));
                    break;
                }
            }
        }
        Ok(findings)
    });
    looked.unwrap_or_default()
}
