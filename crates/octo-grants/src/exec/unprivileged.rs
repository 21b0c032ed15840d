//! A hub that runs as root starts no program as root: permissions of kernel files such as `/proc/sys` depend on the
//! user id alone, whatever namespaces and capabilities a program has.
//!
//! The launcher creates mounts in which root's files belong to an unprivileged user and vice versa, and the program
//! runs as that user. It can do with root's files what a regular user can do with its own, and files that it creates
//! are root's on disk.

use super::sys;
use crate::fs::path_of;
use rustix::fs::{CWD, Gid, Mode, OFlags, ResolveFlags, Uid, fchown, fstat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsmount, fsopen, mount_change, move_mount, open_tree, unmount,
};
use rustix::process::{chdir, fchdir, geteuid, pivot_root};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// User and group id of programs started by root. Not in use on a usual machine.
const UNPRIVILEGED_ID: u32 = 65_533;
/// Error prefix of a launcher that cannot run a program unprivileged.
pub(super) const FAILED_PREFIX: &str =
    "the hub runs as root, and file owners cannot be mapped to another user";
/// The largest user id.
const MAX_USER_ID: u32 = u32::MAX - 1;

/// Programs such as ssh refuse to run as a user without a name.
const ACCOUNT_ENTRIES: [(&str, &str); 2] = [
    ("etc/passwd", "octoprox:x:65533:65533:Programs of octoprox:/nonexistent:/usr/sbin/nologin\n"),
    ("etc/group", "octoprox:x:65533:\n"),
];

/// Kept unchanged, with all their submounts.
const KERNEL_MOUNTS: [&str; 3] = ["proc", "dev", "sys"];

/// Parts of the system, which may be on separate file systems.
const SYSTEM_PATHS: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/etc", "/nix"];

/// Single directories of the system that programs see.
const EXTRA_PATHS: [&str; 3] = ["/run/systemd/resolve", "/tmp", "/var/cache/fontconfig"];

/// Whether this process is root for the kernel; root of a container may be another user there.
pub fn is_root() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let outside = map.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        (fields.next() == Some("0")).then(|| fields.next().map(str::to_owned))?
    });
    geteuid().is_root() && outside.is_none_or(|outside| outside == "0")
}

/// Whether a process of this user belongs to the hub or one of its programs.
pub(super) fn is_own_user(user: u32) -> bool {
    user == rustix::process::getuid().as_raw() || (user == UNPRIVILEGED_ID && is_root())
}

/// Creates mounts for this process in which root's files belong to the unprivileged user. `needed` are the paths that
/// programs see.
pub(super) fn map_file_owners(needed: &[PathBuf]) -> io::Result<()> {
    let owners = create_user_namespace()?;
    sys::unshare_mounts()?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let root = open_tree(CWD, "/", clone)?;
    sys::idmap_mount(root.as_fd(), owners.as_fd())?;
    let mut trees: Vec<(PathBuf, OwnedFd)> = Vec::new();
    for name in KERNEL_MOUNTS {
        let tree = open_tree(CWD, format!("/{name}"), clone | OpenTreeFlags::AT_RECURSIVE);
        trees.push((name.into(), tree?));
    }
    for place in mount_points()? {
        let holds = |path: &PathBuf| path.starts_with(&place);
        let is_needed = needed.iter().any(|path| holds(path) || place.starts_with(path));
        let is_system =
            SYSTEM_PATHS.iter().any(|path| Path::new(path).starts_with(&place) || place.starts_with(path))
                || EXTRA_PATHS.iter().any(|path| Path::new(path).starts_with(&place));
        if !is_needed && !is_system {
            continue;
        }
        let Ok(inside) = place.strip_prefix("/") else { continue };
        // It may be hidden by another mount, or have just been renamed.
        let Ok(source) = open_no_symlinks(inside, CWD, Path::new("/")) else { continue };
        let tree = open_tree(&source, "", clone | OpenTreeFlags::AT_EMPTY_PATH)?;
        match sys::idmap_mount(tree.as_fd(), owners.as_fd()) {
            Err(error) if needed.iter().any(holds) => {
                let place = place.display();
                return Err(io::Error::other(format!(
                    "the owners of files on {place} cannot be mapped: {error}"
                )));
            }
            // Programs have the permissions of other users there.
            Ok(()) | Err(_) => trees.push((inside.to_owned(), tree)),
        }
    }
    // Any directory serves as a temporary mount point; its content is already held.
    move_mount(&root, "", CWD, "/proc", MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    for (inside, tree) in &trees {
        if let Ok(target) = open_no_symlinks(inside, &root, Path::new("")) {
            move_mount(tree, "", &target, "", both)?;
        }
    }
    for (name, entry) in ACCOUNT_ENTRIES {
        let file = with_entry(name, entry)?;
        if let Ok(target) = open_no_symlinks(Path::new(name), &root, Path::new("")) {
            move_mount(&file, "", &target, "", both)?;
        }
    }
    fchdir(&root)?;
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    Ok(chdir("/")?)
}

/// A file of the system with one more entry, in memory.
fn with_entry(name: &str, entry: &str) -> io::Result<OwnedFd> {
    let memory = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&memory)?;
    let mount = fsmount(&memory, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOSUID)?;
    let mut text = fs::read(Path::new("/").join(name)).unwrap_or_default();
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
    text.extend_from_slice(entry.as_bytes());
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    let mut file = fs::File::from(openat(&mount, "accounts", flags, Mode::from_raw_mode(0o644))?);
    file.write_all(&text)?;
    drop(file);
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    Ok(open_tree(&mount, "accounts", clone)?)
}

