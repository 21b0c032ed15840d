//! Protocol revisions and their two eras.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    R20241105,
    R20250326,
    R20250618,
    R20251125,
    R20260728,
}

/// Legacy: a handshake and a session. Modern: every request carries its own context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl Revision {
    pub const ALL: [Revision; 5] =
        [Self::R20260728, Self::R20251125, Self::R20250618, Self::R20250326, Self::R20241105];
    pub const NEWEST_LEGACY: Revision = Self::R20251125;
    pub const MODERN: Revision = Self::R20260728;

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::R20241105 => "2024-11-05",
            Self::R20250326 => "2025-03-26",
            Self::R20250618 => "2025-06-18",
            Self::R20251125 => "2025-11-25",
            Self::R20260728 => "2026-07-28",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    pub const fn era(self) -> Era {
        match self {
            Self::R20260728 => Era::Modern,
            _ => Era::Legacy,
        }
    }
}
