//! Python packages: resolved to versions and hashes of wheels, and installed from them.

use super::installed_package::InstallOptions;
use super::package_id::{PackageId, PackageKind, is_digest};
use super::package_manager::{PackageError, UV};
use super::servers_lock::LockedPackage;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Wheels only: building a package would run its code.
const WHEELS_ONLY: [&str; 2] = ["--only-binary", ":all:"];

pub fn newest_version(name: &str, scratch: &Path) -> Result<String, PackageError> {
    let lines = compile(name, &[&WHEELS_ONLY[..], &["--no-deps"]].concat(), scratch)?;
    let pinned = lines.iter().find_map(|line| Some(line.split_once("==")?.1.split(' ').next()?.to_owned()));
    pinned.ok_or_else(|| PackageError::new(format!("PyPI has no package {name}."), "Check the name."))
}

/// Resolves all dependencies for this machine and its Python. Of the package itself only the file with the known hash is
/// accepted, if there is one: files can be added to a published version.
pub fn resolve(
    id: &PackageId,
    options: InstallOptions,
    known_hash: Option<&str>,
    scratch: &Path,
) -> Result<LockedPackage, PackageError> {
    let mut lines = compile(&format!("{}=={}", id.name, id.version), wheels(options), scratch)?;
    let mut own = hashes(&lines, &id.name);
    if let Some(known) = known_hash.filter(|known| own.iter().any(|hash| hash == known)) {
        lines = with_only_hash(&lines, &id.name, known);
        own = vec![known.to_owned()];
    }
    if own.is_empty() {
        return Err(PackageError::new(format!("uv did not resolve {id}."), "Check the name."));
    }
    let lines = lines.into_iter().map(Value::from).collect();
    Ok(LockedPackage::new(id, own.join(" "), Value::Array(lines)))
}

/// Refuses a lock with anything but versions and hashes: a lock file can come from somebody else.
pub fn check_lock(id: &PackageId, locked: &LockedPackage) -> Result<(), PackageError> {
    let lines: Vec<String> =
        locked.lock.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let own = lines.iter().find_map(|line| {
        let (name, version) = line.trim_end_matches(['\\', ' ']).split_once("==")?;
        (normalized(name) == normalized(&id.name)).then_some(version)
    });
    let mut names: Vec<String> =
        lines.iter().filter_map(|line| line.split_once("==")).map(|(name, _)| normalized(name)).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    let is_locked = lines.iter().all(|line| is_lock_line(line))
        && names.len() == count
        && own == Some(id.version.as_str());
    if is_locked && hashes(&lines, &id.name).join(" ") == locked.integrity {
        return Ok(());
    }
    Err(super::not_locked(id))
}

/// `name==1.0 \` or `    --hash=sha256:HEX \`; no options, URLs, paths or markers.
fn is_lock_line(line: &str) -> bool {
    let line = line.trim_end_matches(['\\', ' ']);
    match line.trim_start().strip_prefix("--hash=") {
        Some(hash) => is_digest(hash),
        None => line.split_once("==").is_some_and(|(name, version)| {
            let plain = |text: &str, signs: &str| {
                !text.is_empty()
                    && text.chars().all(|sign| sign.is_ascii_alphanumeric() || signs.contains(sign))
            };
            plain(name, "-_.[],") && !name.starts_with('-') && plain(version, "-.+!_")
        }),
    }
}

