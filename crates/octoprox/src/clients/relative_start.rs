//! Servers that name files by relative paths, which depend on where they start.

use crate::settings::{Environment, WORKSPACE_VARIABLE, unfit_reason};
use serde_json::{Map, Value};
use std::path::Path;

/// Names the directory in which such a server starts, if its entry names none: the current directory if the files are there,
/// else the workspace of the session. Returns a note about it.
pub fn name_start_dir(server: &mut Map<String, Value>, world: &Environment) -> Option<String> {
    let has_dir = server.get("cwd").is_some_and(|cwd| !cwd.is_null());
    let command = server.get("command").and_then(Value::as_str).filter(|_| !has_dir)?;
    let is_relative = |word: &&str| is_plain(word) && word.contains('/');
    let command = Some(command).filter(is_relative);
    let args = server.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let is_there = |word: &str| world.current_dir.join(word).is_file();
    let files = args.filter(|word| is_dotted(word) || (is_plain(word) && is_there(word)));
    let files: Vec<&str> = command.into_iter().chain(files).collect();
    let first = files.first()?;
    let here = files.iter().any(|word| world.current_dir.join(word).exists());
    let dir = match here && unfit_reason(world, &world.current_dir).is_none() {
        true => world.current_dir.display().to_string(),
        false => format!("${{{WORKSPACE_VARIABLE}}}"),
    };
    let note = format!("starts in {dir}, because it names `{first}`; files there decide what it runs");
    server.insert("cwd".to_owned(), dir.into());
    Some(note)
}

/// Whether it can be a relative path.
fn is_plain(word: &str) -> bool {
    !word.starts_with(['-', '/', '~', '$', '@']) && !word.contains("://")
}

/// Whether it can only be a relative path.
fn is_dotted(word: &str) -> bool {
    let first = Path::new(word).components().next().map(std::path::Component::as_os_str);
    first.is_some_and(|first| first == "." || first == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_server_with_relative_files_gets_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let here = dir.path().canonicalize().unwrap();
        std::fs::write(here.join("server.py"), "").unwrap();
        std::fs::create_dir(here.join("mcp")).unwrap();
        let world = Environment { current_dir: here.clone(), ..Environment::default() };
        let (at, workspace) = (json!(here), json!("${workspace}"));
        for (server, expected) in [
            (json!({"command": "npx", "args": ["-y", "@scope/server", "mcp"]}), None),
            (json!({"command": "python3", "args": ["-m", "server"]}), None),
            (json!({"command": "python3", "args": ["server.py"]}), Some(&at)),
            (json!({"command": "python3", "args": ["other.py"]}), None),
            (json!({"command": "python3", "args": ["./other.py"]}), Some(&workspace)),
            (json!({"command": "./run"}), Some(&workspace)),
            (json!({"command": "bin/run"}), Some(&workspace)),
            (json!({"command": "npx", "args": ["-y", "server", "."]}), Some(&at)),
            (json!({"command": "/bin/run", "args": ["/x.py", "https://x/./y"]}), None),
            (json!({"url": "https://x.test"}), None),
        ] {
            let Value::Object(mut entry) = server.clone() else { continue };
            let note = name_start_dir(&mut entry, &world);
            assert_eq!((entry.get("cwd"), note.is_some()), (expected, expected.is_some()), "{server}");
        }
        let Value::Object(mut named) = json!({"command": "./run", "cwd": "/x"}) else { return };
        assert_eq!((name_start_dir(&mut named, &world), &named["cwd"]), (None, &json!("/x")));
    }
}
