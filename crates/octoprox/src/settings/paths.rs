//! Paths in the settings: those of a file are relative to it, all others to the current folder.

use super::World;
use super::find;
use super::layers::Layers;
use super::problem::Origin;
use super::workspace_choice::WorkspaceChoice;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Lists of folders.
const FOLDERS: [&str; 2] = ["prompts.folders", "tools.folders"];
const PATHS: [&str; 5] =
    ["workspace", "state_dir", "telemetry.log_file", "logins.store", "logins.secret_file"];

/// Makes every path whole and fills in those that everybody has. Gives why tools work where they work.
pub fn settle(layers: &mut Layers, world: &World) -> WorkspaceChoice {
    let documents = each(layers, "servers", "document").filter(|setting| is_file(layers, setting));
    let named = each(layers, "servers", "cwd").chain(each(layers, "roots", "path"));
    let named: Vec<String> = named.chain(documents).collect();
    for setting in PATHS.iter().map(|path| (*path).to_owned()).chain(named) {
        let Some(text) = layers.get(&setting).and_then(Value::as_str) else {
            continue;
        };
        let origin = layers.origin(&setting);
        let whole = whole(Path::new(text), &origin, world);
        layers.set(&setting, Value::from(whole.to_string_lossy()), &origin);
    }
    for setting in FOLDERS {
        let Some(folders) = layers.get(setting).and_then(Value::as_array).cloned() else { continue };
        let origin = layers.origin(setting);
        let folders = folders.iter().map(|folder| match folder.as_str() {
            Some(text) => Value::from(whole(Path::new(text), &origin, world).to_string_lossy()),
            None => folder.clone(),
        });
        layers.set(setting, folders.collect(), &origin);
    }
    if let Some(state) = find::state_dir(world).filter(|_| layers.get("state_dir").is_none()) {
        layers.set("state_dir", Value::from(state.to_string_lossy()), &Origin::Default);
    }
    if layers.get("workspace").is_some() {
        return WorkspaceChoice::Setting(layers.origin("workspace"));
    }
    let choice = WorkspaceChoice::implicit(world);
    if choice == WorkspaceChoice::StartedIn {
        layers.set("workspace", Value::from(world.folder.to_string_lossy()), &Origin::Default);
    }
    choice
}

/// Whether a text is no address.
fn is_file(layers: &Layers, setting: &str) -> bool {
    layers.get(setting).and_then(Value::as_str).is_some_and(|text| !text.contains("://"))
}

/// One field of every entry of a section.
fn each<'a>(layers: &'a Layers, section: &'a str, field: &'a str) -> impl Iterator<Item = String> + 'a {
    let entries = layers.get(section).and_then(Value::as_object).into_iter().flatten();
    entries.map(move |(name, _)| format!("{section}.{name}.{field}"))
}

fn whole(path: &Path, origin: &Origin, world: &World) -> PathBuf {
    if let Some((home, rest)) = world.variable("HOME").zip(path.strip_prefix("~").ok()) {
        return Path::new(home).join(rest);
    }
    let base = match origin {
        Origin::File(file) => file.parent().unwrap_or(&world.folder),
        _ => &world.folder,
    };
    base.join(path).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_whole() {
        let world = World { variables: [("HOME".to_owned(), "/h".to_owned())].into(), folder: "/now".into() };
        let file = Origin::File("/etc/octo/octoprox.yaml".into());
        for (path, origin, whole) in [
            ("/x", &file, "/x"),
            ("x", &file, "/etc/octo/x"),
            (".", &file, "/etc/octo"),
            ("x", &Origin::Default, "/now/x"),
            ("~/x", &file, "/h/x"),
        ] {
            assert_eq!(super::whole(Path::new(path), origin, &world), Path::new(whole), "{path}");
        }
        let mut layers = Layers::default();
        assert_eq!(settle(&mut layers, &world), WorkspaceChoice::StartedIn);
        assert_eq!(
            layers.tree(),
            serde_json::json!({"workspace": "/now", "state_dir": "/h/.local/state/octoprox"})
        );
    }
}
