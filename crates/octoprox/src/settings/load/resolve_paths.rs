//! Path resolution: paths in a file are relative to the file, all others to the current directory.

use crate::settings::Environment;
use crate::settings::check::settings_problem::SettingOrigin;
use crate::settings::load::interpolation::WORKSPACE_VARIABLE;
use crate::settings::load::settings_layers::Layers;
use crate::settings::load::settings_locations;
use crate::settings::workspace_choice::WorkspaceChoice;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Settings that are lists of directories.
const DIR_LIST_SETTINGS: [&str; 3] = ["prompts.folders", "tools.folders", "skills.folders"];
const PATH_SETTINGS: [&str; 6] =
    ["workspace", "state_dir", "telemetry.log_file", "logins.store", "logins.secret_file", "fleet.ca_file"];

/// Makes all paths absolute and fills in the default ones. Returns how the workspace was chosen.
pub fn resolve_paths(layers: &mut Layers, world: &Environment) -> WorkspaceChoice {
    let documents = entry_fields(layers, "servers", "document").filter(|setting| is_file(layers, setting));
    let named: Vec<String> = entry_fields(layers, "roots", "path").chain(documents).collect();
    for setting in PATH_SETTINGS.iter().map(|path| (*path).to_owned()).chain(named) {
        let Some(text) = layers.get(&setting).and_then(Value::as_str) else {
            continue;
        };
        let origin = layers.origin(&setting);
        let whole = absolute(Path::new(text), &origin, world);
        layers.set(&setting, Value::from(whole.to_string_lossy()), &origin);
    }
    for setting in DIR_LIST_SETTINGS {
        let Some(folders) = layers.get(setting).and_then(Value::as_array).cloned() else { continue };
        let origin = layers.origin(setting);
        let folders = folders.iter().map(|folder| match folder.as_str() {
            Some(text) => Value::from(absolute(Path::new(text), &origin, world).to_string_lossy()),
            None => folder.clone(),
        });
        layers.set(setting, folders.collect(), &origin);
    }
    if let Some(state) = settings_locations::state_dir(world).filter(|_| layers.get("state_dir").is_none()) {
        layers.set("state_dir", Value::from(state.to_string_lossy()), &SettingOrigin::Default);
    }
    let choice = choose_workspace(layers, world);
    resolve_server_dirs(layers, world);
    choice
}

fn choose_workspace(layers: &mut Layers, world: &Environment) -> WorkspaceChoice {
    if layers.get("workspace").is_some() {
        return WorkspaceChoice::Setting(layers.origin("workspace"));
    }
    let choice = WorkspaceChoice::implicit(world);
    if choice == WorkspaceChoice::CurrentDir {
        layers.set("workspace", Value::from(world.current_dir.to_string_lossy()), &SettingOrigin::Default);
    }
    choice
}

/// Resolves the directories of servers, with the workspace in place of its variable. Without a workspace, such a server
/// starts in its own directory.
fn resolve_server_dirs(layers: &mut Layers, world: &Environment) {
    let reference = format!("${{{WORKSPACE_VARIABLE}}}");
    let workspace = layers.get("workspace").and_then(Value::as_str).map(str::to_owned);
    let settings: Vec<String> = entry_fields(layers, "servers", "cwd").collect();
    for setting in settings {
        let Some(text) = layers.get(&setting).and_then(Value::as_str) else { continue };
        let text = match (text.contains(&reference), &workspace) {
            (false, _) => Some(text.to_owned()),
            (true, workspace) => workspace.as_ref().map(|workspace| text.replace(&reference, workspace)),
        };
        let Some(text) = text else {
            layers.remove(&setting);
            continue;
        };
        let origin = layers.origin(&setting);
        let whole = absolute(Path::new(&text), &origin, world);
        layers.set(&setting, Value::from(whole.to_string_lossy()), &origin);
    }
}

/// Returns whether a setting is a path, not a URL.
fn is_file(layers: &Layers, setting: &str) -> bool {
    layers.get(setting).and_then(Value::as_str).is_some_and(|text| !text.contains("://"))
}

/// Returns the path of one field in every entry of a section.
fn entry_fields<'a>(
    layers: &'a Layers,
    section: &'a str,
    field: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let entries = layers.get(section).and_then(Value::as_object).into_iter().flatten();
    entries.map(move |(name, _)| format!("{section}.{name}.{field}"))
}

fn absolute(path: &Path, origin: &SettingOrigin, world: &Environment) -> PathBuf {
    if let Some((home, rest)) = world.variable("HOME").zip(path.strip_prefix("~").ok()) {
        return Path::new(home).join(rest);
    }
    let base = match origin {
        SettingOrigin::File(file) => file.parent().unwrap_or(&world.current_dir),
        _ => &world.current_dir,
    };
    base.join(path).components().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_directory_of_a_server_follows_the_workspace() {
        let world = |here: &str| Environment {
            variables: [("HOME".to_owned(), "/h".to_owned())].into(),
            current_dir: here.into(),
        };
        let file = SettingOrigin::File("/etc/octo/octoprox.yaml".into());
        for (cwd, here, expected) in [
            ("${workspace}", "/now", json!("/now")),
            ("${workspace}/sub", "/now", json!("/now/sub")),
            ("${workspace}", "/", json!(null)),
            ("sub", "/", json!("/etc/octo/sub")),
            ("~/x", "/now", json!("/h/x")),
        ] {
            let mut layers = Layers::default();
            let servers = json!({"servers": {"a": {"command": "x", "cwd": cwd}}});
            layers.merge(servers.as_object().cloned().unwrap(), &file);
            resolve_paths(&mut layers, &world(here));
            assert_eq!(layers.tree()["servers"]["a"]["cwd"], expected, "{cwd} {here}");
        }
    }

    #[test]
    fn paths_are_made_whole() {
        let world = Environment {
            variables: [("HOME".to_owned(), "/h".to_owned())].into(),
            current_dir: "/now".into(),
        };
        let file = SettingOrigin::File("/etc/octo/octoprox.yaml".into());
        for (path, origin, whole) in [
            ("/x", &file, "/x"),
            ("x", &file, "/etc/octo/x"),
            (".", &file, "/etc/octo"),
            ("x", &SettingOrigin::Default, "/now/x"),
            ("~/x", &file, "/h/x"),
        ] {
            assert_eq!(super::absolute(Path::new(path), origin, &world), Path::new(whole), "{path}");
        }
        let mut layers = Layers::default();
        assert_eq!(resolve_paths(&mut layers, &world), WorkspaceChoice::CurrentDir);
        assert_eq!(
            layers.tree(),
            serde_json::json!({"workspace": "/now", "state_dir": "/h/.local/state/octoprox"})
        );
    }
}
