//! Prompts loaded from playbooks, and the problems found.

use super::prompt_manifest::{Argument, PromptFile, PromptManifest};
use super::prompt_template::{self, Engine};
use crate::skills::native_skills::{NativeSkill, NativeSkills};
use crate::skills::skill_files::NATIVE_FOLDER;
use crate::watched_files::FileContents;
use crate::yaml_files::{self, Problem};
use handlebars::Template;
use octo_grants::config_dirs::ConfigFile;
use octo_model::{Effect, EffectOrigin, Json, JsonObject, is_valid_name};
use octo_toolkit::{Definition, Listing};
use serde_saphyr::Spanned;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A prompt and its file.
pub struct Prompt {
    pub title: Option<String>,
    pub description: String,
    tags: Vec<String>,
    pub arguments: Vec<Argument>,
    pub file: String,
    template: Template,
    is_builtin: bool,
}

pub struct PromptSet {
    pub all: BTreeMap<String, Arc<Prompt>>,
    pub engine: Engine,
    /// Prompts of the operator that need no arguments, as skills.
    pub skills: NativeSkills,
    problems: Vec<Problem>,
}

/// Built-in prompts: file name and text.
pub type BuiltinPrompts = &'static [(&'static str, &'static str)];

/// Later files take precedence over earlier ones, and all of them over built-in prompts. A prompt whose file
/// became invalid keeps its last version: the file may be in the middle of an edit.
pub fn load_prompts(shipped: BuiltinPrompts, leaves: &[ConfigFile], before: Option<&PromptSet>) -> PromptSet {
    let mut making = PromptSetBuilder { all: BTreeMap::new(), problems: Vec::new(), before };
    for (name, text) in shipped {
        making.add_file(name, text, true);
    }
    for leaf in leaves.iter().filter(|leaf| yaml_files::is_prompt_or_tool_file(leaf)) {
        let file = leaf.path.display().to_string();
        match &leaf.content {
            Ok(text) => making.add_file(&file, text, false),
            Err(why) => making.add_broken_file(Problem { file, line: None, what: why.clone() }),
        }
    }
    let mut engine = Engine::new();
    for (name, prompt) in &making.all {
        engine.add(name, prompt.template.clone());
    }
    let skills = making.all.iter().filter_map(|(name, prompt)| prompt.to_skill(name, &engine)).collect();
    PromptSet { all: making.all, engine, skills, problems: making.problems }
}

struct PromptSetBuilder<'a> {
    all: BTreeMap<String, Arc<Prompt>>,
    problems: Vec<Problem>,
    before: Option<&'a PromptSet>,
}

impl PromptSetBuilder<'_> {
    fn add_file(&mut self, file: &str, text: &str, shipped: bool) {
        let playbook: PromptFile = match yaml_files::parse_yaml(file, text) {
            Ok(playbook) => playbook,
            Err(problem) => return self.add_broken_file(problem),
        };
        for (name, written) in playbook.prompts.0 {
            match build_prompt(&name, written, file, text, shipped) {
                Ok(prompt) => self.put(&name, Arc::new(prompt)),
                Err(problem) => {
                    let last = self.previous_of(file).into_iter().find(|(known, _)| *known == name);
                    self.report(problem, last.is_some());
                    if let Some((name, prompt)) = last {
                        self.put(&name, prompt);
                    }
                }
            }
        }
    }

    /// A file that cannot be read or parsed at all.
    fn add_broken_file(&mut self, problem: Problem) {
        let last = self.previous_of(&problem.file);
        self.report(problem, !last.is_empty());
        for (name, prompt) in last {
            self.put(&name, prompt);
        }
    }

    fn report(&mut self, mut problem: Problem, stays: bool) {
        if stays {
            problem.what.push_str(" (its last valid version is kept)");
        }
        self.problems.push(problem);
    }

    fn previous_of(&self, file: &str) -> Vec<(String, Arc<Prompt>)> {
        let all = self.before.into_iter().flat_map(|before| &before.all);
        let own = all.filter(|(_, prompt)| prompt.file == file);
        own.map(|(name, prompt)| (name.clone(), Arc::clone(prompt))).collect()
    }

    fn put(&mut self, name: &str, prompt: Arc<Prompt>) {
        let file = prompt.file.clone();
        if let Some(other) = self.all.insert(name.to_owned(), prompt)
            && !other.is_builtin
        {
            let what = format!("`{name}` overrides the one in {}", other.file);
            self.problems.push(Problem { file, line: None, what });
        }
    }
}

