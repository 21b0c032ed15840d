//! Which sessions share a hub: the same program, settings file, confinement, and environment as far as a hub uses its own.

use super::confinement::Confinement;
use super::program_file::ProgramFile;
use crate::settings::load::settings_locations::{named_file, project_file, user_file};
use crate::settings::{Environment, Flags};
use crate::stores::DigestKey;
use std::io;

/// Variables that a hub or the programs it starts read from the hub's own environment.
const SHARED_VARIABLES: [&str; 9] = [
    "GATEWAY_TOKEN",
    "HOME",
    "LANG",
    "PATH",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "TOOL_GATEWAY_SECRET",
    "TZ",
];
const SHARED_PREFIXES: [&str; 3] = ["OCTOPROX_", "OTEL_", "XDG_"];
const KEY_LEN: usize = 24;

/// Keyed hash of all that: it is the name of the socket, which the command line of the hub shows to everybody, and the
/// variables contain secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubKey(String);

impl HubKey {
    pub fn new(
        program: &ProgramFile,
        world: &Environment,
        flags: &Flags,
        digests: &DigestKey,
    ) -> io::Result<Self> {
        let is_shared = |name: &str| {
            SHARED_VARIABLES.contains(&name) || SHARED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        };
        let variables: Vec<_> = world.variables.iter().filter(|(name, _)| is_shared(name)).collect();
        let servers = flags.servers.as_ref().map(|path| world.current_dir.join(path));
        let file = named_file(world, flags.config.as_ref());
        let file = file.or_else(|| project_file(world)).or_else(|| user_file(world));
        let confinement = Confinement::own()?;
        let all = format!("{program:?} {variables:?} {file:?} {servers:?} {confinement:?}");
        let mut key = digests.hex(&all);
        key.truncate(KEY_LEN);
        Ok(Self(key))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_a_hub_if_nothing_differs_that_it_uses() {
        let top = tempfile::tempdir().unwrap();
        let project = top.path().join("project");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("octoprox.yaml"), "").unwrap();
        let (digests, others) =
            ["one", "other"].map(|name| DigestKey::open(&top.path().join(name)).unwrap()).into();
        let key_with = |digests: &DigestKey,
                        variables: &[(&str, &str)],
                        current_dir: &std::path::Path,
                        config: Option<&str>| {
            let variables =
                variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let world = Environment { variables, current_dir: current_dir.to_owned() };
            let flags = Flags { config: config.map(Into::into), ..Flags::default() };
            HubKey::new(&ProgramFile::own().unwrap(), &world, &flags, digests).unwrap()
        };
        let key = |variables: &[(&str, &str)], current_dir: &std::path::Path, config: Option<&str>| {
            key_with(&digests, variables, current_dir, config)
        };
        let usual = key(&[("HOME", "/h")], top.path(), None);
        assert_ne!(key_with(&others, &[("HOME", "/h")], top.path(), None), usual, "it cannot be guessed");
        for (variables, folder, config, is_same) in [
            (vec![("HOME", "/h")], top.path(), None, true),
            (vec![("HOME", "/h"), ("EDITOR", "vi")], top.path(), None, true),
            (vec![("HOME", "/h")], std::path::Path::new("/"), None, true),
            (vec![("HOME", "/i")], top.path(), None, false),
            (vec![("HOME", "/h"), ("OCTOPROX_SECRET", "0123456789abcdef")], top.path(), None, false),
            (vec![("HOME", "/h"), ("TOOL_GATEWAY_SECRET", "0123456789abcdef")], top.path(), None, false),
            (vec![("HOME", "/h"), ("OTEL_EXPORTER_OTLP_HEADERS", "key=1")], top.path(), None, false),
            (vec![("HOME", "/h")], project.as_path(), None, false),
            (vec![("HOME", "/h")], top.path(), Some("other.yaml"), false),
        ] {
            assert_eq!(
                key(&variables, folder, config) == usual,
                is_same,
                "{variables:?} {folder:?} {config:?}"
            );
        }
    }
}
