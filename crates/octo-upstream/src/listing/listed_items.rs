//! The definitions of one list of a server, page by page, within limits.

use crate::listing::listing_codec::parse_definition;
use crate::session::connection::ToolHeaderParams;
use crate::transport::header_params;
use octo_model::{ItemKind, Json, JsonObject};
use octo_ports::pins::{MAX_DEFINITION_BYTES, MAX_PINNED_BYTES};
use octo_toolkit::{Definition, Listing};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum memory of the listing of a server. What is listed is also pinned.
const MAX_LISTING_BYTES: usize = MAX_PINNED_BYTES;
/// Memory of a definition beside its text.
const DEFINITION_OVERHEAD: usize = 256;
/// The same for each of its members.
const MEMBER_OVERHEAD: usize = 64;
/// Larger pages are parsed on a blocking thread.
const MAX_INLINE_BYTES: usize = 64 << 10;
/// Maximum entries of a page that are looked at.
const MAX_PAGE_ENTRIES: usize = 50_000;

pub(crate) const fn list_method(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Tool => "tools/list",
        ItemKind::Prompt => "prompts/list",
        ItemKind::Resource => "resources/list",
        ItemKind::Template => "resources/templates/list",
        ItemKind::Skill => "skills/list",
    }
}

/// Memory that a definition takes, about.
fn memory_of(definition: &Definition) -> usize {
    let members = &definition.members;
    definition.key.len() + members.size() + DEFINITION_OVERHEAD + members.len() * MEMBER_OVERHEAD
}

/// The usable definitions so far.
pub(crate) struct ListedItems {
    server: Arc<str>,
    kind: ItemKind,
    pub(crate) definitions: Vec<Definition>,
    /// Parameters of tools that are also sent as headers, if the connection has headers.
    pub(crate) header_params: Option<ToolHeaderParams>,
    keys: HashSet<String>,
    bytes: usize,
    skipped: usize,
}

impl ListedItems {
    pub(crate) fn new(server: Arc<str>, kind: ItemKind, has_headers: bool) -> Self {
        Self {
            server,
            kind,
            definitions: Vec::new(),
            header_params: has_headers.then(ToolHeaderParams::new),
            keys: HashSet::new(),
            bytes: 0,
            skipped: 0,
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.bytes >= MAX_LISTING_BYTES
    }

    /// Adds the definitions of a page.
    pub(crate) async fn with_page(mut self, page: JsonObject) -> Self {
        if page.size() <= MAX_INLINE_BYTES {
            self.add_page(&page);
            return self;
        }
        let empty = Self::new(Arc::clone(&self.server), self.kind, self.header_params.is_some());
        let added = tokio::task::spawn_blocking(move || {
            self.add_page(&page);
            self
        });
        added.await.unwrap_or(empty)
    }

    fn add_page(&mut self, page: &JsonObject) {
        let entries = page.get(self.kind.list_member());
        let entries = entries.and_then(|list| list.elements_up_to(MAX_PAGE_ENTRIES).ok()).unwrap_or_default();
        for entry in entries {
            if let Err(why) = self.add(&entry) {
                self.skipped += 1;
                // A server may have any number of them.
                if self.skipped.is_power_of_two() {
                    let excerpt: String = entry.as_str().chars().take(120).collect();
                    let (list, skipped) = (list_method(self.kind), self.skipped);
                    tracing::warn!(target: "upstream", server = %self.server, list, why, excerpt, skipped, "definition skipped");
                }
            }
        }
    }

    fn add(&mut self, entry: &Json) -> Result<(), &'static str> {
        if entry.bytes().len() > MAX_DEFINITION_BYTES {
            return Err("larger than 256 KiB");
        }
        let mut definition = parse_definition(self.kind, entry)?;
        // It outlives the page.
        definition.members = definition.members.detached();
        let bytes = memory_of(&definition);
        if self.bytes + bytes > MAX_LISTING_BYTES {
            self.bytes = MAX_LISTING_BYTES;
            return Err("the lists of a server are limited to 4 MiB");
        }
        if let Some(header_params) = &mut self.header_params {
            collect_header_params(&definition, header_params)?;
        }
        if !self.keys.insert(definition.key.clone()) {
            return Err("duplicate");
        }
        self.bytes += bytes;
        self.definitions.push(definition);
        Ok(())
    }
}

