//! Bubblewrap's arguments, and whether it works on this machine.

use super::view::{Seen, View};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program's home and folder for temporary files, gone with it.
pub(super) const TMP: &str = "/tmp";
pub(super) const HOME: &str = "/tmp/home";

/// What in a new `/proc` leads to the whole machine. Its files go by the user's number outside of all namespaces, whatever
/// capabilities a program has, so each is covered by itself, read-only. Bubblewrap does so only where the folder looks writable.
const MACHINE: [&str; 7] =
    ["/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"];

/// The arguments after `--proc /proc`.
pub(crate) fn read_only_machine() -> impl Iterator<Item = OsString> {
    MACHINE.iter().flat_map(|path| ["--ro-bind-try", path, path]).map(OsString::from)
}

pub(super) struct Want<'a> {
    pub view: &'a View,
    pub network: bool,
    pub tty: bool,
    pub cwd: &'a Path,
}

/// All but the program and its variables.
pub(super) fn args(want: &Want<'_>) -> Vec<OsString> {
    let mut args: Vec<OsString> =
        ["--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"].map(Into::into).into();
    if want.network {
        args.push("--share-net".into());
    }
    if !want.tty {
        args.push("--new-session".into());
    }
    let mut add = |words: &[&OsStr]| args.extend(words.iter().map(|word| (*word).to_owned()));
    let mut special = vec![("/dev", "--dev"), ("/proc", "--proc"), (TMP, "--tmpfs"), (HOME, "--tmpfs")];
    for (path, seen) in &want.view.table {
        // In the order of the table; a root that is one of these takes its place.
        while let Some((place, option)) =
            special.first().copied().filter(|(place, _)| Path::new(place) <= path.as_path())
        {
            special.remove(0);
            if Path::new(place) != path {
                add(&[option.as_ref(), place.as_ref()]);
            }
        }
        let path = path.as_os_str();
        match seen {
            Seen::System | Seen::Read => add(&["--ro-bind-try".as_ref(), path, path]),
            Seen::Write => add(&["--bind".as_ref(), path, path]),
            Seen::Link(target) => add(&["--symlink".as_ref(), target.as_os_str(), path]),
            Seen::Hidden => add(&["--tmpfs".as_ref(), path]),
        }
    }
    for (place, option) in special {
        add(&[option.as_ref(), place.as_ref()]);
    }
    args.extend(read_only_machine());
    let mut add = |words: &[&OsStr]| args.extend(words.iter().map(|word| (*word).to_owned()));
    for (link, target) in &want.view.home_links {
        add(&["--symlink".as_ref(), target.as_os_str(), Path::new(HOME).join(link).as_os_str()]);
    }
    add(&["--remount-ro".as_ref(), "/".as_ref(), "--chdir".as_ref(), want.cwd.as_os_str()]);
    args
}

/// Tries it once, as programs are started later.
pub(super) fn works(program: &Path, view: &View) -> bool {
    let args = args(&Want { view, network: false, tty: false, cwd: Path::new("/") });
    let mut command = Command::new(program);
    command.args(args).args(["--", "/bin/true"]).env_clear().current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A terminal becomes a program's own through a program inside, so that what is typed reaches it and not bubblewrap.
pub(super) fn with_terminal(argv: Vec<OsString>, setsid: Option<PathBuf>) -> Vec<OsString> {
    match setsid {
        Some(setsid) => [setsid.into_os_string(), "-c".into()].into_iter().chain(argv).collect(),
        None => argv,
    }
}
