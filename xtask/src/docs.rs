//! Writes docs/reference from what the binary says of itself, or checks that it still says so.

mod binary;
mod cli;
mod diff;
mod markdown;
mod schema;
mod settings;
mod tools;

use anyhow::{Context, Result, bail};
use binary::Binary;
use std::path::Path;

pub enum Mode {
    Write,
    Check,
}

/// One file of docs/reference.
struct Page {
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

fn pages(binary: &Binary) -> Result<Vec<Page>> {
    let listed = binary.json(&["tools", "--json", "--all"])?;
    let schema = binary.json(&["config", "schema"])?;
    Ok(vec![
        Page { name: "tools.md", text: tools::page(&listed)? },
        Page { name: "settings.md", text: settings::page(&schema) },
        Page { name: "cli.md", text: cli::page(&|words| binary.help(words))? },
        Page { name: "workflow.schema.json", text: binary.text(&["flow", "schema"])? },
    ])
}

fn write(folder: &Path, pages: &[Page]) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    for page in pages {
        let path = folder.join(page.name);
        std::fs::write(&path, &page.text).with_context(|| path.display().to_string())?;
        println!("wrote docs/reference/{}", page.name);
    }
    Ok(())
}

fn check(folder: &Path, pages: &[Page]) -> Result<()> {
    let mut drifted = Vec::new();
    for page in pages {
        let stands = std::fs::read_to_string(folder.join(page.name)).unwrap_or_default();
        if stands != page.text {
            drifted.push(format!("docs/reference/{}\n{}", page.name, diff::lines(&stands, &page.text)));
        }
    }
    if drifted.is_empty() {
        return Ok(());
    }
    bail!("the reference is not what the binary says; run `cargo xtask docs`\n\n{}", drifted.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_pages_pass_and_others_fail() {
        let folder = std::env::temp_dir().join(format!("xtask-docs-{}", std::process::id()));
        let mut pages = [Page { name: "tools.md", text: "one\ntwo\n".to_owned() }];
        write(&folder, &pages).unwrap();
        check(&folder, &pages).unwrap();
        pages[0].text = "one\nthree\n".to_owned();
        let error = check(&folder, &pages).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains("cargo xtask docs") && error.contains("-two\n+three"), "{error}");
    }
}