fn collect_header_params(tool: &Definition, mirrors: &mut ToolHeaderParams) -> Result<(), &'static str> {
    let Some(schema) = tool.members.get("inputSchema") else {
        return Ok(());
    };
    let wanted = header_params::header_params(schema)?;
    if !wanted.is_empty() {
        mirrors.insert(tool.key.clone(), wanted);
    }
    Ok(())
}

/// Removes what exceeds the limit of all lists of a server together: the last kinds first. Returns how many definitions
/// that were.
pub(crate) fn truncate_listing(lists: &mut Listing) -> usize {
    let (mut bytes, mut removed) = (0, 0);
    let Listing { tools, prompts, resources, templates, skills, .. } = lists;
    for list in [tools, prompts, skills, templates, resources] {
        let fitting = list.iter().take_while(|definition| {
            bytes += memory_of(definition);
            bytes <= MAX_LISTING_BYTES
        });
        let kept = fitting.count();
        removed += list.len() - kept;
        list.truncate(kept);
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn items(kind: ItemKind) -> ListedItems {
        ListedItems::new("s".into(), kind, false)
    }

    fn tool(name: usize, bytes: usize) -> serde_json::Value {
        json!({"name": format!("t{name}"), "description": "x".repeat(bytes)})
    }

    fn page(tools: Vec<serde_json::Value>) -> JsonObject {
        JsonObject::new().with("tools", Json::from(json!(tools)))
    }

    #[tokio::test]
    async fn a_list_ends_at_its_limit_and_keeps_no_page() {
        let large = page((0..300).map(|name| tool(name, 100_000)).collect());
        let whole = large.get("tools").unwrap().bytes().as_ptr_range();
        let listed = items(ItemKind::Tool).with_page(large.clone()).await;
        let count = listed.definitions.len();
        assert!(listed.is_full() && (35..42).contains(&count), "{count}");
        let kept = |tool: &Definition| tool.members.get("description").unwrap().bytes().as_ptr();
        assert!(listed.definitions.iter().all(|tool| !whole.contains(&kept(tool))));
        // Small definitions have a cost, too.
        let small = page((0..40_000).map(|name| tool(name, 0)).collect());
        let listed = items(ItemKind::Tool).with_page(small).await;
        assert!(listed.definitions.len() < 20_000, "{}", listed.definitions.len());
    }

    #[tokio::test]
    async fn a_huge_definition_costs_only_itself() {
        let mixed = page(vec![tool(1, 10), tool(2, MAX_DEFINITION_BYTES), tool(3, 10)]);
        let listed = items(ItemKind::Tool).with_page(mixed).await;
        let names: Vec<&str> = listed.definitions.iter().map(|tool| tool.key.as_str()).collect();
        assert_eq!(names, ["t1", "t3"]);
    }

    #[tokio::test]
    async fn tools_come_before_resources_when_both_are_too_large() {
        let tools = items(ItemKind::Tool).with_page(page((0..25).map(|name| tool(name, 100_000)).collect()));
        let resources: Vec<_> =
            (0..25).map(|at| json!({"uri": format!("a://{at}"), "name": "x".repeat(100_000)})).collect();
        let resources = JsonObject::new().with("resources", Json::from(json!(resources)));
        let resources = items(ItemKind::Resource).with_page(resources);
        let mut lists = Listing {
            tools: tools.await.definitions,
            resources: resources.await.definitions,
            ..Listing::default()
        };
        let removed = truncate_listing(&mut lists);
        assert_eq!((lists.tools.len(), lists.resources.len()), (25, 25 - removed));
        assert!((5..15).contains(&removed), "{removed}");
    }
}
