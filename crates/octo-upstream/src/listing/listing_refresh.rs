//! Fetches all pages of a server's lists and keeps them up to date while the connection lasts.

use crate::error::{UpstreamError, UpstreamResult};
use crate::lifecycle::link::Link;
use crate::listing::listed_items::{ListedItems, list_method, truncate_listing};
use crate::listing::listing_election::ListingCandidate;
use crate::session::connection::Connection;
use futures_util::future::join_all;
use octo_model::{ItemKind, Json, JsonObject, extension};
use octo_toolkit::Backoff;
use octo_toolkit::{Definition, Listing};
use octo_wire::{Era, code};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Change notifications come in bursts.
const DEBOUNCE: Duration = Duration::from_millis(50);
const MIN_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Maximum pages of a list, for servers with endless cursors.
const MAX_PAGES: usize = 1000;
/// Longer cursors end a list.
const MAX_CURSOR_BYTES: usize = 8 << 10;

/// Lists all kinds, then relists what changes.
pub(crate) async fn keep_current(link: Arc<Link>, connection: Arc<Connection>) {
    let mut backoff = Backoff::default();
    let mut kinds = ItemKind::ALL.to_vec();
    let present = link.server.election.join(connection.listing_rank);
    link.server.list_changes.take();
    loop {
        match refresh(&link, &connection, &kinds).await {
            Ok(()) => {
                backoff.reset();
                kinds = wait_for_changes(&link, &present).await;
            }
            Err(_) if connection.closed.is_set() => return,
            Err(
                why @ (UpstreamError::NotSent(_)
                | UpstreamError::SessionExpired
                | UpstreamError::Unauthorized(_)
                | UpstreamError::ConnectionLost(_)),
            ) => {
                return connection.closed.set(why);
            }
            Err(why) => {
                link.report_listing_failure(&why);
                tokio::time::sleep(backoff.next_delay().max(MIN_RETRY_DELAY)).await;
                kinds = ItemKind::ALL.to_vec();
            }
        }
    }
}

/// Returns the changed kinds. Only the most recent of several links is notified.
async fn wait_for_changes(link: &Link, present: &ListingCandidate) -> Vec<ItemKind> {
    loop {
        present.wait_leadership(true).await;
        tokio::select! {
            () = link.server.list_changes.wait() => break,
            () = present.wait_leadership(false) => {}
        }
    }
    tokio::time::sleep(DEBOUNCE).await;
    link.server.list_changes.take()
}

/// Fetches these lists and publishes the result.
pub(crate) async fn refresh(link: &Link, connection: &Connection, kinds: &[ItemKind]) -> UpstreamResult<()> {
    let mut lists = link.server.listing.current().listing.as_ref().clone();
    let capabilities = &connection.server.capabilities;
    lists.instructions = connection.server.instructions.clone();
    lists.supports_completion = capabilities.get("completions").is_some_and(Json::is_object);
    lists.supports_subscribe = capabilities.object("resources").is_true("subscribe");
    lists.extensions = capabilities.object("extensions");
    let whole = kinds.len() == ItemKind::ALL.len();
    let mut ttl = if whole { None } else { lists.ttl_ms };
    let limit = link.server.spec.list_timeout;
    let found = join_all(kinds.iter().map(|kind| fetch_pages(connection, *kind, limit))).await;
    for (kind, found) in kinds.iter().zip(found) {
        match found {
            Ok(found) => {
                ttl = min_ttl(ttl, found.ttl_ms);
                *list_mut(&mut lists, *kind) = take_definitions(connection, *kind, found.items);
            }
            Err(UpstreamError::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => {
                list_mut(&mut lists, *kind).clear()
            }
            Err(why) if *kind == ItemKind::Tool => return Err(why),
            Err(why) => {
                tracing::warn!(target: "upstream", server = %link.server.name, list = list_method(*kind), %why, "cannot fetch a list");
            }
        }
    }
    lists.ttl_ms = ttl;
    let removed = truncate_listing(&mut lists);
    if removed > 0 {
        tracing::warn!(target: "upstream", server = %link.server.name, removed, "lists truncated: those of a server are limited to 4 MiB in all");
    }
    if link.lists_items() {
        let is_leader = link.server.election.is_leader(connection.listing_rank);
        link.server.listing.publish_from(lists, link.is_anonymous(), is_leader).await;
    }
    Ok(())
}

/// Whether a server with these capabilities supports the list.
fn is_offered(kind: ItemKind, capabilities: &JsonObject) -> bool {
    let capability = match kind {
        ItemKind::Tool => "tools",
        ItemKind::Prompt => "prompts",
        ItemKind::Resource | ItemKind::Template => "resources",
        ItemKind::Skill => {
            return capabilities.inner("extensions", extension::SKILLS).as_ref().is_some_and(Json::is_object);
        }
    };
    capabilities.get(capability).is_some_and(Json::is_object)
}

fn list_mut(lists: &mut Listing, kind: ItemKind) -> &mut Vec<Definition> {
    match kind {
        ItemKind::Tool => &mut lists.tools,
        ItemKind::Prompt => &mut lists.prompts,
        ItemKind::Resource => &mut lists.resources,
        ItemKind::Template => &mut lists.templates,
        ItemKind::Skill => &mut lists.skills,
    }
}

fn min_ttl(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

struct FetchedList {
    items: ListedItems,
    ttl_ms: Option<u64>,
}

/// Follows the cursors to the end, to one seen before, or until the list is full.
async fn fetch_pages(
    connection: &Connection,
    kind: ItemKind,
    limit: Duration,
) -> UpstreamResult<FetchedList> {
    let server = &connection.dispatcher.name;
    let has_headers =
        kind == ItemKind::Tool && connection.era() == Era::Modern && connection.http().is_some();
    let mut items = ListedItems::new(Arc::clone(server), kind, has_headers);
    let mut ttl_ms = None;
    let (mut seen, mut params) = (HashSet::new(), JsonObject::new());
    let mut pages = if is_offered(kind, &connection.server.capabilities) { MAX_PAGES } else { 0 };
    while pages > 0 {
        pages -= 1;
        let page = connection.request_within(limit, list_method(kind), params).await?;
        ttl_ms = min_ttl(ttl_ms, page.get("ttlMs").and_then(|ttl| ttl.to().ok()));
        let next = page.text("nextCursor").filter(|next| next.len() <= MAX_CURSOR_BYTES);
        items = items.with_page(page).await;
        match next {
            Some(next) if !items.is_full() && seen.insert(next.clone()) => {
                params = JsonObject::new().with("cursor", next.as_str());
            }
            _ => return Ok(FetchedList { items, ttl_ms }),
        }
        if pages == 0 {
            tracing::warn!(target: "upstream", %server, list = list_method(kind), "list truncated: too many pages");
        }
    }
    Ok(FetchedList { items, ttl_ms })
}

/// The definitions of a list. What the connection has to know of its tools is stored there.
fn take_definitions(connection: &Connection, kind: ItemKind, items: ListedItems) -> Vec<Definition> {
    let ListedItems { definitions, header_params, .. } = items;
    if let Some(header_params) = header_params {
        connection.header_params.store(Arc::new(header_params));
    }
    if kind == ItemKind::Tool && connection.offers_legacy_tasks() {
        let requires_task = |tool: &&Definition| {
            tool.members.inner_text("execution", "taskSupport").as_deref() == Some("required")
        };
        let tools = definitions.iter().filter(requires_task).map(|tool| tool.key.clone());
        connection.task_tools.store(Some(Arc::new(tools.collect())));
    }
    definitions
}
