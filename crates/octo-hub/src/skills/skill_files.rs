//! Skills from the operator's folders, as a native source.

use crate::skills::native_skills::{NativeSkill, NativeSkills};
use crate::watched_files::{FileContents, WatchedFiles};
use crate::yaml_files::Problem;
use octo_grants::Workspace;
use octo_grants::config_dirs::{ConfigDirs, ConfigFile};
use octo_model::{JsonObject, Operation, ToolError};
use octo_toolkit::{BoxFuture, CallContext, Listing, ListingState, Source, SourceState};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::watch;

const MAIN_FILE: &str = "SKILL.md";
/// First part of the URIs. No server can have this name.
pub const NATIVE_FOLDER: &str = "octoprox";

/// The source of skills. It watches its directories, so it needs a runtime.
pub fn source(folders: ConfigDirs, workspace: Option<&Workspace>) -> Arc<dyn Source> {
    // What agents write must not become instructions of the operator.
    let folders = match workspace {
        Some(workspace) => folders.excluding_workspace(workspace),
        None => folders,
    };
    let make = |leaves: &[ConfigFile], _: Option<&SkillSet>| SkillSet::load(leaves);
    Arc::new(SkillSource(WatchedFiles::new(folders.with_all_files(), SourceState::Ready, make)))
}

struct SkillSet {
    skills: NativeSkills,
    problems: Vec<Problem>,
}

impl SkillSet {
    fn load(leaves: &[ConfigFile]) -> Self {
        let mut problems = Vec::new();
        let mut report = |path: &Path, what: String| {
            problems.push(Problem { file: path.display().to_string(), line: None, what });
        };
        let mut known = BTreeSet::new();
        let mut skills = Vec::new();
        let is_main = |leaf: &&ConfigFile| leaf.path.file_name().is_some_and(|name| name == MAIN_FILE);
        let mains: Vec<&ConfigFile> = leaves.iter().filter(is_main).collect();
        let is_in_skill = |leaf: &ConfigFile| {
            mains.iter().any(|main| main.path.parent().is_some_and(|root| leaf.path.starts_with(root)))
        };
        // A directory that cannot be read.
        for leaf in leaves.iter().filter(|leaf| !is_in_skill(leaf)) {
            if let Err(why) = &leaf.content {
                report(&leaf.path, why.clone());
            }
        }
        for main in &mains {
            let root = main.path.parent().map(Path::to_owned).unwrap_or_default();
            match load_skill(&root, leaves) {
                Ok(skill) if known.insert(skill.uri().to_owned()) => skills.push(skill),
                Ok(_) => report(&main.path, "another folder has a skill of this name".to_owned()),
                Err(why) => report(&main.path, why),
            }
        }
        Self { skills: skills.into_iter().collect(), problems }
    }
}

fn load_skill(root: &Path, leaves: &[ConfigFile]) -> Result<NativeSkill, String> {
    let name = root.file_name().and_then(|name| name.to_str()).ok_or("the folder has no name in UTF-8")?;
    let mut files = Vec::new();
    for leaf in leaves {
        let Some(path) = leaf.path.strip_prefix(root).ok().and_then(Path::to_str) else { continue };
        match &leaf.content {
            Ok(text) => files.push((path.to_owned(), text.clone())),
            Err(why) => return Err(format!("{path}: {why}")),
        }
    }
    NativeSkill::new(&format!("{NATIVE_FOLDER}/{name}"), files)
}

impl FileContents for SkillSet {
    fn lists(&self) -> Listing {
        Listing { skills: self.skills.definitions(), prompts: self.skills.prompts(), ..Listing::default() }
    }

    fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

struct SkillSource(WatchedFiles<SkillSet>);

impl Source for SkillSource {
    fn name(&self) -> &str {
        "skills"
    }

    fn is_native(&self) -> bool {
        true
    }

    fn listing(&self) -> watch::Receiver<ListingState> {
        self.0.listing()
    }

    fn run<'a>(
        &'a self,
        op: Operation,
        _cx: &'a CallContext,
    ) -> BoxFuture<'a, Result<JsonObject, ToolError>> {
        Box::pin(async move { self.0.contents().skills.run(&op) })
    }
}
