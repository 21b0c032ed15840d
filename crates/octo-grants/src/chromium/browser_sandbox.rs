//! Bubblewrap around the browser: it sees programs, fonts and its own directory, and is not root, so that Chromium's
//! own sandbox works within.

use super::browser_dir::BrowserDir;
use crate::exec::read_only_machine;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

/// Parts of the system that it needs, if they exist.
const VISIBLE_PATHS: [&str; 15] = [
    "/usr",
    "/opt",
    "/etc/alternatives",
    "/etc/chromium",
    "/etc/chromium.d",
    "/etc/fonts",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/ssl",
    "/var/cache/fontconfig",
];

const SYSTEM_DIRS: [&str; 5] = ["/bin", "/sbin", "/lib", "/lib32", "/lib64"];

pub(super) fn bubblewrap_args(program: &Path, folder: &BrowserDir, own_network: bool) -> Vec<OsString> {
    let mut args = namespace_args();
    if own_network {
        args.extend(["--unshare-net", "--info-fd", "5"].map(OsString::from));
    }
    let mut bind = |how: &str, path: &OsStr| args.extend([how.into(), path.to_owned(), path.to_owned()]);
    // A browser unpacked elsewhere has its own directory.
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    for path in [program, &real].into_iter().filter_map(Path::parent) {
        if !path.starts_with("/usr")
            && !path.starts_with("/opt")
            && !SYSTEM_DIRS.iter().any(|known| path == Path::new(known))
        {
            bind("--ro-bind", path.as_os_str());
        }
    }
    bind("--bind", folder.path.as_os_str());
    args.push("--".into());
    args
}

/// Arguments that do not depend on the browser.
fn namespace_args() -> Vec<OsString> {
    let mut args: Vec<OsString> = [
        "--unshare-user",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
    ]
    .map(OsString::from)
    .into();
    args.extend(read_only_machine());
    for path in VISIBLE_PATHS {
        args.extend(["--ro-bind-try", path, path].map(OsString::from));
    }
    for path in SYSTEM_DIRS {
        match std::fs::read_link(path) {
            Ok(target) => args.extend(["--symlink".into(), target.into_os_string(), path.into()]),
            Err(_) => args.extend(["--ro-bind-try", path, path].map(OsString::from)),
        }
    }
    args
}

/// Probes it once: also whether a process within can create namespaces, which Chromium's sandbox needs.
pub(super) fn is_usable(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.args(namespace_args()).args(["--", "/usr/bin/unshare", "--user", "/bin/true"]);
    command.env_clear().current_dir("/").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