fn compile(requirement: &str, options: &[&str], scratch: &Path) -> Result<Vec<String>, PackageError> {
    shadow_settings(scratch)?;
    // `--system`: not the interpreter of a virtual environment in some directory above.
    let args = ["pip", "compile", "--system", "--quiet", "--generate-hashes", "--no-header", "--no-annotate"];
    let args = [&args[..], options, &["-"]].concat();
    let text = UV.run(scratch, &args, Some(&format!("{requirement}\n")))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// uv reads the nearest settings of the directories above; those of the user apply in any case.
fn shadow_settings(folder: &Path) -> std::io::Result<()> {
    std::fs::write(folder.join("uv.toml"), "")
}

/// The lines with exactly one hash of a package.
fn with_only_hash(lines: &[String], name: &str, hash: &str) -> Vec<String> {
    let mut kept = Vec::new();
    let mut is_own = false;
    for line in lines {
        let is_hash = line.trim_start().starts_with("--hash=");
        if !is_hash {
            is_own = is_package(line, name);
        }
        if !(is_own && is_hash) {
            kept.push(line.clone());
        }
        if is_own && !is_hash {
            kept.push(format!("    --hash={hash}"));
        }
    }
    kept
}

fn is_package(line: &str, name: &str) -> bool {
    line.split_once("==").is_some_and(|(package, _)| normalized(package) == normalized(name))
}

/// Hashes of one package: `name==1.0 \` and lines with `--hash=sha256:…`.
fn hashes(lines: &[String], name: &str) -> Vec<String> {
    let own = lines.iter().skip_while(|line| !is_package(line, name)).skip(1);
    let own = own.map_while(|line| line.trim().strip_prefix("--hash="));
    own.map(|hash| hash.trim_end_matches(['\\', ' ']).to_owned()).collect()
}

/// Names are equal regardless of case and of `-`, `_` and `.`.
fn normalized(name: &str) -> String {
    let name = name.split('[').next().unwrap_or(name).trim();
    name.to_lowercase().replace(['_', '.'], "-")
}

/// Installs exactly what is locked; uv checks the hash of every wheel.
pub fn install(lock: &Value, folder: &Path, options: InstallOptions) -> Result<(), PackageError> {
    let lines = lock.as_array().into_iter().flatten().filter_map(Value::as_str);
    let requirements = lines.collect::<Vec<_>>().join("\n");
    std::fs::write(folder.join("requirements.txt"), requirements + "\n")?;
    shadow_settings(folder)?;
    // A range of versions: otherwise a file of some directory above could name the interpreter.
    UV.run(folder, &["venv", "--quiet", "--no-project", "--python", ">=3.8", "venv"], None)?;
    let args = ["pip", "install", "--quiet", "--python", "venv/bin/python", "--require-hashes", "--no-deps"];
    UV.run(folder, &[&args[..], wheels(options), &["-r", "requirements.txt"]].concat(), None).map(drop)
}

const fn wheels(options: InstallOptions) -> &'static [&'static str] {
    if options.scripts { &[] } else { &WHEELS_ONLY }
}

/// Programs of the installed package, by name: those that its metadata lists.
pub fn programs(id: &PackageId, folder: &Path) -> Result<Vec<(String, PathBuf)>, PackageError> {
    debug_assert_eq!(id.kind, PackageKind::Pypi, "npm packages have another layout");
    let programs = folder.join("venv/bin");
    let library = std::fs::read_dir(folder.join("venv/lib"))?.flatten().map(|entry| entry.path());
    let packages =
        library.flat_map(|python| std::fs::read_dir(python.join("site-packages")).into_iter().flatten());
    let is_own = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let name = name.strip_suffix(".dist-info").and_then(|name| name.rsplit_once('-'));
        name.is_some_and(|(name, _)| normalized(name) == normalized(&id.name))
    };
    let own = packages.flatten().map(|entry| entry.path()).find(is_own);
    let scripts = own.map(|own| std::fs::read_to_string(own.join("entry_points.txt")).unwrap_or_default());
    let names = script_names(&scripts.unwrap_or_default());
    Ok(names.into_iter().map(|name| (name.clone(), programs.join(name))).collect())
}

/// Names in the section `[console_scripts]`.
fn script_names(entry_points: &str) -> Vec<String> {
    let section = entry_points.lines().map(str::trim).skip_while(|line| *line != "[console_scripts]").skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim().to_owned());
    names.filter(|name| !name.contains('/') && !name.starts_with('.')).collect()
}

/// Directories of the interpreter, which a sandboxed program must be able to read. Its prefix may be a home directory, so
/// only these parts of it are named.
pub fn interpreter_folders(folder: &Path) -> Vec<PathBuf> {
    let real = folder.join("venv/bin/python").canonicalize();
    let Some(prefix) = real.as_deref().ok().and_then(|real| real.parent()?.parent()) else {
        return Vec::new();
    };
    ["bin", "lib", "lib64"]
        .map(|name| prefix.join(name))
        .into_iter()
        .filter(|folder| folder.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_uv() {
        let lines = [
            "click==8.1 \\",
            "    --hash=sha256:aa",
            "My.Server==1.0 \\",
            "    --hash=sha256:bb \\",
            "    --hash=sha256:cc",
        ]
        .map(str::to_owned);
        assert_eq!(hashes(&lines, "my-server"), ["sha256:bb", "sha256:cc"]);
        assert_eq!(hashes(&lines, "other"), Vec::<String>::new());
        let single = with_only_hash(&lines, "my-server", "sha256:cc");
        assert_eq!(
            (hashes(&single, "my-server"), hashes(&single, "click")),
            (vec!["sha256:cc".into()], vec!["sha256:aa".into()])
        );
        for (line, fine) in [
            ("a-b_c.d[x]==1.0rc1 \\", true),
            ("--index-url https://x.test/", false),
            ("a @ https://x.test/a.whl", false),
            ("-r other.txt", false),
            ("-e==1", false),
            ("", false),
        ] {
            assert_eq!(is_lock_line(line), fine, "{line}");
        }
        let scripts = "[other]\nx = y\n\n[console_scripts]\nmy-server = a:main\n../evil = b\n\n[z]\nq = r\n";
        assert_eq!(script_names(scripts), ["my-server"]);
    }
}
