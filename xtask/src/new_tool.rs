//! Creates a tool: its file from a template, and its two lines in the toolbox.

use crate::rust_scan;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::Command;

const TEMPLATE: &str = include_str!("new_tool/template.txt");

pub fn run(root: &Path, toolbox: &str, name: &str) -> Result<()> {
    ensure!(is_name(name), "invalid tool name '{name}': use lower-case letters, digits and _");
    let package = format!("tools-{toolbox}");
    let folder = root.join("crates").join(&package).join("src");
    let registry = folder.join("lib.rs");
    let file = folder.join(format!("{name}.rs"));
    let lib = std::fs::read_to_string(&registry).with_context(|| format!("crate {package} not found"))?;
    if file.exists() {
        bail!("{} already exists", file.display());
    }
    let prefix = tool_name_prefix(&folder)?.unwrap_or_else(|| toolbox.to_owned());
    let registered = register(&lib, name)?;
    std::fs::write(&file, fill_template(&prefix, name))?;
    std::fs::write(&registry, registered)?;
    format(&[&file, &registry])?;
    println!("wrote {}; clippy fails until its todo!s are filled in", file.display());
    Ok(())
}

fn is_name(name: &str) -> bool {
    let letters = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
    name.starts_with(|first: char| first.is_ascii_lowercase()) && name.chars().all(letters)
}

/// Name prefix of this toolbox: that of the first tool found.
fn tool_name_prefix(folder: &Path) -> Result<Option<String>> {
    let mut files: Vec<_> = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let texts = files.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    Ok(texts.filter_map(|text| prefix_in(&text)).next())
}

fn prefix_in(text: &str) -> Option<String> {
    let name = text.split_once("const NAME: &'static str = \"")?.1;
    Some(name.split_once('_')?.0.to_owned())
}

fn fill_template(prefix: &str, name: &str) -> String {
    TEMPLATE
        .replace("{name}", &format!("{prefix}_{name}"))
        .replace("{Type}", &camel(name))
        .replace("{Title}", &sentence(name))
}

fn camel(name: &str) -> String {
    name.split('_').map(capital).collect()
}

fn sentence(name: &str) -> String {
    capital(&name.replace('_', " "))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}

/// Adds the `mod` line and the `.with(…)`.
fn register(lib: &str, name: &str) -> Result<String> {
    let with = format!(".with({name}::{})", camel(name));
    let at = last_registration(lib).context("no Toolbox::new(…) in lib.rs to add the tool to")?;
    let (head, tail) = lib.split_at(at);
    Ok(insert_mod_line(&format!("{head}{with}{tail}"), name))
}

/// Position after the last `.with(…)`, or after `Toolbox::new(…)` if there is none yet.
fn last_registration(lib: &str) -> Option<usize> {
    let code = rust_scan::blank_non_code(lib);
    let new = code.find("Toolbox::new(")?;
    let last = code.rfind(".with(").filter(|with| *with > new).unwrap_or(new);
    rust_scan::closing_bracket(&code, last + code.get(last..)?.find('(')?)
}

/// Inserts `mod name;` before the first module that sorts after it, or after the last one, or where the code begins.
fn insert_mod_line(lib: &str, name: &str) -> String {
    let line = format!("mod {name};");
    let mut lines: Vec<&str> = lib.lines().collect();
    let later = lines.iter().position(|other| other.starts_with("mod ") && **other > *line);
    let last = lines.iter().rposition(|other| other.starts_with("mod ")).map(|last| last + 1);
    match later.or(last) {
        Some(place) => lines.insert(place, &line),
        None => {
            let code = lines.iter().position(|other| !other.starts_with("//!") && !other.is_empty());
            let place = code.unwrap_or(lines.len());
            lines.splice(place..place, [line.as_str(), ""]);
        }
    }
    lines.join("\n") + "\n"
}

fn format(files: &[&Path]) -> Result<()> {
    let status = Command::new("rustfmt").args(["--edition", "2024"]).args(files).status()?;
    ensure!(status.success(), "rustfmt failed on the generated files");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (name, good) in
            [("now", true), ("add_2", true), ("Now", false), ("2nd", false), ("a-b", false), ("", false)]
        {
            assert_eq!(is_name(name), good, "{name}");
        }
        assert_eq!(
            (camel("list_zones").as_str(), sentence("list_zones").as_str()),
            ("ListZones", "List zones")
        );
    }

    #[test]
    fn the_file() {
        let text = fill_template("time", "list_zones");
        assert!(text.contains("const NAME: &'static str = \"time_list_zones\";"), "{text}");
        assert!(text.contains("impl Tool for ListZones"), "{text}");
        assert!(!text.contains("{name}") && !text.contains("{Type}") && !text.contains("{Title}"), "{text}");
        assert_eq!(prefix_in(&text).as_deref(), Some("time"));
    }

    #[test]
    fn the_two_lines() {
        for (lib, expected) in [
            (
                "//! Time.\n\nmod add;\nmod now;\n\npub fn toolbox() -> Toolbox {\n    Toolbox::new(\"time\", \"…\").with(now::Now)\n}\n",
                "//! Time.\n\nmod add;\nmod diff;\nmod now;\n\npub fn toolbox() -> Toolbox {\n    Toolbox::new(\"time\", \"…\").with(now::Now).with(diff::Diff)\n}\n",
            ),
            (
                "//! Time.\n\npub fn toolbox() -> Toolbox {\n    Toolbox::new(\"time\", \"a) b\")\n}\n",
                "//! Time.\n\nmod diff;\n\npub fn toolbox() -> Toolbox {\n    Toolbox::new(\"time\", \"a) b\").with(diff::Diff)\n}\n",
            ),
        ] {
            assert_eq!(register(lib, "diff").unwrap(), expected);
        }
        assert!(register("//! Nothing.\n", "diff").is_err());
    }
}
