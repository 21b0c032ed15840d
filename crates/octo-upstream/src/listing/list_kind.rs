//! The four kinds of lists, and pending changes of each.

use octo_model::{Effect, Json, JsonObject};
use octo_toolkit::Definition;
use std::sync::atomic::{AtomicU8, Ordering};
use tokio::sync::Notify;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Tools,
    Prompts,
    Resources,
    Templates,
}

impl ListKind {
    pub(crate) const ALL: [ListKind; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// Member of a result that holds the entries.
    pub(crate) const fn field(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
        }
    }

    /// Member of an entry that names it.
    const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }

    /// Whether a server with these capabilities supports the list.
    pub(crate) fn is_offered(self, capabilities: &JsonObject) -> bool {
        let capability = match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        };
        capabilities.get(capability).is_some_and(Json::is_object)
    }

    /// Parses an entry as a definition for the catalogue.
    pub(crate) fn parse_definition(self, entry: &Json) -> Result<Definition, &'static str> {
        let members = entry.members().map_err(|_| "not an object")?;
        let key = members.text(self.key()).filter(|key| !key.is_empty()).ok_or("missing name")?;
        Ok(Definition { key, members, effect: Effect::unknown(), trusted_effect: false })
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Lists that must be fetched again.
#[derive(Default)]
pub(crate) struct ListChanges {
    bits: AtomicU8,
    notify: Notify,
}

impl ListChanges {
    pub(crate) fn mark(&self, kinds: &[ListKind]) {
        let bits = kinds.iter().fold(0, |bits, kind| bits | kind.bit());
        self.bits.fetch_or(bits, Ordering::AcqRel);
        self.notify.notify_one();
    }

    /// Waits for a change.
    pub(crate) async fn wait(&self) {
        while self.bits.load(Ordering::Acquire) == 0 {
            self.notify.notified().await;
        }
    }

    /// Takes the changes since the last call.
    pub(crate) fn take(&self) -> Vec<ListKind> {
        let bits = self.bits.swap(0, Ordering::AcqRel);
        ListKind::ALL.into_iter().filter(|kind| bits & kind.bit() != 0).collect()
    }
}
