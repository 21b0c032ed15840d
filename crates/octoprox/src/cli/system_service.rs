//! `--system`: the command is about the system service, not about the hub of the user who types it. It runs again as the
//! service's user, with the service's settings file and variables.

use crate::app_error::AppError;
use octo_model::ToolError;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const SETTINGS_FILE: &str = "/etc/octoprox/octoprox.yaml";
const ENV_FILE: &str = "/etc/octoprox/octoprox.env";
const SERVICE_USER: &str = "octoprox";
const FLAG: &str = "--system";

/// A line of the user database.
#[derive(Debug, PartialEq, Eq)]
struct ServiceUser {
    uid: u32,
    gid: u32,
    home: PathBuf,
}

/// Returns whether this machine has a system service, other than what a user has set up for themselves.
pub fn is_installed() -> bool {
    Path::new(SETTINGS_FILE).exists()
}

/// Replaces this process by the same command, run as the service's user.
pub fn run_as_service() -> Result<Infallible, AppError> {
    let missing = |what: &str| {
        let hint =
            "`--system` is for the service of the deb and rpm packages. Leave it out for your own hub.";
        AppError::from(ToolError::not_found(format!("{what} does not exist.")).hint(hint))
    };
    if !is_installed() {
        return Err(missing(SETTINGS_FILE));
    }
    let users = std::fs::read_to_string("/etc/passwd")?;
    let user = find_user(&users, SERVICE_USER).ok_or_else(|| missing("The user `octoprox`"))?;
    let uid = rustix::process::geteuid();
    if !uid.is_root() && uid.as_raw() != user.uid {
        let error = ToolError::denied("`--system` needs root, or the user `octoprox`.");
        return Err(error.hint("Run the command with sudo.").into());
    }
    let variables = std::fs::read_to_string(ENV_FILE).map(|text| parse_variables(&text)).unwrap_or_default();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1).filter(|word| word != FLAG));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("OCTOPROX_") || name.to_string_lossy().starts_with("XDG_") {
            command.env_remove(name);
        }
    }
    command.env("HOME", &user.home).envs(variables).env("OCTOPROX_CONFIG", SETTINGS_FILE);
    if uid.is_root() {
        // Also drops the supplementary groups of root.
        command.uid(user.uid).gid(user.gid);
    }
    Err(command.exec().into())
}

fn find_user(users: &str, name: &str) -> Option<ServiceUser> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(ServiceUser { uid, gid, home: PathBuf::from(fields.nth(1)?) })
    })
}

/// The variables of an environment file of systemd: one per line, values may be in quotes.
fn parse_variables(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let pair = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        let unquoted = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        Some((name.trim().to_owned(), unquoted.unwrap_or(value).to_owned()))
    };
    lines.filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_s_user_is_found() {
        let users = "root:x:0:0:root:/root:/bin/bash\nocto:x:5:5::/:/x\noctoprox:x:998:997:Octoprox:/var/lib/octoprox:/usr/sbin/nologin\n";
        let expected = ServiceUser { uid: 998, gid: 997, home: PathBuf::from("/var/lib/octoprox") };
        assert_eq!(find_user(users, SERVICE_USER), Some(expected));
        assert_eq!(find_user("octoprox:x:no:1::/:/x", SERVICE_USER), None);
        assert_eq!(find_user("", SERVICE_USER), None);
    }

    #[test]
    fn variables_are_those_of_systemd() {
        let text = "# A=1\nTOKEN=a=b\n QUOTED = \"x y\" \nSINGLE='z'\n; B=2\nEMPTY=\nnothing\n";
        let expected = [("TOKEN", "a=b"), ("QUOTED", "x y"), ("SINGLE", "z"), ("EMPTY", "")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse_variables(text), expected.into());
    }
}
