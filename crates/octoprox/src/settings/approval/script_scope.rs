//! Scripts of a project: files beneath it that its servers start. An approval covers their content as well.

use crate::settings::Server;
use crate::settings::approval::settings_choice::is_inside_any;
use crate::settings::approval::trust_store::{TrustRecord, TrustStore};
use octo_model::{ToolError, sha256_hex};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Far above the size of a program.
const MAX_SCRIPT_BYTES: u64 = 256 << 20;
/// Signs around a path in a command line or in a variable such as `NODE_OPTIONS`.
const SEPARATORS: [char; 19] =
    [' ', '\t', '\n', '\r', '=', ',', ':', ';', '|', '&', '<', '>', '(', ')', '{', '}', '"', '\'', '`'];
/// What an interpreter runs in a directory.
const ENTRY_POINTS: [&str; 4] = ["__main__.py", "__init__.py", "index.js", "package.json"];
/// Databases change with each use. The first file of a command line is a program, whatever its name.
const DATA_ENDINGS: [&str; 4] = ["db", "sqlite", "sqlite3", "duckdb"];
/// Programs that complete the name of a module, and what they append.
const NODE_PROGRAMS: [&str; 6] = ["bun", "deno", "node", "nodejs", "ts-node", "tsx"];
const NODE_ENDINGS: [&str; 5] = ["", ".js", ".cjs", ".mjs", ".ts"];
const NO_ENDINGS: [&str; 1] = [""];
/// Programs that run what a file of their directory says.
const BUILD_PROGRAMS: [(&str, &[&str]); 7] = [
    ("bun", &["package.json"]),
    ("gmake", &["GNUmakefile", "makefile", "Makefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("make", &["GNUmakefile", "makefile", "Makefile"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
];

/// Directories whose files a person approves, because the project, or tools, could have written them.
#[derive(Debug, Clone)]
pub struct ScriptScope {
    /// Canonical.
    folders: Vec<PathBuf>,
    /// Directories that a relative path may start from.
    bases: Vec<PathBuf>,
    trust: TrustStore,
}

impl ScriptScope {
    /// The directories of the settings files, of the workspace, and those that tools can write to or ever could.
    /// `tree` are the settings with their paths resolved.
    pub fn new<'a>(tree: &Value, files: impl Iterator<Item = &'a Path>, trust: &TrustStore) -> Self {
        let mut bases: Vec<PathBuf> = files.filter_map(Path::parent).map(Path::to_owned).collect();
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        bases.extend(tree.get("workspace").and_then(path));
        let mut folders = bases.clone();
        let roots = tree.get("roots").and_then(Value::as_object);
        let roots = roots.into_iter().flat_map(|roots| roots.values());
        folders.extend(roots.filter_map(|root| root.get("path").or(Some(root)).and_then(path)));
        for server in entries(tree, "servers") {
            folders.extend(server.get("cwd").and_then(path));
            let written = server.get("sandbox").and_then(|sandbox| sandbox.get("write")?.as_array());
            folders.extend(written.into_iter().flatten().filter_map(path));
        }
        folders.extend(trust.writable_roots().map(Path::to_owned));
        let mut folders: Vec<PathBuf> =
            folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        folders.sort();
        folders.dedup();
        Self { folders, bases, trust: trust.clone() }
    }

    /// Records of all scripts of these settings, for an approval.
    pub fn records(&self, tree: &Value) -> Vec<TrustRecord> {
        let scripts = entries(tree, "servers").flat_map(|server| {
            let strings = |value: Option<&Value>| -> Vec<String> {
                let list = value.into_iter().flat_map(|value| match value {
                    Value::Array(items) => items.iter().collect::<Vec<_>>(),
                    Value::Object(members) => members.values().collect(),
                    other => vec![other],
                });
                list.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            let cwd = server.get("cwd").and_then(Value::as_str).map(PathBuf::from);
            let line = [strings(server.get("command")), strings(server.get("args"))].concat();
            self.scripts(&line, &strings(server.get("env")), cwd.as_deref())
        });
        let scripts: BTreeSet<PathBuf> = scripts.collect();
        let record = |path: PathBuf| {
            let sha256 = sha256_hex(&read_script(&path).ok()?);
            Some(TrustRecord { named: path.clone(), path, sha256 })
        };
        scripts.into_iter().filter_map(record).collect()
    }

    /// Refuses a server with a script that was not approved with its present content.
    pub fn check(&self, name: &str, server: &Server) -> Result<(), ToolError> {
        let line: Vec<String> = server.command.iter().chain(&server.args).cloned().collect();
        let env: Vec<String> = server.env.values().map(|value| value.expose().to_owned()).collect();
        for script in self.scripts(&line, &env, server.cwd.as_deref()) {
            let content = read_script(&script).map_err(|error| {
                ToolError::denied(format!("The script {} of the server {name}: {error}.", script.display()))
            })?;
            if !self.trust.is_approved(&script, &content) {
                let said = format!(
                    "The script {} of the server {name} is not approved as it is now, so the server does not start.",
                    script.display()
                );
                return Err(ToolError::denied(said).hint("Review it, then run `octoprox trust`."));
            }
        }
        Ok(())
    }

    /// Files beneath the directories that this command line and these variables name. Canonical.
    fn scripts(&self, line: &[String], env: &[String], cwd: Option<&Path>) -> BTreeSet<PathBuf> {
        let bases: Vec<&Path> = cwd.into_iter().chain(self.bases.iter().map(PathBuf::as_path)).collect();
        let mut found = BTreeSet::new();
        let is_node = line.iter().any(|text| NODE_PROGRAMS.contains(&program_name(text)));
        let endings: &[&str] = if is_node { &NODE_ENDINGS } else { &NO_ENDINGS };
        let mut is_module = false;
        for text in line {
            let mut named = self.files(text, endings, &bases);
            let mut module = std::mem::take(&mut is_module).then_some(text.as_str());
            if let Some(attached) = module_option(text).filter(|_| module.is_none()) {
                is_module = attached.is_empty();
                module = Some(attached).filter(|attached| !attached.is_empty());
            }
            if let Some(module) = module {
                let module = module.replace('.', "/");
                named.extend(self.files(&module, &["", ".py"], &bases));
            }
            let is_data = |path: &PathBuf| {
                path.extension().is_some_and(|ending| DATA_ENDINGS.iter().any(|data| ending == *data))
            };
            if !found.is_empty() {
                named.retain(|path| !is_data(path));
            }
            found.extend(named);
        }
        for text in env {
            // Options of Node.js name modules.
            let endings: &[&str] = if text.starts_with('-') { &NODE_ENDINGS } else { endings };
            found.extend(self.files(text, endings, &bases));
        }
        found.extend(self.build_files(line, cwd, &bases));
        found
    }

    /// Files that say what programs such as `make` and `npm` run, of their directory and of those that the line names.
    fn build_files(&self, line: &[String], cwd: Option<&Path>, bases: &[&Path]) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for (_, names) in BUILD_PROGRAMS
            .iter()
            .filter(|(program, _)| line.iter().any(|text| program_name(text) == *program))
        {
            for name in names.iter().copied() {
                if let Some(cwd) = cwd {
                    // A reference to the workspace is no path.
                    let own = [cwd];
                    let from = if cwd.is_absolute() { own.as_slice() } else { bases };
                    found.extend(self.files(name, &NO_ENDINGS, from));
                }
                for text in line {
                    found.extend(self.files(&format!("{text}/{name}"), &NO_ENDINGS, bases));
                }
            }
        }
        found
    }

    /// Files that a word names, or a part of it, with one of these endings appended.
    fn files(&self, text: &str, endings: &[&str], bases: &[&Path]) -> Vec<PathBuf> {
        let words = std::iter::once(text).chain(text.split(SEPARATORS)).filter(|word| !word.is_empty());
        let words = words.flat_map(|word| endings.iter().map(move |ending| format!("{word}{ending}")));
        let paths =
            words.flat_map(|word| bases.iter().map(|base| base.join(&word)).collect::<Vec<PathBuf>>());
        let real = paths.filter_map(|path| path.canonicalize().ok());
        let inside = real.filter(|path| is_inside_any(path, &self.folders));
        inside
            .flat_map(|path| match path.is_dir() {
                // The project itself is no program.
                true if self.folders.contains(&path) => Vec::new(),
                true => {
                    ENTRY_POINTS.iter().filter_map(|entry| path.join(entry).canonicalize().ok()).collect()
                }
                false => vec![path],
            })
            .filter(|path| path.is_file())
            .collect()
    }
}

fn entries<'a>(tree: &'a Value, section: &str) -> impl Iterator<Item = &'a Value> {
    tree.get(section).and_then(Value::as_object).into_iter().flat_map(|entries| entries.values())
}

