//! Skills of the hub itself: their entries, files and prompts.

use crate::skills::skill_entry::{MAX_BYTES, MAX_FILES, SkillEntry, SkillFile, is_name};
use crate::skills::skill_prompt::{self, skill_prompts};
use octo_model::{Effect, EffectOrigin, Json, JsonObject, Method, Operation, ToolError};
use octo_toolkit::Definition;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A skill and the texts of its files, by URI.
pub struct NativeSkill {
    entry: SkillEntry,
    definition: Definition,
    files: BTreeMap<String, String>,
}

impl NativeSkill {
    /// Makes a skill in the folder `skill://PATH`. Its files have paths relative to the folder. Returns why it is no skill.
    pub fn new(path: &str, files: Vec<(String, String)>) -> Result<Self, String> {
        let uri = |file: &str| format!("skill://{path}/{file}");
        let main = files.iter().find(|(file, _)| file == "SKILL.md").ok_or("SKILL.md is missing")?;
        let frontmatter = parse_frontmatter(&main.1)?;
        let text = |name: &str| frontmatter.get(name).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").filter(|name| is_name(name));
        let name =
            name.ok_or("`name` must have lower-case letters, digits and single hyphens, at most 64")?;
        if path.rsplit('/').next() != Some(name.as_str()) {
            return Err(format!("`name` is `{name}`, but the folder has another name"));
        }
        let description = text("description").filter(|text| !text.trim().is_empty());
        let description = description.ok_or("`description` is missing")?;
        if files.len() > MAX_FILES || files.iter().map(|(_, text)| text.len() as u64).sum::<u64>() > MAX_BYTES
        {
            return Err(format!("it has more than {MAX_FILES} files or {} MiB", MAX_BYTES >> 20));
        }
        let listed = files.iter().map(|(file, text)| SkillFile::new(uri(file), text.as_bytes())).collect();
        let entry = SkillEntry { uri: uri("SKILL.md"), name, description, files: Some(listed) };
        let definition = definition(&entry, frontmatter);
        let files = files.into_iter().map(|(file, text)| (uri(&file), text)).collect();
        Ok(Self { entry, definition, files })
    }

    pub fn uri(&self) -> &str {
        &self.entry.uri
    }
}

fn definition(entry: &SkillEntry, frontmatter: Map<String, Value>) -> Definition {
    let file = |file: &SkillFile| {
        JsonObject::new()
            .with("uri", file.uri.as_str())
            .with("digest", file.digest.as_str())
            .with("size", Json::of(&file.size))
            .to_json()
    };
    let files: Vec<Json> = entry.files.iter().flatten().map(file).collect();
    let members = JsonObject::new()
        .with("uri", entry.uri.as_str())
        .with("frontmatter", Json::from(Value::Object(frontmatter)))
        .with("resources", Json::array(&files));
    let (effect, effect_origin) = (Effect::reads(), EffectOrigin::Native);
    Definition { key: entry.uri.clone(), members, effect, effect_origin }
}

/// The YAML between the two `---` lines at the start.
fn parse_frontmatter(text: &str) -> Result<Map<String, Value>, String> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
    let missing = || "SKILL.md must begin with frontmatter between two lines `---`".to_owned();
    let lines = lines.ok_or_else(missing)?;
    let mut yaml = String::new();
    let mut is_closed = false;
    for line in lines.lines() {
        if line.trim_end() == "---" {
            is_closed = true;
            break;
        }
        yaml.push_str(line);
        yaml.push('\n');
    }
    if !is_closed {
        return Err(missing());
    }
    crate::yaml_files::parse_yaml("SKILL.md", &yaml).map_err(|problem| problem.what)
}

/// The skills of a source.
#[derive(Default)]
pub struct NativeSkills(Vec<NativeSkill>);

impl FromIterator<NativeSkill> for NativeSkills {
    fn from_iter<I: IntoIterator<Item = NativeSkill>>(skills: I) -> Self {
        Self(skills.into_iter().collect())
    }
}

impl NativeSkills {
    pub fn definitions(&self) -> Vec<Definition> {
        self.0.iter().map(|skill| skill.definition.clone()).collect()
    }

    /// The skills as prompts.
    pub fn prompts(&self) -> Vec<Definition> {
        skill_prompts(&self.entries(), &[]).into_iter().map(|(definition, _)| definition).collect()
    }

    fn entries(&self) -> Vec<(SkillEntry, Effect, EffectOrigin)> {
        self.0.iter().map(|skill| (skill.entry.clone(), Effect::reads(), EffectOrigin::Native)).collect()
    }

