//! Kinds of items.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    Tool,
    Prompt,
    Resource,
    /// A resource template.
    Template,
    /// An Agent Skill.
    Skill,
}

impl ItemKind {
    pub const ALL: [ItemKind; 5] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template, Self::Skill];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Skill => "skill",
        }
    }

    /// The member that contains the items of this kind in MCP results, REST replies and stored listings.
    pub const fn list_member(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Skill => "skills",
        }
    }
}
