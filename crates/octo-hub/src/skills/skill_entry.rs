//! The entry of a skill: its frontmatter, and a manifest of its files with digests.

use aws_lc_rs::digest::{SHA256, digest};
use octo_model::{Json, JsonObject};
use std::collections::HashSet;

/// The file that every skill has.
const MAIN_FILE: &str = "/SKILL.md";
/// Limits of the extension.
pub const MAX_FILES: usize = 512;
pub const MAX_BYTES: u64 = 16 << 20;
const MAX_NAME_CHARS: usize = 64;

/// An entry of `skills/list`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillEntry {
    /// URI of its `SKILL.md`.
    pub uri: String,
    pub name: String,
    pub description: String,
    /// `None` if its files are generated.
    pub files: Option<Vec<SkillFile>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillFile {
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    pub size: u64,
}

impl SkillFile {
    pub fn new(uri: String, content: &[u8]) -> Self {
        Self { uri, digest: content_digest(content), size: content.len() as u64 }
    }

    fn parse(value: &Json) -> Option<Self> {
        let members = value.members().ok()?;
        let digest = members.text("digest").filter(|digest| is_digest(digest))?;
        Some(Self { uri: members.text("uri")?, digest, size: members.get("size")?.to().ok()? })
    }
}

fn content_digest(content: &[u8]) -> String {
    format!("sha256:{}", octo_model::hex(digest(&SHA256, content).as_ref()))
}

fn is_digest(text: &str) -> bool {
    let is_hex = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    text.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 64 && hex.bytes().all(is_hex))
}

impl SkillEntry {
    /// Parses an entry. Returns why clients would not load it.
    pub fn parse(members: &JsonObject) -> Result<Self, &'static str> {
        let uri = members.text("uri").ok_or("no URI")?;
        let root = uri.strip_suffix(MAIN_FILE).ok_or("its URI does not end with /SKILL.md")?;
        let frontmatter = members.object("frontmatter");
        let name = frontmatter.text("name").filter(|name| is_name(name)).ok_or("invalid name")?;
        if root.rsplit('/').next() != Some(name.as_str()) {
            return Err("its URI does not contain its name");
        }
        let description = frontmatter.text("description").ok_or("no description")?;
        let resources = members.get("resources").ok_or("no list of files")?;
        let files = if resources.to_text().as_deref() == Some("dynamic") {
            None
        } else {
            let files = resources.elements_up_to(MAX_FILES + 1).map_err(|_| "no list of files")?;
            if files.len() > MAX_FILES {
                return Err("too many files");
            }
            let files: Option<Vec<SkillFile>> = files.iter().map(SkillFile::parse).collect();
            Some(files.ok_or("a file without URI, digest or size")?)
        };
        let entry = Self { uri, name, description, files };
        entry.check_files()?;
        Ok(entry)
    }

    fn check_files(&self) -> Result<(), &'static str> {
        let Some(files) = &self.files else { return Ok(()) };
        let mut seen = HashSet::new();
        if !files.iter().all(|file| seen.insert(file.uri.as_str())) {
            return Err("a file is listed twice");
        }
        if !files.iter().all(|file| self.contains(&file.uri)) {
            return Err("a file is outside of its folder");
        }
        if !seen.contains(self.uri.as_str()) {
            return Err("SKILL.md is not listed");
        }
        let size = files.iter().fold(0_u64, |size, file| size.saturating_add(file.size));
        if size > MAX_BYTES { Err("its files are too large") } else { Ok(()) }
    }

    /// The URI of its folder.
    pub fn root(&self) -> &str {
        self.uri.strip_suffix(MAIN_FILE).unwrap_or(&self.uri)
    }

    /// Whether a URI is in its folder.
    pub fn contains(&self, uri: &str) -> bool {
        let rest = uri.strip_prefix(self.root()).and_then(|rest| rest.strip_prefix('/'));
        rest.is_some_and(|path| {
            !path.is_empty() && !path.split('/').any(|part| matches!(part, "" | "." | ".."))
        })
    }

    /// Whether the content of a file in its folder is what the entry says.
    pub fn is_genuine(&self, uri: &str, content: &[u8]) -> bool {
        let Some(files) = &self.files else { return true };
        let listed = files.iter().find(|file| file.uri == uri);
        listed.is_some_and(|file| file.size == content.len() as u64 && file.digest == content_digest(content))
    }
}

