//! MCP bundles: archives with a server and everything that it needs.

use super::bundle_manifest::{BundleManifest, invalid};
use super::package_id::{PackageId, PackageKind, is_digest};
use super::package_manager::PackageError;
use super::regular_file::open_regular;
use super::servers_lock::LockedPackage;
use aws_lc_rs::digest::{Context, SHA256};
use octo_model::hex;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use zip::ZipArchive;

/// Member of a lock.
const PUBLISHER: &str = "publisher";
const MANIFEST_FILE: &str = "manifest.json";
/// Part of a file that is hashed at once.
const READ_BYTES: usize = 1 << 16;
const MAX_MANIFEST_BYTES: u64 = 1 << 20;
/// Far above the largest bundles with their dependencies.
const MAX_BUNDLE_BYTES: u64 = 1 << 30;
const MAX_UNPACKED_BYTES: u64 = 4 << 30;
const MAX_FILES: usize = 200_000;
/// Directory of the files of a bundle in its installation.
const FILES_DIR: &str = "bundle";
/// Script that starts the server.
const START_SCRIPT: &str = "start";

/// A bundle with its lock.
pub struct Bundle {
    pub id: PackageId,
    pub manifest: BundleManifest,
    pub locked: LockedPackage,
}

impl Bundle {
    /// Reads a bundle without unpacking it. The lock names it relative to the directory of the lock file, if it is there.
    pub fn open(path: &Path, folder: &Path) -> Result<Self, PackageError> {
        let cannot_read = |error| {
            PackageError::new(format!("{}: cannot read file: {error}.", path.display()), "Check its path.")
        };
        let path = fs::canonicalize(path).map_err(cannot_read)?;
        let mut file = open_regular(&path, MAX_BUNDLE_BYTES).map_err(cannot_read)?;
        let sha256 = file_hash(&mut file).map_err(cannot_read)?;
        let manifest = read_manifest(&mut open_archive(file)?)?;
        let id = package_id(&manifest)?;
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let text = path.strip_prefix(&folder).unwrap_or(&path);
        let text = text.to_str().ok_or_else(|| cannot_read(io::Error::other("its path is not UTF-8")))?;
        let lock = json!({"file": text, "sha256": sha256, PUBLISHER: manifest.author.name});
        let locked = LockedPackage::new(&id, sha256, lock);
        Ok(Self { id, manifest, locked })
    }
}

/// Publisher that a bundle named when it was added.
pub fn bundle_publisher(locked: &LockedPackage) -> Option<&str> {
    locked.lock.get(PUBLISHER)?.as_str()
}

/// Name and version of the manifest.
fn package_id(manifest: &BundleManifest) -> Result<PackageId, PackageError> {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() || "._".contains(sign) { sign } else { '-' };
    let name: String = manifest.name.chars().map(plain).collect();
    let id = PackageId {
        kind: PackageKind::Mcpb,
        name: name.trim_start_matches(|sign: char| !sign.is_ascii_alphanumeric()).to_lowercase(),
        version: manifest.version.clone(),
    };
    if PackageId::parse(&id.to_string()).as_ref() != Ok(&id) {
        return Err(invalid("its name or version is not usable"));
    }
    Ok(id)
}

/// Path and hash in a lock.
fn source(locked: &LockedPackage) -> Option<(PathBuf, &str)> {
    let text = |key: &str| locked.lock.get(key).and_then(Value::as_str);
    let (file, sha256) = (PathBuf::from(text("file")?), text("sha256")?);
    is_digest(sha256).then_some((file, sha256))
}

pub fn check_lock(id: &PackageId, locked: &LockedPackage) -> Result<(), PackageError> {
    match source(locked) {
        Some((_, sha256)) if locked.integrity == sha256 => Ok(()),
        _ => Err(super::not_locked(id)),
    }
}

