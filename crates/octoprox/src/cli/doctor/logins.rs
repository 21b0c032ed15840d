//! Logins at servers that are no longer good.

use super::{Finding, Verdict};
use crate::cli::session::alone;
use crate::gateway::login;
use crate::secret_key::credentials;
use crate::settings::{Loaded, World};
use crate::toolboxes::reach;
use octo_grants::{Credentials, Net};
use octo_model::{Caller, Kind};
use octo_oauth::{ClientIdentity, LoginState, Logins, LostLogin};
use std::sync::Arc;

/// A finding for each login that was lost. Where nobody has logged in yet there is nothing to look at.
pub fn logins(loaded: &Loaded, world: &World) -> Vec<Finding> {
    let Some(logins) = kept(loaded, world) else { return Vec::new() };
    let looked = alone(async {
        let mut findings = Vec::new();
        for name in loaded.settings.servers.keys() {
            match logins.status(&Caller::local(), name).await {
                Ok(status) if status.state == LoginState::Connected => {
                    findings.push(Finding::ok("login", format!("{name} is logged in")));
                }
                Err(error) if error.kind != Kind::NotFound => {
                    findings.push(Finding::bad(
                        Verdict::Fail,
                        "login",
                        error.text(),
                        "Check the secret and the state directory.",
                    ));
                    return Ok(findings);
                }
                Ok(_) | Err(_) => {}
            }
        }
        findings.extend(logins.lost_logins().await?.iter().map(lost));
        Ok(findings)
    });
    looked.unwrap_or_default()
}

/// Logins at servers of the settings that were lost, as far as they can be read.
pub fn lost_logins(loaded: &Loaded, world: &World) -> Vec<LostLogin> {
    let Some(logins) = kept(loaded, world) else { return Vec::new() };
    alone(async { Ok(logins.lost_logins().await?) }).unwrap_or_default()
}

/// The logins that are kept for the servers of the settings. None where nobody has logged in yet: nothing is made.
fn kept(loaded: &Loaded, world: &World) -> Option<Logins> {
    let settings = &loaded.settings;
    let folder = settings.logins.store.as_ref().or(settings.state_dir.as_ref())?;
    if !folder.join("credentials.db").is_file() {
        return None;
    }
    let store = Credentials::new(Arc::new(credentials(settings, world).ok()?));
    let (net, logins) = (Net::new(reach(settings)).ok()?, Logins::new(store, ClientIdentity::new("")).ok()?);
    for (name, server) in &settings.servers {
        if let Some(spec) = login::of(name, server, &net) {
            logins.register(spec);
        }
    }
    Some(logins)
}

fn lost(login: &LostLogin) -> Finding {
    let whose = login.caller().map(|caller| format!("of {caller} ")).unwrap_or_default();
    let says = format!("the login {whose}at {} was lost: {}", login.server, login.why);
    Finding::bad(Verdict::Warn, "login", says, login.remedy())
}
