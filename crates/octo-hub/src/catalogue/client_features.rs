//! Extensions of a client that decide what it is listed.

use crate::apps::app_tool::supports_apps;
use crate::catalogue::item::Entry;
use octo_model::{ItemKind, Json, JsonObject, extension};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ClientFeatures {
    /// It shows apps, and hides tools that are only for them.
    pub apps: bool,
    /// It loads skills, and needs no prompts for them.
    pub skills: bool,
}

impl ClientFeatures {
    pub fn of(capabilities: &JsonObject) -> Self {
        let skills = capabilities.inner("extensions", extension::SKILLS);
        Self { apps: supports_apps(capabilities), skills: skills.as_ref().is_some_and(Json::is_object) }
    }

    /// Whether an entry is listed to the client.
    pub fn lists(self, entry: &Entry) -> bool {
        let item = &entry.item;
        let is_skill = item.kind == ItemKind::Prompt && item.skill_uri.is_some();
        (self.apps || item.app.is_for_model) && !(self.skills && is_skill)
    }
}
