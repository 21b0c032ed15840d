//! Checks of the logins at upstream servers.

use crate::app_context::block_on_current_thread;
use crate::cli::commands::doctor_command::{Finding, Verdict};
use crate::gateway::login_spec;
use crate::remedy_text::{lost_login_text, remedy_text};
use crate::settings::{Environment, LoadedSettings};
use crate::stores::stores_with_logins;
use crate::toolboxes::net_spec;
use octo_grants::Net;
use octo_model::{Caller, Kind};
use octo_oauth::{ClientIdentity, LoginState, Logins, LostLogin};

/// Returns a finding per connected or lost login; none if there are no logins yet.
pub fn login_checks(loaded: &LoadedSettings, world: &Environment) -> Vec<Finding> {
    let Some(logins) = stored_logins(loaded, world) else { return Vec::new() };
    let looked = block_on_current_thread(async {
        let mut findings = Vec::new();
        for name in loaded.settings.servers.keys() {
            match logins.status(&Caller::local(), name).await {
                Ok(status) if status.state == LoginState::Connected => {
                    findings.push(Finding::ok("login", format!("{name} is logged in")));
                }
                Err(error) if error.kind != Kind::NotFound => {
                    findings.push(Finding::problem(
                        Verdict::Fail,
                        "login",
                        error.with_remedy_text(remedy_text).text(),
                        "Check the secret and the state directory.",
                    ));
                    return Ok(findings);
                }
                Ok(_) | Err(_) => {}
            }
        }
        findings.extend(logins.lost_logins().await?.iter().map(lost_login_finding));
        Ok(findings)
    });
    looked.unwrap_or_default()
}

/// Returns the lost logins at configured servers; none if they cannot be read.
pub fn lost_logins(loaded: &LoadedSettings, world: &Environment) -> Vec<LostLogin> {
    let Some(logins) = stored_logins(loaded, world) else { return Vec::new() };
    block_on_current_thread(async { Ok(logins.lost_logins().await?) }).unwrap_or_default()
}

/// Opens the logins at configured servers. Returns `None` if there are none yet; creates no files.
fn stored_logins(loaded: &LoadedSettings, world: &Environment) -> Option<Logins> {
    let settings = &loaded.settings;
    let folder = settings.logins.store.as_ref().or(settings.state_dir.as_ref())?;
    if !folder.join("credentials.db").is_file() {
        return None;
    }
    let stores = stores_with_logins(settings, world).ok()?;
    let (net, logins) =
        (Net::new(net_spec(settings)).ok()?, Logins::new(&stores, ClientIdentity::new("")).ok()?);
    for (name, server) in &settings.servers {
        if let Some(spec) = login_spec::login_spec(name, server, &net) {
            logins.register(spec);
        }
    }
    Some(logins)
}

fn lost_login_finding(login: &LostLogin) -> Finding {
    let whose = login.caller().map(|caller| format!("of {caller} ")).unwrap_or_default();
    let message = format!("the login {whose}at {} was lost: {}", login.server, login.reason);
    Finding::problem(Verdict::Warn, "login", message, lost_login_text(login))
}
