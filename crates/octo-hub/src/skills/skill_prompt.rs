//! Skills as prompts, for clients without the extension.

use crate::skills::skill_entry::SkillEntry;
use octo_model::{Effect, EffectOrigin, Json, JsonObject};
use octo_toolkit::Definition;
use std::collections::HashSet;

/// Prefix of the names of such prompts.
const PREFIX: &str = "skill-";
/// Member of their `_meta`, with the URI of the skill.
const SKILL_META_KEY: &str = "octoprox/skill";

/// The URI of the skill behind such a prompt.
pub fn skill_of_prompt(definition: &JsonObject) -> Option<String> {
    definition.inner_text("_meta", SKILL_META_KEY)
}

/// Prompts for the skills of a source, beside its own prompts. Skills with the same name are told apart by their folders.
pub fn skill_prompts(
    skills: &[(SkillEntry, Effect, EffectOrigin)],
    own: &[Definition],
) -> Vec<(Definition, SkillEntry)> {
    let mut taken: HashSet<String> = own.iter().map(|prompt| prompt.key.clone()).collect();
    let mut prompts = Vec::new();
    for (skill, effect, effect_origin) in skills {
        let path = skill.root().split_once("://").map_or(skill.root(), |(_, path)| path).replace('/', "-");
        let names = [format!("{PREFIX}{}", skill.name), format!("{PREFIX}{path}")];
        let Some(key) = names.into_iter().find(|name| taken.insert(name.clone())) else { continue };
        let members = JsonObject::new()
            .with("name", key.as_str())
            .with("title", skill.name.as_str())
            .with("description", skill.description.as_str())
            .with("_meta", JsonObject::new().with(SKILL_META_KEY, skill.uri.as_str()));
        let definition = Definition { key, members, effect: *effect, effect_origin: *effect_origin };
        prompts.push((definition, skill.clone()));
    }
    prompts
}

/// The prompt with the instructions of a skill, and the URIs of its other files as clients get them.
pub fn prompt_result(skill: &SkillEntry, instructions: &str, scope: impl Fn(&str) -> String) -> JsonObject {
    let files = skill.files.iter().flatten().filter(|file| file.uri != skill.uri);
    let files: Vec<String> = files.map(|file| format!("- {}", scope(&file.uri))).collect();
    let mut text = instructions.to_owned();
    if !files.is_empty() {
        text.push_str(&format!("\n\nOther files of this skill are resources:\n{}\n", files.join("\n")));
    }
    let content = JsonObject::new().with("type", "text").with("text", text.as_str());
    let message = JsonObject::new().with("role", "user").with("content", content);
    JsonObject::new()
        .with("description", skill.description.as_str())
        .with("messages", Json::array([&message.to_json()]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skills::skill_entry::SkillFile;

    fn skill(uri: &str) -> SkillEntry {
        let root = uri.strip_suffix("/SKILL.md").unwrap();
        let name = root.rsplit('/').next().unwrap().to_owned();
        let files = [uri.to_owned(), format!("{root}/a.md")].map(|uri| SkillFile::new(uri, b""));
        SkillEntry { uri: uri.to_owned(), name, description: "D".to_owned(), files: Some(files.to_vec()) }
    }

    #[test]
    fn skills_with_the_same_name_are_both_there() {
        let skills = ["skill://refunds/SKILL.md", "skill://acme/refunds/SKILL.md"];
        let skills = skills.map(|uri| (skill(uri), Effect::unknown(), EffectOrigin::Assumed));
        let prompts = skill_prompts(&skills, &[]);
        let keys: Vec<&str> = prompts.iter().map(|(prompt, _)| prompt.key.as_str()).collect();
        assert_eq!(keys, ["skill-refunds", "skill-acme-refunds"]);
        let own = [prompts[0].0.clone()];
        assert_eq!(skill_prompts(&skills[..1], &own).len(), 0, "the server's own prompt has the name");
    }

    #[test]
    fn other_files_are_named() {
        let result =
            prompt_result(&skill("skill://refunds/SKILL.md"), "Do it.", |uri| uri.replace("://", "://maps/"));
        let text = result.to_json().as_str().to_owned();
        assert!(text.contains("Do it.") && text.contains("- skill://maps/refunds/a.md"), "{text}");
    }
}