    /// Runs an operation on a skill, its files or its prompt.
    pub fn run(&self, op: &Operation) -> Result<JsonObject, ToolError> {
        let missing = || {
            ToolError::not_found(format!("Skill not found: `{}`.", op.name))
                .hint("List the available skills.")
        };
        let file = |uri: &str| self.0.iter().find_map(|skill| skill.files.get(uri));
        match op.method {
            Method::GetSkill => {
                let skill = self.0.iter().find(|skill| skill.uri() == op.name).ok_or_else(missing)?;
                Ok(JsonObject::new().with("skill", skill.definition.members.clone()))
            }
            Method::ReadResource => {
                let contents = JsonObject::new()
                    .with("uri", op.name.as_str())
                    .with("mimeType", mime_type(&op.name))
                    .with("text", file(&op.name).ok_or_else(missing)?.as_str());
                Ok(JsonObject::new().with("contents", Json::array([&contents.to_json()])))
            }
            Method::GetPrompt => {
                let mut prompts = skill_prompts(&self.entries(), &[]).into_iter();
                let (_, skill) = prompts.find(|(prompt, _)| prompt.key == op.name).ok_or_else(missing)?;
                let text = file(&skill.uri).ok_or_else(missing)?;
                Ok(skill_prompt::prompt_result(&skill, text, str::to_owned))
            }
            _ => Err(missing()),
        }
    }
}

fn mime_type(uri: &str) -> &'static str {
    match uri.rsplit('.').next() {
        Some("md") => "text/markdown",
        Some("json") => "application/json",
        Some("html") => "text/html",
        _ => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: &str = "---\nname: refunds\ndescription: Refund orders.\nlicense: MIT\n---\n\nDo it.\n";

    fn skill(path: &str, main: &str) -> Result<NativeSkill, String> {
        NativeSkill::new(
            path,
            vec![("SKILL.md".to_owned(), main.to_owned()), ("a/b.md".to_owned(), "B".to_owned())],
        )
    }

    fn run(skills: &NativeSkills, method: Method, name: &str) -> Result<Value, ToolError> {
        let op = Operation { method, name: name.to_owned(), params: JsonObject::new() };
        skills.run(&op).map(|result| result.to_json().to().unwrap())
    }

    #[test]
    fn a_folder_is_listed_read_and_offered_as_a_prompt() {
        let skills: NativeSkills = [skill("octoprox/refunds", MAIN).unwrap()].into_iter().collect();
        let listed: Value = skills.definitions()[0].members.to_json().to().unwrap();
        assert_eq!(listed["frontmatter"]["license"], "MIT");
        assert!(SkillEntry::parse(&skills.definitions()[0].members).is_ok(), "clients would load it");
        let got = run(&skills, Method::GetSkill, "skill://octoprox/refunds/SKILL.md").unwrap();
        assert_eq!(got["skill"], listed);
        let read = run(&skills, Method::ReadResource, "skill://octoprox/refunds/a/b.md").unwrap();
        assert_eq!(
            (&read["contents"][0]["text"], &read["contents"][0]["mimeType"]),
            (&"B".into(), &"text/markdown".into())
        );
        let prompt = run(&skills, Method::GetPrompt, &skills.prompts()[0].key).unwrap().to_string();
        assert!(prompt.contains("Do it.") && prompt.contains("skill://octoprox/refunds/a/b.md"), "{prompt}");
        for (method, name) in [
            (Method::ReadResource, "skill://octoprox/refunds/../x"),
            (Method::GetSkill, "skill://octoprox/refunds/a/b.md"),
            (Method::GetPrompt, "skill-other"),
        ] {
            assert!(run(&skills, method, name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_is_no_skill_is_reported() {
        for (path, main, why) in [
            ("x/refunds", "# Refunds", "must begin with frontmatter"),
            ("x/refunds", "---\nname: refunds\n", "must begin with frontmatter"),
            ("x/refunds", "---\nname: refunds\n---\n", "`description`"),
            ("x/refunds", "---\nname: Re Funds\ndescription: x\n---\n", "lower-case"),
            ("x/other", MAIN, "another name"),
            ("x/refunds", "---\n- a\n---\n", ""),
        ] {
            let refused = skill(path, main).err().unwrap_or_else(|| panic!("{main}"));
            assert!(refused.contains(why), "{refused}");
        }
        assert!(NativeSkill::new("x/refunds", vec![("a.md".to_owned(), String::new())]).is_err());
    }
}