fn build_prompt(
    name: &str,
    written: Spanned<PromptManifest>,
    file: &str,
    text: &str,
    shipped: bool,
) -> Result<Prompt, Problem> {
    let line = Some(written.referenced.line()).filter(|line| *line > 0);
    let problem = |line: Option<u64>, what: &str| Problem {
        file: file.to_owned(),
        line,
        what: format!("prompts.{name}: {what}"),
    };
    let written = written.value;
    if !is_valid_name(name) {
        return Err(problem(line, "a name consists of letters, digits, `-` and `_`"));
    }
    if let Some(what) = argument_problem(&written.arguments.0) {
        return Err(problem(line, &what));
    }
    let names: Vec<&str> = written.arguments.0.iter().map(|argument| argument.name.as_str()).collect();
    let begins = written.template.referenced.line();
    let template = prompt_template::compile(&written.template.value, &names).map_err(|fault| {
        let within = u64::try_from(fault.line.unwrap_or(1)).unwrap_or(1);
        problem(Some(line_in_file(text, begins, within)), &fault.what)
    })?;
    Ok(Prompt {
        title: written.title,
        tags: written.tags,
        description: written.description.split_whitespace().collect::<Vec<_>>().join(" "),
        arguments: written.arguments.0,
        file: file.to_owned(),
        template,
        is_builtin: shipped,
    })
}

/// A block template starts in the line after its `|`; any other in its own line.
fn line_in_file(text: &str, begins: u64, within: u64) -> u64 {
    let at = usize::try_from(begins.saturating_sub(1)).unwrap_or_default();
    let first = text.lines().nth(at).unwrap_or_default();
    let first = first.split(" #").next().unwrap_or_default().trim_end();
    let is_block =
        first.trim_end_matches(|c: char| "+-".contains(c) || c.is_ascii_digit()).ends_with(['|', '>']);
    begins + within - u64::from(!is_block)
}

fn argument_problem(arguments: &[Argument]) -> Option<String> {
    for (at, argument) in arguments.iter().enumerate() {
        let name = &argument.name;
        if !is_valid_name(name) || prompt_template::is_reserved(name) {
            return Some(format!("invalid argument name `{name}`"));
        }
        if arguments.iter().take(at).any(|other| other.name == *name) {
            return Some(format!("duplicate argument `{name}`"));
        }
        if argument.required && argument.default.is_some() {
            return Some(format!("`{name}` cannot be required and have a default"));
        }
        let stray = argument.default.as_ref().filter(|_| !argument.values.is_empty());
        if let Some(stray) = stray.filter(|default| !argument.values.contains(default)) {
            return Some(format!("the default `{stray}` of `{name}` is not one of its values"));
        }
    }
    None
}

impl FileContents for PromptSet {
    fn lists(&self) -> Listing {
        let prompts = self.all.iter().map(|(name, prompt)| Definition {
            key: name.clone(),
            members: prompt.definition(name),
            effect: Effect::reads(),
            effect_origin: EffectOrigin::Native,
        });
        Listing {
            prompts: prompts.collect(),
            skills: self.skills.definitions(),
            supports_completion: !self.all.is_empty(),
            ..Listing::default()
        }
    }

    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl Prompt {
    /// The prompt as a skill, if it is the operator's own and needs no arguments.
    fn to_skill(&self, name: &str, engine: &Engine) -> Option<NativeSkill> {
        if self.is_builtin || self.arguments.iter().any(|argument| argument.required) {
            return None;
        }
        let values = self.arguments.iter().map(|argument| {
            let default = argument.default.clone().unwrap_or_default();
            (argument.name.clone(), serde_json::Value::from(default))
        });
        let text = engine.render(name, &values.collect()).ok()?;
        let skill = name.to_ascii_lowercase().replace('_', "-");
        let description = Json::text(&self.description);
        let main = format!("---\nname: {skill}\ndescription: {}\n---\n\n{text}\n", description.as_str());
        let path = format!("{NATIVE_FOLDER}/prompts/{skill}");
        NativeSkill::new(&path, vec![("SKILL.md".to_owned(), main)]).ok()
    }

    fn definition(&self, name: &str) -> JsonObject {
        let mut members = JsonObject::new().with("name", name);
        if let Some(title) = &self.title {
            members.set("title", title.as_str());
        }
        let arguments: Vec<Json> =
            self.arguments.iter().map(|argument| argument.definition().to_json()).collect();
        if !self.tags.is_empty() {
            members.set("_meta", JsonObject::new().with("octoprox/tags", Json::of(&self.tags)));
        }
        members.with("description", self.description.as_str()).with("arguments", Json::array(&arguments))
    }
}
