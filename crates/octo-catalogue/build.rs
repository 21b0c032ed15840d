//! Embeds the files of the directory `catalogue`.

#![expect(clippy::disallowed_methods, reason = "reads the files that are embedded")]

use std::env::var;
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = Path::new(&var("CARGO_MANIFEST_DIR")?).join("../../catalogue");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files: Vec<_> = std::fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
    files.retain(|file| file.path().extension().is_some_and(|ending| ending == "yaml"));
    files.sort_by_key(std::fs::DirEntry::file_name);
    let mut table = String::from("&[\n");
    for file in files {
        let path = file.path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or("a name that is not UTF-8")?;
        table.push_str(&format!("    ({name:?}, include_str!({:?})),\n", path.canonicalize()?));
    }
    table.push_str("]\n");
    Ok(std::fs::write(Path::new(&var("OUT_DIR")?).join("entries.rs"), table)?)
}
