//! Bubblewrap arguments.

use super::launcher_protocol::{BwrapArg, Descriptors};
use super::mount_view::{MountView, PathVisibility};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Home and temporary directory of the program, removed with it.
pub(super) const TMP_DIR: &str = "/tmp";
pub(super) const HOME_DIR: &str = "/tmp/home";

/// Entries of a new `/proc` that affect the whole machine. Their permissions depend on the user id outside all
/// namespaces, whatever capabilities a program has, so each is bind-mounted read-only. Bubblewrap does so only where
/// the directory looks writable.
const READ_ONLY_PROC: [&str; 7] =
    ["/proc/acpi", "/proc/bus", "/proc/fs", "/proc/irq", "/proc/scsi", "/proc/sys", "/proc/sysrq-trigger"];

/// Arguments after `--proc /proc`.
pub(crate) fn read_only_machine() -> impl Iterator<Item = OsString> {
    READ_ONLY_PROC.iter().flat_map(|path| ["--ro-bind-try", path, path]).map(OsString::from)
}

pub(super) struct BwrapRequest<'a> {
    pub view: &'a MountView,
    pub network: bool,
    pub tty: bool,
    pub cwd: &'a Path,
}

/// All arguments except the program and its environment. Anything that a program could replace is mounted by
/// descriptor: bubblewrap compares the mount with it and exits if they differ. The working directory is resolved
/// inside the sandbox.
pub(super) fn bwrap_args(
    want: &BwrapRequest<'_>,
    descriptors: &mut Descriptors,
) -> io::Result<Vec<BwrapArg>> {
    let mut args: Vec<BwrapArg> = Vec::new();
    let mut add = |words: &[&OsStr]| args.extend(words.iter().map(|word| BwrapArg::Text((*word).to_owned())));
    add(&["--unshare-all", "--die-with-parent", "--clearenv", "--cap-drop", "ALL"].map(OsStr::new));
    if want.network {
        add(&["--share-net".as_ref()]);
    }
    if !want.tty {
        add(&["--new-session".as_ref()]);
    }
    let mut special =
        vec![("/dev", "--dev"), ("/proc", "--proc"), (TMP_DIR, "--tmpfs"), (HOME_DIR, "--tmpfs")];
    for (path, seen) in &want.view.table {
        let mut add =
            |words: &[&OsStr]| args.extend(words.iter().map(|word| BwrapArg::Text((*word).to_owned())));
        // In table order; a root at one of these paths takes precedence.
        while let Some((place, option)) =
            special.first().copied().filter(|(place, _)| Path::new(place) <= path.as_path())
        {
            special.remove(0);
            if Path::new(place) != path {
                add(&[option.as_ref(), place.as_ref()]);
            }
        }
        let path = path.as_os_str();
        let (how, held) = match seen {
            PathVisibility::System => {
                add(&["--ro-bind-try".as_ref(), path, path]);
                continue;
            }
            PathVisibility::Link(target) => {
                add(&["--symlink".as_ref(), target.as_os_str(), path]);
                continue;
            }
            PathVisibility::Hidden => {
                add(&["--tmpfs".as_ref(), path]);
                continue;
            }
            PathVisibility::Toolchain(held) | PathVisibility::Read(held) => ("--ro-bind-fd", held),
            PathVisibility::Write(held) => ("--bind-fd", held),
        };
        let slot = descriptors.add(held)?;
        args.extend([
            BwrapArg::Text(how.into()),
            BwrapArg::Descriptor(slot),
            BwrapArg::Text(path.to_owned()),
        ]);
    }
    let mut add = |words: &[&OsStr]| args.extend(words.iter().map(|word| BwrapArg::Text((*word).to_owned())));
    for (place, option) in special {
        add(&[option.as_ref(), place.as_ref()]);
    }
    for word in read_only_machine() {
        add(&[&word]);
    }
    for (link, target) in &want.view.home_links {
        add(&["--symlink".as_ref(), target.as_os_str(), Path::new(HOME_DIR).join(link).as_os_str()]);
    }
    add(&["--remount-ro".as_ref(), "/".as_ref(), "--chdir".as_ref(), want.cwd.as_os_str()]);
    Ok(args)
}

/// Runs the program in a terminal session of its own inside the sandbox, so that typed input reaches it and not
/// bubblewrap.
pub(super) fn with_terminal(argv: Vec<OsString>, setsid: Option<PathBuf>) -> Vec<OsString> {
    match setsid {
        Some(setsid) => [setsid.into_os_string(), "-c".into()].into_iter().chain(argv).collect(),
        None => argv,
    }
}
