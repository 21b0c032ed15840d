//! Programs that download what they run, such as `npx`.

use crate::settings::Server;
use std::path::Path;
use std::time::Duration;

/// Timeout of the first start of a package: its download is part of it.
pub const INSTALL_TIMEOUT: Duration = Duration::from_secs(180);

const PACKAGE_RUNNERS: [&str; 13] =
    ["npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uvx", "uv", "pipx", "deno", "docker", "podman"];

/// Returns whether the first start of the server may download its program.
pub fn is_package_runner(server: &Server) -> bool {
    let Some(command) = server.command.as_deref().filter(|_| server.package.is_none()) else { return false };
    let name = Path::new(command).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    PACKAGE_RUNNERS.contains(&name)
}

/// The cache of `npx` that a start left incomplete when it was interrupted, as the server's failure shows.
pub fn broken_npx_cache<'a>(server: &Server, failure: &'a str) -> Option<&'a str> {
    let is_module_error =
        ["ERR_MODULE_NOT_FOUND", "ERR_UNSUPPORTED_DIR_IMPORT", "Cannot find module", "requireStack"]
            .iter()
            .any(|part| failure.contains(part));
    let command = Path::new(server.command.as_deref()?).file_stem()?;
    if !is_module_error || command != "npx" {
        return None;
    }
    named_cache(failure).or(Some("~/.npm/_npx"))
}

/// The directory of one package in the cache.
fn named_cache(failure: &str) -> Option<&str> {
    let marker = failure.find("/_npx/")?;
    let is_path = |letter: char| letter.is_ascii_alphanumeric() || "/._-@~".contains(letter);
    let start = failure.get(..marker)?.rfind(|letter| !is_path(letter)).map_or(0, |at| at + 1);
    let hash_at = marker + "/_npx/".len();
    let hash = failure.get(hash_at..)?.find(|letter: char| !letter.is_ascii_alphanumeric());
    failure.get(start..hash.map_or(failure.len(), |length| hash_at + length))
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
            ("npx", failure, Some("/home/ada/.npm/_npx/9f8b")),
            ("npx", "requireStack: []", Some("~/.npm/_npx")),
            ("npx", "listening at /home/ada/.npm/_npx/9f8b", None),
            ("node", missing, None),
        ] {
            assert_eq!(broken_npx_cache(&server(command), failure), expected, "{failure}");
        }
    }
}