fn program_name(text: &str) -> &str {
    Path::new(text).file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

/// What follows `-m` in a short option, perhaps combined with others. If nothing does, the next word is the module.
fn module_option(text: &str) -> Option<&str> {
    let (others, module) = text.strip_prefix('-')?.split_once('m')?;
    others.chars().all(|letter| letter.is_ascii_alphabetic()).then_some(module)
}

fn read_script(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(MAX_SCRIPT_BYTES + 1).read_to_end(&mut content)?;
    match content.len() as u64 > MAX_SCRIPT_BYTES {
        true => Err(std::io::Error::other(format!("larger than {} MiB", MAX_SCRIPT_BYTES >> 20))),
        false => Ok(content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_of_the_project_that_a_server_starts() {
        let top = tempfile::tempdir().unwrap();
        let here = top.path().canonicalize().unwrap().join("project");
        std::fs::create_dir_all(here.join("app/sub")).unwrap();
        for name in [
            "run.sh",
            "server.py",
            "hook.cjs",
            "main.js",
            "notes.db",
            "mod.py",
            "Makefile",
            "package.json",
            "app/__main__.py",
            "app/sub/index.js",
        ] {
            std::fs::write(here.join(name), name).unwrap();
        }
        std::fs::write(top.path().join("outside.py"), "").unwrap();
        let scope = ScriptScope::new(
            &json!({"workspace": here}),
            [here.join("octoprox.yaml").as_path()].into_iter(),
            &TrustStore::default(),
        );
        let whole = here.join("server.py").display().to_string();
        for (server, scripts) in [
            (json!({"command": "./run.sh"}), &["run.sh"][..]),
            (json!({"command": "python3", "args": ["server.py", "--db", "notes.db"]}), &["server.py"]),
            (json!({"command": "python3", "args": ["notes.db"]}), &["notes.db"]),
            (json!({"command": "python3", "args": [whole]}), &["server.py"]),
            (json!({"command": "python3", "args": ["-m", "mod"]}), &["mod.py"]),
            (json!({"command": "python3", "args": ["-m", "app"]}), &["app/__main__.py"]),
            (json!({"command": "python3", "args": ["-mmod"]}), &["mod.py"]),
            (json!({"command": "python3", "args": ["-um", "mod"]}), &["mod.py"]),
            (json!({"command": "node", "args": ["main"]}), &["main.js"]),
            (json!({"command": "node", "args": ["-r", "./hook", "main.js"]}), &["hook.cjs", "main.js"]),
            (json!({"command": "make", "args": ["serve"], "cwd": here}), &["Makefile"]),
            (json!({"command": "npm", "args": ["start"], "cwd": here}), &["package.json"]),
            (json!({"command": "npm", "args": ["run", "x"], "cwd": here}), &["package.json"]),
            (json!({"command": "npm", "args": ["--prefix", ".", "start"]}), &["package.json"]),
            (json!({"command": "npm", "args": ["start"]}), &[]),
            (json!({"command": "npx", "args": ["x"], "env": {"NODE_OPTIONS": "-r ./hook"}}), &["hook.cjs"]),
            (json!({"command": "node", "args": ["app/sub"]}), &["app/sub/index.js"]),
            (json!({"command": "node", "args": ["sub"], "cwd": here.join("app")}), &["app/sub/index.js"]),
            (json!({"command": "sh", "args": ["-c", "cd . && exec ./run.sh"]}), &["run.sh"]),
            (
                json!({"command": "npx", "args": ["-y", "x"], "env": {"NODE_OPTIONS": "--require=./hook.cjs"}}),
                &["hook.cjs"],
            ),
            (json!({"command": "npx", "args": ["-y", "server-filesystem", "."]}), &[]),
            (json!({"command": "python3", "args": ["../outside.py"]}), &[]),
            (json!({"url": "https://x.test/server.py"}), &[]),
        ] {
            let records = scope.records(&json!({"servers": {"x": server.clone()}}));
            let names: Vec<String> = records
                .iter()
                .map(|record| record.path.strip_prefix(&here).unwrap().display().to_string())
                .collect();
            assert_eq!(names, scripts, "{server}");
            let server: Server = serde_json::from_value(server).unwrap();
            assert_eq!(scope.check("x", &server).is_err(), !scripts.is_empty(), "nothing is approved");
        }
    }
}