/// Unpacks the bundle, if it is the locked one.
pub fn install(
    id: &PackageId,
    locked: &LockedPackage,
    lock_folder: &Path,
    folder: &Path,
) -> Result<(), PackageError> {
    let (path, sha256) = source(locked).ok_or_else(|| super::not_locked(id))?;
    let path = lock_folder.join(path);
    let file = open_regular(&path, MAX_BUNDLE_BYTES).map_err(|error| {
        let hint = "Copy the bundle there, or add it from its new place with --update.";
        PackageError::new(format!("{}: {error}.", path.display()), hint)
    })?;
    // What is unpacked is what was hashed, also if somebody writes to the file meanwhile.
    let mut copy = tempfile(folder)?;
    io::copy(&mut file.take(MAX_BUNDLE_BYTES), &mut copy)?;
    if file_hash(&mut copy)? != sha256 {
        let message = format!("{} is not the bundle that was added.", path.display());
        return Err(PackageError::new(message, "Review it, and add it with --update."));
    }
    let mut archive = open_archive(copy)?;
    let manifest = read_manifest(&mut archive)?;
    if package_id(&manifest)? != *id {
        return Err(super::not_locked(id));
    }
    let files = folder.join(FILES_DIR);
    fs::create_dir(&files)?;
    unpack(&mut archive, &files, manifest.program())?;
    let script = manifest.start_script(&files)?;
    write_file(&folder.join(START_SCRIPT), &mut script.as_bytes(), true, u64::MAX)?;
    Ok(())
}

pub fn programs(folder: &Path) -> Vec<(String, PathBuf)> {
    vec![(START_SCRIPT.to_owned(), folder.join(START_SCRIPT))]
}

/// A file without a name.
fn tempfile(folder: &Path) -> io::Result<File> {
    let path = folder.join("copy");
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(path)?;
    Ok(file)
}

fn file_hash(file: &mut File) -> io::Result<String> {
    io::Seek::rewind(file)?;
    let mut hash = Context::new(&SHA256);
    let mut part = vec![0; READ_BYTES];
    loop {
        match file.read(&mut part)? {
            0 => break,
            count => hash.update(part.get(..count).unwrap_or_default()),
        }
    }
    io::Seek::rewind(file)?;
    Ok(format!("sha256:{}", hex(hash.finish().as_ref())))
}

fn open_archive(file: File) -> Result<ZipArchive<File>, PackageError> {
    let archive = ZipArchive::new(file).map_err(|error| invalid(&error.to_string()))?;
    if archive.len() > MAX_FILES {
        return Err(invalid(&format!("it has more than {MAX_FILES} files")));
    }
    Ok(archive)
}

fn read_manifest(archive: &mut ZipArchive<File>) -> Result<BundleManifest, PackageError> {
    let file = archive.by_name(MANIFEST_FILE).map_err(|_| invalid("it has no manifest.json"))?;
    let mut text = String::new();
    file.take(MAX_MANIFEST_BYTES).read_to_string(&mut text).map_err(|error| invalid(&error.to_string()))?;
    BundleManifest::parse(&text)
}

/// Writes all files below a directory. Links are left out: they could lead out of it.
fn unpack(archive: &mut ZipArchive<File>, folder: &Path, program: Option<&str>) -> Result<(), PackageError> {
    let mut room = MAX_UNPACKED_BYTES;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| invalid(&error.to_string()))?;
        let name = entry.enclosed_name().ok_or_else(|| invalid("a file has a path that leads out of it"))?;
        if entry.is_symlink() {
            continue;
        }
        let path = folder.join(&name);
        if entry.is_dir() {
            fs::create_dir_all(&path)?;
            continue;
        }
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let is_program = program.is_some_and(|program| Path::new(program) == name)
            || entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        room = room.saturating_sub(write_file(&path, &mut entry, is_program, room)?);
        if room == 0 {
            return Err(invalid("it is too large"));
        }
    }
    Ok(())
}

