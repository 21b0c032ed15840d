//! Effects of calls.

use crate::{Json, JsonObject};
use serde::{Deserialize, Serialize};

/// The four MCP tool hints. For upstream tools they are claims, not facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

/// The effect as a single class, for policy rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectClass {
    Reads,
    Writes,
    Destroys,
}

/// How the effect of a tool is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffectOrigin {
    /// The tool is native, or its whole definition is the operator's.
    Native,
    /// The operator declares the effect of an upstream tool.
    Declared,
    /// Nobody does.
    Assumed,
}

impl EffectOrigin {
    pub const fn is_trusted(self) -> bool {
        !matches!(self, Self::Assumed)
    }
}

impl EffectClass {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reads => "reads",
            Self::Writes => "writes",
            Self::Destroys => "destroys",
        }
    }
}

impl Effect {
    /// Reads, with the same result while nothing changes.
    pub const fn reads() -> Self {
        Self { read_only: true, destructive: false, idempotent: true, open_world: false }
    }

    /// Reads something that changes between calls.
    pub const fn reads_volatile() -> Self {
        Self { idempotent: false, ..Self::reads() }
    }

    /// Adds or changes without losing data.
    pub const fn writes() -> Self {
        Self { read_only: false, destructive: false, idempotent: false, open_world: false }
    }

    /// May lose existing data.
    pub const fn destroys() -> Self {
        Self { destructive: true, ..Self::writes() }
    }

    /// Repeating it has no further effect.
    pub const fn idempotent(self) -> Self {
        Self { idempotent: true, ..self }
    }

    /// Talks to systems outside the hub.
    pub const fn open_world(self) -> Self {
        Self { open_world: true, ..self }
    }

    /// Assumed effect of a tool without a trusted one.
    pub const fn unknown() -> Self {
        Self::destroys().open_world()
    }

    pub const fn class(self) -> EffectClass {
        match (self.read_only, self.destructive) {
            (true, _) => EffectClass::Reads,
            (false, false) => EffectClass::Writes,
            (false, true) => EffectClass::Destroys,
        }
    }

    /// The effect of a class, for a tool of which nothing else is known.
    pub const fn of_class(class: EffectClass) -> Self {
        match class {
            EffectClass::Reads => Self::reads_volatile().open_world(),
            EffectClass::Writes => Self::writes().open_world(),
            EffectClass::Destroys => Self::unknown(),
        }
    }

    /// The effect that MCP annotations claim. Missing hints have the protocol's defaults, which are the careful ones.
    pub fn from_annotations(annotations: &JsonObject) -> Self {
        let hint = |name: &str| annotations.get(name).and_then(|value| value.to::<bool>().ok());
        let read_only = hint("readOnlyHint").unwrap_or(false);
        Self {
            read_only,
            destructive: !read_only && hint("destructiveHint").unwrap_or(true),
            idempotent: hint("idempotentHint").unwrap_or(false),
            open_world: hint("openWorldHint").unwrap_or(true),
        }
    }

    /// The hints as MCP annotations.
    pub fn annotations(self, title: &str) -> JsonObject {
        JsonObject::new()
            .with("title", Json::text(title))
            .with("readOnlyHint", self.read_only)
            .with("destructiveHint", self.destructive)
            .with("idempotentHint", self.idempotent)
            .with("openWorldHint", self.open_world)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire_test::assert_wire_form;

    #[test]
    fn effects_name_each_hint_on_the_wire() {
        let rows = [
            (
                Effect::reads(),
                r#"{"read_only":true,"destructive":false,"idempotent":true,"open_world":false}"#,
            ),
            (
                Effect::unknown(),
                r#"{"read_only":false,"destructive":true,"idempotent":false,"open_world":true}"#,
            ),
        ];
        for (effect, text) in rows {
            assert_wire_form(&effect, text);
        }
    }
}
