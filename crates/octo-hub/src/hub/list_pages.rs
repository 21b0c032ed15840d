//! Paginated lists, filtered by what the caller may see.

use crate::catalogue::client_features::ClientFeatures;
use crate::catalogue::item::Entry;
use crate::catalogue::list_epoch::ClientEpoch;
use crate::catalogue::profile_view::View;
use crate::catalogue::rendered_list::RenderedList;
use crate::hub::Hub;
use crate::pipeline::policy::is_visible;
use octo_model::{Caller, ItemKind, Json, RpcError, ToolError};
use std::sync::Arc;

/// Large enough that clients which ignore cursors still see everything in a hand-written configuration.
const PAGE_SIZE: usize = 1_000;

/// One page of a list.
pub struct Page {
    pub items: Json,
    pub next: Option<String>,
    pub view: Arc<View>,
}

impl Hub {
    /// Returns a page of a list as it is now.
    pub async fn list(
        &self,
        profile: &str,
        kind: ItemKind,
        caller: &Caller,
        cursor: Option<&str>,
    ) -> Result<Page, ToolError> {
        self.wait_for_startup_listing(profile).await;
        let view = self.view(profile)?;
        let list = Arc::clone(view.rendered_list(kind));
        self.page(&list, view, caller, ClientFeatures::default(), cursor)
    }

    /// Returns a page of a list as it is in the epoch of a client, as far as its extensions require.
    pub async fn list_in_epoch(
        &self,
        client: &ClientEpoch,
        profile: &str,
        kind: ItemKind,
        caller: &Caller,
        features: ClientFeatures,
        cursor: Option<&str>,
    ) -> Result<Page, ToolError> {
        self.wait_for_startup_listing(profile).await;
        let view = self.view(profile)?;
        // Such a profile is the server itself, as it is. The digests of skills must be those of their files.
        let is_live = view.profile.passthrough_source().is_some() || kind == ItemKind::Skill;
        let list = match is_live {
            true => Some(Arc::clone(view.rendered_list(kind))),
            false => self.catalogue.epoch(client, profile).map(|epoch| epoch.list(kind)),
        };
        self.page(&list.unwrap_or_default(), view, caller, features, cursor)
    }

    /// Returns another name for an item that a client knows from its epoch, if the listed one means something else by
    /// now: names depend on what other servers offer.
    pub fn name_in_epoch(
        &self,
        client: &ClientEpoch,
        profile: &str,
        kind: ItemKind,
        name: &str,
    ) -> Option<String> {
        let list = client.current()?.list(kind);
        let (known, _) = list.find(name).filter(|(entry, _)| entry.tool_override.is_none())?;
        let (source, key) = (known.item.source.name(), &known.item.key);
        let view = self.view(profile).ok()?;
        let live = view.by_name(kind, name);
        let is_same = |entry: &Entry| entry.item.source.name() == source && entry.item.key == *key;
        let full = format!("{source}:{key}");
        match live {
            Some(entry) if is_same(entry) || entry.tool_override.is_some() => None,
            Some(_) => Some(full),
            None => view.by_name(kind, &full).map(|_| full),
        }
    }

    /// Lists and calls use the same decision, so callers never see what they may not call.
    fn page(
        &self,
        list: &RenderedList,
        view: Arc<View>,
        caller: &Caller,
        features: ClientFeatures,
        cursor: Option<&str>,
    ) -> Result<Page, ToolError> {
        let from = match cursor {
            None => 0,
            Some(cursor) => {
                parse_cursor(cursor).filter(|from| *from < list.len()).ok_or_else(invalid_cursor)?
            }
        };
        let policy = Arc::clone(&self.rules().policy);
        // All callers see the same list, so it is rendered once.
        let is_same_for_all =
            policy.allows_everything() && list.entries.iter().all(|entry| features.lists(entry));
        if is_same_for_all && from.is_multiple_of(PAGE_SIZE) {
            let all = list.rendered_for(features.apps);
            let end = (from + PAGE_SIZE).min(all.len());
            let items = list.page(features.apps, from / PAGE_SIZE, || {
                Json::array(all.get(from..end).unwrap_or_default())
            });
            let next = (end < all.len()).then(|| format!("from-{end}"));
            return Ok(Page { items, next, view });
        }
        let allowed = list
            .entries
            .iter()
            .zip(list.rendered_for(features.apps))
            .enumerate()
            .skip(from)
            .filter(|(_, (entry, _))| features.lists(entry))
            .filter(|(_, (entry, _))| is_visible(&*policy, &view.profile.name, caller, entry));
        let mut page: Vec<(usize, &Json)> =
            allowed.map(|(at, (_, json))| (at, json)).take(PAGE_SIZE + 1).collect();
        let more = if page.len() > PAGE_SIZE { page.pop() } else { None };
        let items = Json::array(page.into_iter().map(|(_, json)| json));
        Ok(Page { items, next: more.map(|(at, _)| format!("from-{at}")), view })
    }
}

fn parse_cursor(cursor: &str) -> Option<usize> {
    cursor.strip_prefix("from-")?.parse().ok()
}

fn invalid_cursor() -> ToolError {
    let message = "Invalid cursor.";
    ToolError::invalid(message).hint("Start again without a cursor.").rpc(RpcError {
        code: -32602,
        message: message.to_owned(),
        data: None,
    })
}
