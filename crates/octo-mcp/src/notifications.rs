//! Change notifications.

use crate::client_peer::{LOG_METHOD, passes_log_level};
use crate::legacy_session::Session;
use octo_hub::Change;
use octo_model::{ItemKind, Json, JsonObject};
use octo_wire::Message;
use std::collections::HashSet;

/// Notifications that a stream wants.
#[derive(Debug, Clone, Default)]
pub struct NotificationFilter {
    pub tools: bool,
    pub prompts: bool,
    pub resources: bool,
    pub uris: HashSet<String>,
}

impl NotificationFilter {
    /// Parses the params of `subscriptions/listen`.
    pub fn from_params(wanted: &JsonObject) -> Self {
        let uris = wanted.list("resourceSubscriptions").iter().filter_map(Json::to_text).collect();
        Self {
            tools: wanted.is_true("toolsListChanged"),
            prompts: wanted.is_true("promptsListChanged"),
            resources: wanted.is_true("resourcesListChanged"),
            uris,
        }
    }

    /// All lists; resources are checked against the session.
    pub fn all_lists() -> Self {
        Self { tools: true, prompts: true, resources: true, uris: HashSet::new() }
    }

    pub fn to_members(&self) -> JsonObject {
        let mut members = JsonObject::new();
        for (key, on) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if on {
                members.set(key, true);
            }
        }
        if !self.uris.is_empty() {
            let mut uris: Vec<&String> = self.uris.iter().collect();
            uris.sort();
            members.set("resourceSubscriptions", Json::of(&uris));
        }
        members
    }

    fn wants(&self, kind: ItemKind) -> bool {
        match kind {
            ItemKind::Tool => self.tools,
            ItemKind::Prompt => self.prompts,
            ItemKind::Resource | ItemKind::Template => self.resources,
            // The extension has no notification for it.
            ItemKind::Skill => false,
        }
    }
}

/// Notification for a change, if wanted. `meta` is added to its params.
pub fn change_notification(
    change: &Change,
    filter: &NotificationFilter,
    watches: impl Fn(&str) -> bool,
    meta: Option<JsonObject>,
) -> Option<Message> {
    let (method, mut params) = match change {
        Change::List(kind) if filter.wants(*kind) => (list_method(*kind), JsonObject::new()),
        Change::Resource { uri } if filter.uris.contains(uri) || watches(uri) => {
            ("notifications/resources/updated", JsonObject::new().with("uri", uri.as_str()))
        }
        _ => return None,
    };
    if let Some(meta) = meta {
        params.set("_meta", meta);
    }
    Some(Message::Notification { method: method.to_owned(), params })
}

/// Log message for a warning, if it concerns this session and the session wants that level.
pub fn warning_notification(change: &Change, session: &Session) -> Option<Message> {
    let Change::Warning { audience, text } = change else { return None };
    let params =
        JsonObject::new().with("level", "warning").with("logger", "octoprox").with("data", text.as_str());
    let is_delivered =
        audience.includes(&session.client.caller) && passes_log_level(LOG_METHOD, &params, session.level());
    is_delivered.then(|| Message::Notification { method: LOG_METHOD.to_owned(), params })
}

fn list_method(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "notifications/tools/list_changed",
        ItemKind::Prompt => "notifications/prompts/list_changed",
        ItemKind::Resource | ItemKind::Template | ItemKind::Skill => "notifications/resources/list_changed",
    }
}