/// Opens a path without following links.
fn open_no_symlinks(inside: &Path, root: impl AsFd, above: &Path) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(root, above.join(inside), OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), how)
}

/// The same directory in the new mounts.
pub(super) fn reopen_mapped(held: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let path = path_of(held).map_err(|error| io::Error::other(error.text()))?;
    let found = open_no_symlinks(&path, CWD, Path::new("/"))?;
    let (was, is) = (fstat(held)?, fstat(&found)?);
    if (was.st_dev, was.st_ino) != (is.st_dev, is.st_ino) {
        return Err(io::Error::other("a directory was replaced"));
    }
    Ok(found)
}

/// Lets the program reopen its own streams by name (`/dev/stderr`).
pub(super) fn give_streams(streams: &[OwnedFd]) -> io::Result<()> {
    for stream in streams {
        let kind = rustix::fs::FileType::from_raw_mode(fstat(stream)?.st_mode);
        if kind == rustix::fs::FileType::Fifo || rustix::termios::isatty(stream) {
            fchown(stream, Some(Uid::from_raw(UNPRIVILEGED_ID)), Some(Gid::from_raw(UNPRIVILEGED_ID)))?;
        }
    }
    Ok(())
}

/// Makes the calling process unprivileged, without capabilities.
pub(super) fn drop_to_unprivileged() -> io::Result<()> {
    let (user, group) = (Uid::from_raw(UNPRIVILEGED_ID), Gid::from_raw(UNPRIVILEGED_ID));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

/// User namespace in which root and the unprivileged user are swapped.
fn create_user_namespace() -> io::Result<OwnedFd> {
    let (mut said, says) = io::pipe()?;
    let (hears, told) = io::pipe()?;
    let child = sys::fork_user_namespace(says, hears)?;
    let made = (|| {
        said.read_exact(&mut [0])?;
        let map = format!(
            "0 {UNPRIVILEGED_ID} 1\n{UNPRIVILEGED_ID} 0 1\n1 1 {}\n{} {} {}\n",
            UNPRIVILEGED_ID - 1,
            UNPRIVILEGED_ID + 1,
            UNPRIVILEGED_ID + 1,
            MAX_USER_ID - UNPRIVILEGED_ID
        );
        for name in ["uid_map", "gid_map"] {
            fs::OpenOptions::new()
                .write(true)
                .open(format!("/proc/{child}/{name}"))?
                .write_all(map.as_bytes())?;
        }
        Ok(fs::File::open(format!("/proc/{child}/ns/user"))?.into())
    })();
    drop(told);
    sys::kill_and_wait(child);
    made
}

/// Mount points, outermost first, without the root and the kernel's own file systems.
fn mount_points() -> io::Result<Vec<PathBuf>> {
    let mut all: Vec<PathBuf> = Vec::new();
    for line in fs::read("/proc/self/mountinfo")?.split(|byte| *byte == b'\n') {
        let Some(field) = line.split(|byte| *byte == b' ').nth(4) else { continue };
        let place = PathBuf::from(OsString::from_vec(unescape_mount_path(field)));
        let is_kernel = KERNEL_MOUNTS.iter().any(|name| place.starts_with(Path::new("/").join(name)));
        if place != Path::new("/") && !is_kernel && !all.contains(&place) {
            all.push(place);
        }
    }
    Ok(all)
}

/// Blanks and backslashes are written as three octal digits.
fn unescape_mount_path(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal =
            after.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                text.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                text.push(*first);
                rest = after;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn escaped_places_are_read() {
        for (field, place) in
            [("/a", "/a"), ("/a\\040b\\134", "/a b\\"), ("/a\\", "/a\\"), ("/\\09", "/\\09")]
        {
            assert_eq!(super::unescape_mount_path(field.as_bytes()), place.as_bytes());
        }
    }
}
