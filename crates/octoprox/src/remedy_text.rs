//! Sentences about remedies. Libraries name a remedy; the commands and variables for it are written here.

use crate::settings::load::env_variables::variable_of;
use octo_model::Remedy;
use octo_oauth::LostLogin;

pub fn remedy_text(remedy: &Remedy) -> String {
    match remedy {
        Remedy::Login { server } => format!(
            "Ask the operator to run: {}, or call server_login with server {server}.",
            login_command(server)
        ),
        Remedy::EnterApiKey { server } => {
            format!("Run `{}` where the hub runs; it prompts for the key.", login_command(server))
        }
        Remedy::ReviewDefinitions { server } => {
            format!("The operator can review and accept the change: octoprox servers diff {server}")
        }
        Remedy::InstallPackage { server } => {
            format!("Run `octoprox servers install {server}` where the hub runs.")
        }
        Remedy::CheckServers => "`octoprox servers` shows what is wrong.".to_owned(),
        Remedy::AddServer => "`octoprox add` adds one.".to_owned(),
        Remedy::AddServerByName { server } => {
            format!(
                "Ask the user to run `octoprox add {server}` where the hub runs; it shows the server before it is added."
            )
        }
        Remedy::ApproveSettings => "A changed file takes effect after `octoprox trust`.".to_owned(),
        Remedy::Settings(paths) => {
            let variables: Vec<&str> = paths.iter().filter_map(|path| variable_of(path)).collect();
            match variables.as_slice() {
                [] => format!("Setting: {}.", paths.join(", ")),
                [variable] => format!("Environment variable: {variable}."),
                _ => format!("Environment variables: {}.", variables.join(", ")),
            }
        }
        Remedy::AllowHost { host } => {
            format!("Environment variable: {}={host}.", variable_of("net.allow").unwrap_or_default())
        }
    }
}

/// How to renew a lost login.
pub fn lost_login_text(login: &LostLogin) -> String {
    match login.caller() {
        None => login_command(&login.server),
        Some(caller) => format!("call server_login with server {}, as {caller}", login.server),
    }
}

fn login_command(server: &str) -> String {
    format!("octoprox login {server}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedies_name_commands_and_variables() {
        let server = || "notion".to_owned();
        for (remedy, part) in [
            (Remedy::Login { server: server() }, "octoprox login notion, or call server_login"),
            (Remedy::EnterApiKey { server: server() }, "`octoprox login notion`"),
            (Remedy::ReviewDefinitions { server: server() }, "octoprox servers diff notion"),
            (Remedy::InstallPackage { server: server() }, "`octoprox servers install notion`"),
            (Remedy::CheckServers, "`octoprox servers`"),
            (Remedy::AddServer, "`octoprox add`"),
            (Remedy::AddServerByName { server: server() }, "`octoprox add notion`"),
            (Remedy::ApproveSettings, "`octoprox trust`"),
            (Remedy::settings(&["toolboxes.shell"]), "Setting: toolboxes.shell."),
            (Remedy::settings(&["github.token"]), "Environment variable: OCTOPROX_GITHUB_TOKEN."),
            (
                Remedy::settings(&["search.searxng_url", "search.brave_api_key"]),
                "Environment variables: OCTOPROX_SEARXNG_URL, BRAVE_API_KEY.",
            ),
            (Remedy::AllowHost { host: "10.0.0.1".to_owned() }, "OCTOPROX_NET_ALLOW=10.0.0.1."),
        ] {
            let text = remedy_text(&remedy);
            assert!(text.contains(part), "{text}");
        }
    }
}
