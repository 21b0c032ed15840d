//! The lists of a server: all their pages, kept up to date for as long as the connection lasts.

use crate::backoff::Backoff;
use crate::connection::{Connection, Mirrors};
use crate::fail::{Fail, Outcome};
use crate::kind::Kind;
use crate::listers::Present;
use crate::mirror;
use crate::state::Inner;
use futures_util::future::join_all;
use octo_model::{Effect, Json, JsonObject};
use octo_toolkit::{Definition, Listing};
use octo_wire::{Era, code};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Notices of changes come in swarms.
const DEBOUNCE: Duration = Duration::from_millis(50);
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
/// A server that invents cursors without end is stopped here.
const MAX_PAGES: usize = 1000;

/// Lists everything, and again whatever changes.
pub(crate) async fn keep(inner: Arc<Inner>, connection: Arc<Connection>) {
    let mut backoff = Backoff::default();
    let mut kinds = Kind::ALL.to_vec();
    let present = inner.listers.enter(connection.number);
    inner.changes.take();
    loop {
        match refresh(&inner, &connection, &kinds).await {
            Ok(()) => {
                backoff.reset();
                kinds = changed(&inner, &present).await;
            }
            Err(_) if connection.lost.is_set() => return,
            Err(why @ (Fail::NotSent(_) | Fail::Expired | Fail::Login(_) | Fail::Lost(_))) => {
                return connection.lost.set(why);
            }
            Err(why) => {
                inner.cannot_list(&why);
                tokio::time::sleep(backoff.next().max(SHORTEST_WAIT)).await;
                kinds = Kind::ALL.to_vec();
            }
        }
    }
}

/// What has changed. Of several connections to the server only the last is told.
async fn changed(inner: &Inner, present: &Present) -> Vec<Kind> {
    loop {
        present.until_last(true).await;
        tokio::select! {
            () = inner.changes.heard() => break,
            () = present.until_last(false) => {}
        }
    }
    tokio::time::sleep(DEBOUNCE).await;
    inner.changes.take()
}

/// Asks for these lists and shows what came.
pub(crate) async fn refresh(inner: &Inner, connection: &Connection, kinds: &[Kind]) -> Outcome<()> {
    let mut lists = inner.board().listing.borrow().listing.as_ref().clone();
    let capabilities = &connection.server.capabilities;
    lists.instructions = connection.server.instructions.clone();
    lists.completes = capabilities.get("completions").is_some_and(Json::is_object);
    lists.subscribes = capabilities.object("resources").is_true("subscribe");
    let whole = kinds.len() == Kind::ALL.len();
    let mut ttl = if whole { None } else { lists.ttl_ms };
    let limit = inner.spec.list_timeout;
    let found = join_all(kinds.iter().map(|kind| pages(connection, *kind, limit))).await;
    for (kind, found) in kinds.iter().zip(found) {
        match found {
            Ok(found) => {
                ttl = smaller(ttl, found.ttl_ms);
                *part(&mut lists, *kind) = definitions(connection, *kind, &found.entries);
            }
            Err(Fail::Rpc(error)) if error.code == code::METHOD_NOT_FOUND => part(&mut lists, *kind).clear(),
            Err(why) if *kind == Kind::Tools => return Err(why),
            Err(why) => {
                tracing::warn!(target: "upstream", server = %inner.name, list = kind.method(), %why, "a list is missing");
            }
        }
    }
    lists.ttl_ms = ttl;
    inner.show(lists, connection.number).await;
    Ok(())
}

fn part(lists: &mut Listing, kind: Kind) -> &mut Vec<Definition> {
    match kind {
        Kind::Tools => &mut lists.tools,
        Kind::Prompts => &mut lists.prompts,
        Kind::Resources => &mut lists.resources,
        Kind::Templates => &mut lists.templates,
    }
}

fn smaller(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[derive(Default)]
struct Found {
    entries: Vec<Json>,
    ttl_ms: Option<u64>,
}

/// Follows the cursors to the end, or to one that has been seen before.
async fn pages(connection: &Connection, kind: Kind, limit: Duration) -> Outcome<Found> {
    let mut found = Found::default();
    if !kind.is_offered(&connection.server.capabilities) {
        return Ok(found);
    }
    let mut seen = HashSet::new();
    let mut params = JsonObject::new();
    for _ in 0..MAX_PAGES {
        let page = connection.ask_within(limit, kind.method(), params).await?;
        found.entries.extend(page.list(kind.field()));
        found.ttl_ms = smaller(found.ttl_ms, page.get("ttlMs").and_then(|ttl| ttl.to().ok()));
        let next = page.get("nextCursor").filter(|next| next.to_text().is_some());
        match next {
            Some(next) if seen.insert(next.bytes().clone()) => {
                params = JsonObject::new().with("cursor", next.clone())
            }
            _ => return Ok(found),
        }
    }
    tracing::warn!(target: "upstream", server = %connection.inbox.name, list = kind.method(), "too many pages; cut");
    Ok(found)
}

/// The entries that can be used. One that cannot is left out, never the list.
fn definitions(connection: &Connection, kind: Kind, entries: &[Json]) -> Vec<Definition> {
    let mut kept = Vec::with_capacity(entries.len());
    let mut keys = HashSet::new();
    let mut mirrors = Mirrors::new();
    let mirrors_wanted =
        kind == Kind::Tools && connection.era() == Era::Modern && connection.http().is_some();
    for entry in entries {
        let usable = definition(kind, entry).and_then(|definition| {
            if mirrors_wanted {
                mirror(&definition, &mut mirrors)?;
            }
            if keys.insert(definition.key.clone()) { Ok(definition) } else { Err("listed twice") }
        });
        match usable {
            Ok(definition) => kept.push(definition),
            Err(why) => {
                let excerpt: String = entry.as_str().chars().take(120).collect();
                tracing::warn!(target: "upstream", server = %connection.inbox.name, list = kind.method(), why, excerpt, "left out");
            }
        }
    }
    if mirrors_wanted {
        connection.mirrors.store(Arc::new(mirrors));
    }
    kept
}

pub(crate) fn definition(kind: Kind, entry: &Json) -> Result<Definition, &'static str> {
    let members = entry.members().map_err(|_| "not an object")?;
    let key = members.text(kind.key()).filter(|key| !key.is_empty()).ok_or("without a name")?;
    Ok(Definition { key, members, effect: Effect::unknown(), trusted_effect: false })
}

fn mirror(tool: &Definition, mirrors: &mut Mirrors) -> Result<(), &'static str> {
    let Some(schema) = tool.members.get("inputSchema") else {
        return Ok(());
    };
    let wanted = mirror::mirrors(schema)?;
    if !wanted.is_empty() {
        mirrors.insert(tool.key.clone(), wanted);
    }
    Ok(())
}
