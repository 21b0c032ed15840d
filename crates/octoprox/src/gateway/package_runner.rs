//! Programs that download what they run, such as `npx`.

use crate::settings::Server;
use std::path::Path;
use std::time::Duration;

/// Timeout of the first start of a package: its download is part of it.
pub const INSTALL_TIMEOUT: Duration = Duration::from_secs(180);

/// Length of the name of a package in the cache of `npx`.
const MAX_HASH_LEN: usize = 16;

const PACKAGE_RUNNERS: [&str; 13] =
    ["npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uvx", "uv", "pipx", "deno", "docker", "podman"];

/// Returns whether the first start of the server may download its program.
pub fn is_package_runner(server: &Server) -> bool {
    let Some(command) = server.command.as_deref().filter(|_| server.package.is_none()) else { return false };
    let name = Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    PACKAGE_RUNNERS.contains(&name)
}

/// The cache of `npx` that a start left incomplete when it was interrupted, as the server's failure shows. The failure is a
/// text of the server: only the name of a directory in the cache is taken from it.
pub fn broken_npx_cache(server: &Server, failure: &str) -> Option<String> {
    let is_module_error =
        ["ERR_MODULE_NOT_FOUND", "ERR_UNSUPPORTED_DIR_IMPORT", "Cannot find module", "requireStack"]
            .iter()
            .any(|part| failure.contains(part));
    let command = Path::new(server.command.as_deref()?).file_stem()?;
    if !is_module_error || command != "npx" {
        return None;
    }
    let rest = failure.split_once("/.npm/_npx/").map_or("", |(_, rest)| rest);
    let package: String = rest.chars().take_while(char::is_ascii_hexdigit).take(MAX_HASH_LEN).collect();
    Some(if package.is_empty() { "~/.npm/_npx".to_owned() } else { format!("~/.npm/_npx/{package}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_runners_are_recognized() {
        for (command, expected) in [
            ("npx", true),
            ("/usr/local/bin/uvx", true),
            ("npx.cmd", true),
            ("node", false),
            ("/opt/npx/server", false),
        ] {
            let server = Server { command: Some(command.to_owned()), ..Server::default() };
            assert_eq!(is_package_runner(&server), expected, "{command}");
        }
        assert!(!is_package_runner(&Server::default()));
    }

    #[test]
    fn a_broken_cache_is_named() {
        let server = |command: &str| Server { command: Some(command.to_owned()), ..Server::default() };
        let failure = "the process exited; last stderr output: Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'ajv' \
                       imported from /home/ada/.npm/_npx/9f8b/node_modules/x/index.js";
        let missing = "Cannot find module '/srv/app/x.js'";
        for (command, failure, expected) in [
            ("npx", failure, Some("~/.npm/_npx/9f8b")),
            ("npx", "Cannot find module /home/ada/_npx/9f8b", Some("~/.npm/_npx")),
            ("npx", "Cannot find module /x/.npm/_npx/../../9f8b; rm -rf ~", Some("~/.npm/_npx")),
            ("npx", "requireStack: []", Some("~/.npm/_npx")),
            ("npx", "listening at /home/ada/.npm/_npx/9f8b", None),
            ("node", missing, None),
        ] {
            assert_eq!(broken_npx_cache(&server(command), failure).as_deref(), expected, "{failure}");
        }
    }
}
