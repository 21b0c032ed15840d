//! What is known of the definitions of the servers behind the hub.

use octo_model::{Json, ToolError};
use octo_toolkit::BoxFuture;
use std::collections::HashSet;

/// What a server can list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    Tool,
    Prompt,
    Resource,
    Template,
    Instructions,
}

impl ItemKind {
    pub const ALL: [ItemKind; 5] =
        [Self::Tool, Self::Prompt, Self::Resource, Self::Template, Self::Instructions];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|what| what.as_str() == word)
    }
}

/// A definition as a server wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub kind: ItemKind,
    /// Name, URI or URI template; empty for instructions.
    pub key: String,
    /// The whole definition, for showing it and for telling what has changed.
    pub text: Json,
    /// SHA-256 of its canonical form, in hexadecimal.
    pub hash: String,
}

/// Whose definitions they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The name in the settings.
    pub server: String,
    /// A digest of what is behind the name, so that pins follow a server that is renamed.
    pub identity: String,
    /// The names of all other servers in the settings.
    pub others: Vec<String>,
}

/// What is known of a server.
#[derive(Debug, Clone, Default)]
pub struct PinSet {
    pub pins: Vec<Pin>,
    /// URIs and templates that other servers of the settings had first.
    pub uris_of_others: HashSet<String>,
    /// Rises with every decision of a person.
    pub revision: u64,
}

/// What a new listing changes about what is known.
#[derive(Debug, Clone, Default)]
pub struct PinDelta {
    /// Seen for the first time and taken on.
    pub new_pins: Vec<Pin>,
    /// Taken on in place of the pin with this hash.
    pub replaced: Vec<(Pin, String)>,
    /// Held back; everything else of the server is not held any more.
    pub held: Vec<Pin>,
    /// Taken on, and worth a word.
    pub reported: Vec<Pin>,
}

impl PinDelta {
    pub fn is_empty(&self) -> bool {
        self.new_pins.is_empty()
            && self.replaced.is_empty()
            && self.held.is_empty()
            && self.reported.is_empty()
    }
}

/// What became of the news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinWrite {
    /// Kept; these of the held and told were never seen before.
    Written(Vec<Pin>),
    /// Another process has pinned something else meanwhile, and nothing was kept: judge again.
    Conflict,
}

/// A definition that waits for a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingPin {
    pub new: Pin,
    /// What is shown meanwhile, if anything.
    pub pinned: Option<Pin>,
    /// When it was first seen, in seconds since 1970.
    pub since: i64,
}

/// Definitions of servers, as they were taken on and as they wait for a decision. Several processes may share them.
pub trait Pins: Send + Sync {
    /// What is known. A name without pins takes over those of the same identity.
    fn load<'a>(&'a self, whose: &'a ServerIdentity) -> BoxFuture<'a, Result<PinSet, ToolError>>;

    /// Keeps all of the news, or none.
    fn write<'a>(
        &'a self,
        whose: &'a ServerIdentity,
        news: PinDelta,
    ) -> BoxFuture<'a, Result<PinWrite, ToolError>>;

    fn revision<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<u64, ToolError>>;

    /// What waits for a decision, in a stable order.
    fn pending<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<PendingPin>, ToolError>>;

    /// Takes on these definitions, exactly as they were seen; says how many of them still waited.
    fn accept<'a>(&'a self, server: &'a str, chosen: Vec<Pin>) -> BoxFuture<'a, Result<usize, ToolError>>;
}
