//! Paginated lists, filtered by what the caller may see.

use crate::catalogue::profile_view::View;
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
    /// Returns a page of a list. Lists and calls use the same decision, so callers never see what they may
    /// not call.
    pub async fn list(
        &self,
        profile: &str,
        kind: ItemKind,
        caller: &Caller,
        cursor: Option<&str>,
    ) -> Result<Page, ToolError> {
        self.wait_for_startup_listing(profile).await;
        let view = self.view(profile)?;
        let from = match cursor {
            None => 0,
            Some(cursor) => parse_cursor(cursor)
                .filter(|from| *from < view.list(kind).len())
                .ok_or_else(invalid_cursor)?,
        };
        let policy = Arc::clone(&self.rules().policy);
        // All callers see the same list, so it is rendered once.
        if policy.allows_everything() && from.is_multiple_of(PAGE_SIZE) {
            let all = view.rendered(kind);
            let end = (from + PAGE_SIZE).min(all.len());
            let items =
                view.page(kind, from / PAGE_SIZE, || Json::array(all.get(from..end).unwrap_or_default()));
            let next = (end < all.len()).then(|| format!("from-{end}"));
            return Ok(Page { items, next, view });
        }
        let allowed = view
            .list(kind)
            .iter()
            .zip(view.rendered(kind))
            .enumerate()
            .skip(from)
            .filter(|(_, (entry, _))| is_visible(&*policy, profile, caller, entry));
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
