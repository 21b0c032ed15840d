//! Preview of an unapproved settings file. Nothing is applied.

use crate::packages::ServersLock;
use crate::settings::Environment;
use crate::settings::approval::script_scope::ScriptScope;
use crate::settings::approval::trust_store::{TrustRecord, TrustStore};
use crate::settings::check::settings_problem::{SettingOrigin, SettingsProblem};
use crate::settings::load::settings_file::SettingsFile;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::{interpolation, resolve_paths, servers_file, settings_locations};
use octo_grants::config_dirs::ConfigDirs;
use octo_model::sha256_hex;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// OpenAPI documents can be large.
const MAX_DOCUMENT_BYTES: u64 = 64 << 20;

/// A settings file and the files that belong to it.
pub struct Preview {
    /// Settings as written, without variable interpolation.
    pub tree: Map<String, Value>,
    /// Files covered by an approval; the settings file comes first.
    pub records: Vec<TrustRecord>,
    /// The settings file and the list of servers beside it, as they are.
    pub files: Vec<SettingsFile>,
}

impl Preview {
    /// Reads a settings file, or a server list in the format of another product.
    pub fn read(world: &Environment, path: &Path) -> Result<Self, SettingsProblem> {
        let file = SettingsFile::open(path)?;
        let mut layers = Layers::default();
        let tree = file.tree()?;
        let mut records = vec![file.record()];
        let mut files = vec![file.clone()];
        if tree.contains_key("mcpServers") || tree.contains_key("mcp_servers") {
            servers_file::merge_foreign(&mut layers, &file)?;
        } else {
            layers.merge(tree, &SettingOrigin::File(path.to_owned()));
            if let Some(beside) =
                settings_locations::servers_file(world, Some(path)).filter(|beside| beside.is_file())
            {
                let servers = SettingsFile::open(&beside)?;
                servers_file::merge_own(&mut layers, &servers)?;
                records.push(servers.record());
                files.push(servers);
            }
        }
        let lock = ServersLock::path_beside(path);
        if lock.is_file() {
            records.push(SettingsFile::open_lock(&lock)?.record());
        }
        let tree = layers.tree().as_object().cloned().unwrap_or_default();
        interpolation::interpolate(&mut layers, world);
        resolve_paths::resolve_paths(&mut layers, world);
        records.extend(named_records(&layers));
        let trust = TrustStore::open(world)?;
        let paths = files.iter().flat_map(|file| [file.path.as_path(), &file.canonical]);
        records.extend(ScriptScope::new(&layers.tree(), paths, &trust).records(&layers.tree()));
        Ok(Self { tree, records, files })
    }
}

/// Returns records of the files that define tools and prompts.
fn named_records(layers: &Layers) -> Vec<TrustRecord> {
    let texts = |setting: &str| -> Vec<PathBuf> {
        let list = layers.get(setting).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(PathBuf::from).collect()
    };
    let servers = layers.get("servers").and_then(Value::as_object).into_iter().flatten();
    let documents = servers.filter_map(|(_, server)| server.get("document")?.as_str());
    let documents = documents.filter(|document| !document.contains("://")).map(PathBuf::from).collect();
    let folders = ConfigDirs::new([texts("prompts.folders"), texts("tools.folders")].concat()).read();
    let skills = ConfigDirs::new(texts("skills.folders")).with_all_files().read();
    let documents = ConfigDirs::new(documents).with_max_file_bytes(MAX_DOCUMENT_BYTES).read();
    let record = |path: PathBuf, text: String| {
        Some(TrustRecord {
            path: path.canonicalize().ok()?,
            sha256: sha256_hex(text.as_bytes()),
            named: path,
        })
    };
    let leaves = folders.into_iter().chain(skills).chain(documents);
    leaves.filter_map(|leaf| record(leaf.path, leaf.content.ok()?)).collect()
}
