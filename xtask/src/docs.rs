//! Generates docs/reference from the binary, or checks that it is up to date.

mod cli_reference;
mod line_diff;
mod markdown_tables;
mod octoprox_binary;
mod schema_fields;
mod settings_reference;
mod tools_reference;

use anyhow::{Context, Result, bail};
use octoprox_binary::Binary;
use std::path::Path;

pub enum Mode {
    Write,
    Check,
}

/// A file of docs/reference.
struct ReferencePage {
    name: &'static str,
    text: String,
}

pub fn run(root: &Path, mode: Mode) -> Result<()> {
    let pages = pages(&Binary::find(root)?)?;
    let folder = root.join("docs/reference");
    match mode {
        Mode::Write => write(&folder, &pages),
        Mode::Check => check(&folder, &pages),
    }
}

fn pages(binary: &Binary) -> Result<Vec<ReferencePage>> {
    let listed = binary.json(&["tools", "--json", "--all"])?;
    let schema = binary.json(&["config", "schema"])?;
    Ok(vec![
        ReferencePage { name: "tools.md", text: tools_reference::page(&listed)? },
        ReferencePage { name: "settings.md", text: settings_reference::page(&schema) },
        ReferencePage { name: "cli.md", text: cli_reference::page(&|words| binary.help(words))? },
        ReferencePage { name: "workflow.schema.json", text: binary.text(&["workflow", "schema"])? },
    ])
}

fn write(folder: &Path, pages: &[ReferencePage]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for page in pages {
        let path = folder.join(page.name);
        std::fs::write(&path, &page.text).with_context(|| path.display().to_string())?;
        println!("wrote docs/reference/{}", page.name);
    }
    Ok(())
}

fn check(folder: &Path, pages: &[ReferencePage]) -> Result<()> {
    let mut drifted = Vec::new();
    for page in pages {
        let stands = std::fs::read_to_string(folder.join(page.name)).unwrap_or_default();
        if stands != page.text {
            drifted.push(format!(
                "docs/reference/{}\n{}",
                page.name,
                line_diff::line_diff(&stands, &page.text)
            ));
        }
    }
    if drifted.is_empty() {
        return Ok(());
    }
    bail!("docs/reference is out of date; run `cargo xtask docs`\n\n{}", drifted.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_pages_pass_and_others_fail() {
        let folder = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        let mut pages = [ReferencePage { name: "tools.md", text: "one\ntwo\n".to_owned() }];
        write(&folder, &pages).unwrap();
        check(&folder, &pages).unwrap();
        pages[0].text = "one\nthree\n".to_owned();
        let error = check(&folder, &pages).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("cargo xtask docs") && error.contains("-two\n+three"), "{error}");
    }
}
