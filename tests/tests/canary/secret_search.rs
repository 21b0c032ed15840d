//! Searches output for secrets, plain and in common encodings.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Secrets by kind.
pub type Secrets = BTreeMap<&'static str, String>;

/// All collected output, by location.
#[derive(Default)]
pub struct CollectedOutput(BTreeMap<String, Vec<u8>>);

impl CollectedOutput {
    pub fn add(&mut self, place: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.0.entry(place.into()).or_default().extend(bytes.into());
    }

    /// Adds every file below a directory.
    pub fn add_folder(&mut self, folder: &Path) -> Result<()> {
        for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                self.add_folder(&path)?;
            } else if path.is_file() {
                self.add(path.display().to_string(), std::fs::read(&path)?);
            }
        }
        Ok(())
    }

    /// Bytes in locations whose name ends like this.
    pub fn size(&self, end: &str) -> usize {
        self.0.iter().filter(|(place, _)| place.ends_with(end)).map(|(_, bytes)| bytes.len()).sum()
    }

    /// The same as text, to check that something happened at all.
    pub fn text(&self, end: &str) -> String {
        let places = self.0.iter().filter(|(place, _)| place.ends_with(end));
        places.map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect()
    }

    /// Which secret was found where, and in which encoding.
    pub fn find(&self, secrets: &Secrets) -> Vec<String> {
        let mut found = Vec::new();
        for (name, secret) in secrets {
            for (form, wanted) in encodings(secret.as_bytes()) {
                let holds = |bytes: &[u8]| bytes.windows(wanted.len()).any(|part| part == wanted);
                let places = self.0.iter().filter(|(_, bytes)| holds(bytes));
                found.extend(places.map(|(place, _)| format!("{name} ({form}) in {place}")));
            }
        }
        found
    }
}

/// The secret plain, in hexadecimal, and in base64 at any alignment.
pub fn encodings(secret: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![("as it is", secret.to_vec()), ("hexadecimal", hex.into_bytes())];
    for before in 0..3 {
        // The characters that depend on what stands before or after are left out.
        let whole = base64(&[&vec![0; before], secret].concat());
        let (from, until) = ((before * 8).div_ceil(6), (before + secret.len()) * 8 / 6);
        forms.push(("base64", whole.get(from..until).unwrap_or_default().to_vec()));
    }
    forms
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let groups = bytes.chunks(3).map(|part| {
        let padded = [0, 1, 2].map(|at| u32::from(part.get(at).copied().unwrap_or(0)));
        padded.into_iter().fold(0, |sum, byte| (sum << 8) | byte)
    });
    groups.flat_map(|group| [18, 12, 6, 0].map(|shift| LETTERS[(group >> shift) as usize & 63])).collect()
}
