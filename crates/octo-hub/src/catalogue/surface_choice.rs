//! What the surface `auto` stands for, and why.

use crate::catalogue::item::Entry;
use crate::catalogue::profile::Profile;
use crate::catalogue::profile_view::View;
use crate::catalogue::rendered_list::RenderedList;
use crate::catalogue::surface::{Surface, is_of_user};
use crate::find::tools_call::is_find_or_call_tool;
use octo_model::{ItemKind, Json, JsonObject};
use std::fmt;

/// `auto` lists everything, or the tools of servers, up to this size.
const MAX_FULL_TOKENS: usize = 8_000;
/// `auto` lists selected tools up to this size.
const MAX_LISTED_TOKENS: usize = 3_000;
/// Bytes of definitions that are ten tokens. Measured with three tokenizers (docs/measurements.md): between 43 and 45 for
/// all definitions, between 40 and 48 for a single one.
const BYTES_PER_TEN_TOKENS: usize = 44;

/// About how many tokens definitions are for a model.
pub const fn estimate_tokens(bytes: usize) -> usize {
    (10 * bytes + BYTES_PER_TEN_TOKENS / 2) / BYTES_PER_TEN_TOKENS
}

/// Bytes of what models are shown of a tool: its name, description and parameters.
pub fn model_bytes(definition: &JsonObject) -> usize {
    let shown = ["name", "description", "inputSchema"];
    shown.iter().filter_map(|member| definition.get(member)).map(|json: &Json| json.bytes().len()).sum()
}

/// A surface that is not `auto`, and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SurfaceChoice {
    pub surface: Surface,
    pub reason: SurfaceReason,
}

/// The size of some definitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListSize {
    pub tools: usize,
    pub bytes: usize,
}

impl ListSize {
    fn add(&mut self, bytes: usize) {
        self.tools += 1;
        self.bytes += bytes;
    }

    const fn tokens(self) -> usize {
        estimate_tokens(self.bytes)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SurfaceReason {
    /// Somebody asked for it.
    Requested,
    /// The profile is a single server, or gives tools names of its own.
    OwnNames,
    /// All tools take this many tokens, which is little.
    Small(ListSize),
    /// All tools take this many tokens, and those of servers and the selected ones that many.
    Servers { all: ListSize, listed: ListSize },
    /// All tools take this many tokens, and the selected ones that many.
    Selected { all: ListSize, listed: ListSize },
    /// All tools take this many tokens, and none is selected, or too many are.
    Large(ListSize),
    /// How many tools there are is not known yet.
    Starting,
}

impl fmt::Display for SurfaceReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requested => f.write_str("Set by the client, its profile or `surface.tools`."),
            Self::Starting => f.write_str("Not all servers have listed their tools yet."),
            Self::OwnNames => f.write_str("The profile gives tools its own names."),
            Self::Small(all) => write!(f, "{all}, which is within the limit of {MAX_FULL_TOKENS}."),
            Self::Servers { all, listed } => write!(
                f,
                "{all}, more than {MAX_FULL_TOKENS}. The {} tools of servers and of `surface.listed` take about {}.",
                listed.tools,
                listed.tokens()
            ),
            Self::Selected { all, listed } => write!(
                f,
                "{all}, more than {MAX_FULL_TOKENS}, and so do those of servers. The {} tools of `surface.listed` take about {}.",
                listed.tools,
                listed.tokens()
            ),
            Self::Large(all) => write!(
                f,
                "{all}, more than {MAX_FULL_TOKENS}, and `surface.listed` matches no tools, or more than {MAX_LISTED_TOKENS} tokens of them."
            ),
        }
    }
}

impl fmt::Display for ListSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "All {} tools take about {} tokens", self.tools, self.tokens())
    }
}

impl SurfaceChoice {
    pub fn requested(surface: Surface) -> Self {
        Self { surface, reason: SurfaceReason::Requested }
    }

    /// For a new client of a profile, which may request a surface, and whose caller is shown these entries.
    pub fn new(view: &View, requested: Option<Surface>, shows: impl Fn(&Entry) -> bool) -> Self {
        match requested.unwrap_or(view.profile.surface) {
            Surface::Auto => {
                let list = view.rendered_list(ItemKind::Tool);
                Self::automatic(&view.profile, list, view.is_starting, shows)
            }
            surface => Self::requested(surface),
        }
    }

    /// What `auto` chooses for a list. While sources are starting, the list is taken for the beginning of a long one.
    pub fn automatic(
        profile: &Profile,
        list: &RenderedList,
        is_starting: bool,
        shows: impl Fn(&Entry) -> bool,
    ) -> Self {
        if profile.passthrough_source().is_some() || profile.override_names().next().is_some() {
            return Self { surface: Surface::Full, reason: SurfaceReason::OwnNames };
        }
        let [mut all, mut servers, mut selected] = [ListSize::default(); 3];
        for entry in list.entries.iter().filter(|entry| !is_find_or_call_tool(entry) && shows(entry)) {
            let bytes = model_bytes(&entry.definition());
            let is_selected = profile.listed.includes(entry);
            all.add(bytes);
            if is_selected {
                selected.add(bytes);
            }
            if is_selected || is_of_user(entry) {
                servers.add(bytes);
            }
        }
        let (surface, reason) = if all.tokens() <= MAX_FULL_TOKENS && !is_starting {
            (Surface::Full, SurfaceReason::Small(all))
        } else if servers.tools > 0 && servers.tokens() <= MAX_FULL_TOKENS {
            (Surface::Servers, SurfaceReason::Servers { all, listed: servers })
        } else if selected.tools > 0 && selected.tokens() <= MAX_LISTED_TOKENS {
            (Surface::Profile, SurfaceReason::Selected { all, listed: selected })
        } else {
            (Surface::Find, SurfaceReason::Large(all))
        };
        Self { surface, reason: if is_starting { SurfaceReason::Starting } else { reason } }
    }
}