/// Writes a new file and returns its size.
fn write_file(
    path: &Path,
    content: &mut dyn Read,
    is_program: bool,
    max_bytes: u64,
) -> Result<u64, PackageError> {
    let mode = if is_program { 0o700 } else { 0o600 };
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = opened.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => invalid("it contains a file twice"),
        io::ErrorKind::InvalidFilename => invalid("it contains a name that is too long"),
        _ => error.into(),
    })?;
    // Errors of the archive are not those of the system.
    io::copy(&mut content.take(max_bytes), &mut file).map_err(|error| match error.raw_os_error() {
        Some(_) => error.into(),
        None => invalid(&error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    const MANIFEST: &str = r#"{"manifest_version": "0.3", "name": "My Tides", "version": "1.0.0", "author": {"name": "A"},
        "server": {"type": "binary", "entry_point": "bin/tides", "mcp_config": {"command": "${__dirname}/bin/tides"}}}"#;

    fn bundle(folder: &Path, fill: impl FnOnce(&mut ZipWriter<File>)) -> PathBuf {
        let path = folder.join("a.mcpb");
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        zip.start_file(MANIFEST_FILE, SimpleFileOptions::default()).unwrap();
        zip.write_all(MANIFEST.as_bytes()).unwrap();
        fill(&mut zip);
        zip.finish().unwrap();
        path
    }

    fn add_file(zip: &mut ZipWriter<File>, name: &str, text: &str) {
        zip.start_file(name, SimpleFileOptions::default().unix_permissions(0o644)).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }

    fn install_into(folder: &Path, bundle: &Bundle) -> Result<(), PackageError> {
        let target = folder.join("target");
        let _ = fs::remove_dir_all(&target);
        fs::create_dir(&target).unwrap();
        install(&bundle.id, &bundle.locked, folder, &target)
    }

    #[test]
    fn a_bundle_is_unpacked_and_started() {
        let folder = tempfile::tempdir().unwrap();
        let path = bundle(folder.path(), |zip| {
            add_file(zip, "bin/tides", "#!/bin/sh\necho \"$0 $1\"\n");
            zip.add_symlink("bin/link", "/etc/passwd", SimpleFileOptions::default()).unwrap();
        });
        let bundle = Bundle::open(&path, folder.path()).unwrap();
        assert_eq!(bundle.id.to_string(), "mcpb:my-tides@1.0.0");
        assert!(check_lock(&bundle.id, &bundle.locked).is_ok());
        assert_eq!(bundle.locked.lock["file"], "a.mcpb");
        install_into(folder.path(), &bundle).unwrap();
        let target = folder.path().join("target");
        assert!(!target.join("bundle/bin/link").exists() && !target.join("copy").exists());
        let output = std::process::Command::new(&programs(&target)[0].1).arg("x").output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, format!("{} x\n", target.join("bundle/bin/tides").display()));
        fs::write(&path, "other").unwrap();
        let error = install_into(folder.path(), &bundle).unwrap_err();
        assert!(error.message.contains("is not the bundle that was added"), "{error}");
        fs::remove_file(&path).unwrap();
        let error = install_into(folder.path(), &bundle).unwrap_err();
        assert!(error.hint.contains("Copy the bundle there"), "{error}");
    }

    #[test]
    fn hostile_archives_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../../outside", "/outside", "a/../../../outside"] {
            let path = bundle(folder.path(), |zip| add_file(zip, name, "x"));
            let opened = Bundle::open(&path, folder.path());
            let refused = opened.and_then(|bundle| install_into(folder.path(), &bundle)).is_err();
            let outside = [folder.path().join("outside"), PathBuf::from("/outside")];
            assert!(outside.iter().all(|path| !path.exists()), "{name}");
            assert!(refused || folder.path().join("target/bundle/outside").exists(), "{name}");
        }
        let path = folder.path().join("a.mcpb");
        for bytes in [&b""[..], b"PK\x05\x06", b"not an archive"] {
            fs::write(&path, bytes).unwrap();
            assert!(Bundle::open(&path, folder.path()).is_err());
        }
    }
}
