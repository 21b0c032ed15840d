//! Kinds of items.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    Tool,
    Prompt,
    Resource,
    /// A resource template.
    Template,
}

impl ItemKind {
    pub const ALL: [ItemKind; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
        }
    }

    /// The member that contains the items of this kind in MCP results, REST replies and stored listings.
    pub const fn list_member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }
}