/// A name by the rules of Agent Skills: lower-case letters, digits and single hyphens.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=MAX_NAME_CHARS).contains(&name.len())
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry() -> Value {
        json!({
            "uri": "skill://acme/refunds/SKILL.md",
            "frontmatter": {"name": "refunds", "description": "Refunds.", "license": "MIT"},
            "resources": [
                {"uri": "skill://acme/refunds/SKILL.md", "digest": content_digest(b"main"), "size": 4},
                {"uri": "skill://acme/refunds/a/b.md", "digest": content_digest(b"b"), "size": 1},
            ],
        })
    }

    fn parse(value: &Value) -> Result<SkillEntry, &'static str> {
        SkillEntry::parse(&Json::from(value.clone()).members().unwrap())
    }

    #[test]
    fn an_entry_is_taken_if_clients_would_load_it() {
        let known = parse(&entry()).unwrap();
        assert_eq!((known.name.as_str(), known.root()), ("refunds", "skill://acme/refunds"));
        assert!(known.is_genuine("skill://acme/refunds/a/b.md", b"b"));
        for (uri, content) in [
            ("skill://acme/refunds/a/b.md", "c"),
            ("skill://acme/refunds/a/b.md", "bb"),
            ("skill://acme/refunds/new.md", "b"),
        ] {
            assert!(!known.is_genuine(uri, content.as_bytes()), "{uri}");
        }
        let generated = json!({"uri": "x://refunds/SKILL.md", "frontmatter": {"name": "refunds", "description": ""},
            "resources": "dynamic"});
        assert!(parse(&generated).unwrap().is_genuine("x://refunds/y", b"anything"));
    }

    #[test]
    fn an_entry_that_clients_refuse_is_left_out() {
        let digest = content_digest(b"main");
        let main = json!({"uri": "skill://acme/refunds/SKILL.md", "digest": digest, "size": 4});
        let with = |resources: Value| {
            let mut entry = entry();
            entry["resources"] = resources;
            entry
        };
        let outside = |uri: &str| with(json!([main, {"uri": uri, "digest": digest, "size": 1}]));
        for (value, why) in [
            (json!({"uri": "skill://refunds/skill.md"}), "does not end"),
            (
                json!({"uri": "skill://other/SKILL.md", "frontmatter": {"name": "refunds", "description": ""}}),
                "its name",
            ),
            (
                json!({"uri": "skill://Re/SKILL.md", "frontmatter": {"name": "Re", "description": ""}}),
                "invalid name",
            ),
            (with(json!(null)), "list of"),
            (with(json!("static")), "list of"),
            (with(json!([])), "SKILL.md is not listed"),
            (with(json!([main, main])), "twice"),
            (
                with(json!([{"uri": "skill://acme/refunds/SKILL.md", "digest": "sha256:AB", "size": 4}])),
                "digest",
            ),
            (with(json!([{"uri": "skill://acme/refunds/SKILL.md", "digest": digest, "size": -1}])), "size"),
            (
                with(json!([{"uri": "skill://acme/refunds/SKILL.md", "digest": digest, "size": 17 << 20}])),
                "too large",
            ),
            (outside("skill://acme/refunds2/x"), "outside"),
            (outside("skill://acme/refunds/../x"), "outside"),
            (outside("skill://acme/refunds/"), "outside"),
        ] {
            let refused = parse(&value).unwrap_err();
            assert!(refused.contains(why), "{refused}: {value}");
        }
        let many: Vec<Value> = (0..513).map(|_| main.clone()).collect();
        assert!(parse(&with(json!(many))).is_err());
    }
}
