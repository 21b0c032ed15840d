//! Paginated lists, filtered by what the caller may see.

use crate::apps::app_tool::without_apps;
use crate::catalogue::client_features::ClientFeatures;
use crate::catalogue::item::Entry;
use crate::catalogue::list_epoch::ClientEpoch;
use crate::catalogue::profile_view::View;
use crate::catalogue::rendered_list::{ListVariant, RenderedList, for_models};
use crate::catalogue::surface::{ListOptions, Surface};
use crate::catalogue::surface_choice::SurfaceChoice;
use crate::hub::Hub;
use crate::pipeline::policy::is_visible;
use octo_model::{Caller, ItemKind, Json, RpcError, ToolError};
use std::sync::Arc;

/// Large enough that clients which ignore cursors still see everything in a hand-written configuration.
const PAGE_SIZE: usize = 1_000;

/// What a client wants to see of a list.
pub struct ListRequest<'a> {
    pub kind: ItemKind,
    pub caller: &'a Caller,
    pub features: ClientFeatures,
    pub options: ListOptions,
    pub cursor: Option<&'a str>,
}

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
        self.page(&list, view, caller, ListVariant::default(), cursor)
    }

    /// Returns a page of a list as it is in the epoch of a client, as far as its extensions require.
    pub async fn list_in_epoch(
        &self,
        client: &ClientEpoch,
        profile: &str,
        request: ListRequest<'_>,
    ) -> Result<Page, ToolError> {
        let ListRequest { kind, caller, features, options, cursor } = request;
        self.wait_for_startup_listing(profile).await;
        let view = self.view(profile)?;
        // Such a profile is the server itself, as it is. The digests of skills must be those of their files.
        let is_live = view.profile.passthrough_source().is_some() || kind == ItemKind::Skill;
        let epoch = if is_live { None } else { self.catalogue.epoch(client, profile) };
        let list = match &epoch {
            None if is_live => Arc::clone(view.rendered_list(kind)),
            None => Arc::default(),
            Some(epoch) => epoch.list(kind),
        };
        let surface = match options.surface.unwrap_or(view.profile.surface) {
            Surface::Auto => epoch.map_or(Surface::Full, |epoch| {
                let policy = &*self.rules().policy;
                let shows = |entry: &Entry| is_visible(policy, &view.profile.name, caller, entry);
                epoch.automatic_surface(&view, &caller.principal, shows).surface
            }),
            surface => surface,
        };
        let variant = ListVariant { features, surface: Some((surface, view.structure(options))) };
        self.page(&list, view, caller, variant, cursor)
    }

    /// What a new client of a profile is listed, and why.
    pub fn surface(
        &self,
        profile: &str,
        caller: &Caller,
        requested: Option<Surface>,
    ) -> Result<SurfaceChoice, ToolError> {
        let (view, rules) = (self.view(profile)?, self.rules());
        let shows = |entry: &Entry| is_visible(&*rules.policy, &view.profile.name, caller, entry);
        Ok(SurfaceChoice::new(&view, requested, shows))
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
        variant: ListVariant,
        cursor: Option<&str>,
    ) -> Result<Page, ToolError> {
        let shown = list.variant(variant, &view.profile.listed);
        let count = shown.rendered.len();
        let from = match cursor {
            None => 0,
            Some(cursor) => parse_cursor(cursor).filter(|from| *from < count).ok_or_else(invalid_cursor)?,
        };
        let policy = Arc::clone(&self.rules().policy);
        let is_allowed = |entry: &Entry| is_visible(&*policy, &view.profile.name, caller, entry);
        let additional: Vec<Json> = match variant.surface {
            Some((surface, structure)) if from == 0 => {
                let missing = view.unlisted_hub_tools(surface).into_iter().filter(is_allowed);
                let render = |entry: Entry| {
                    let json = for_models(&entry, entry.rendered(), structure);
                    if variant.features.apps { without_apps(&json) } else { json }
                };
                missing.map(render).collect()
            }
            _ => Vec::new(),
        };
        // All callers see the same list, so it is rendered once.
        if policy.allows_everything() && additional.is_empty() && from.is_multiple_of(PAGE_SIZE) {
            let end = (from + PAGE_SIZE).min(count);
            let items = shown
                .page(from / PAGE_SIZE, || Json::array(shown.rendered.get(from..end).unwrap_or_default()));
            let next = (end < count).then(|| format!("from-{end}"));
            return Ok(Page { items, next, view });
        }
        let entry = |at: &usize| list.entries.get(*at);
        let allowed = shown
            .positions
            .iter()
            .zip(&shown.rendered)
            .enumerate()
            .skip(from)
            .filter(|(_, (at, _))| entry(at).is_some_and(is_allowed));
        let mut page: Vec<(usize, &Json)> =
            allowed.map(|(at, (_, json))| (at, json)).take(PAGE_SIZE + 1).collect();
        let more = if page.len() > PAGE_SIZE { page.pop() } else { None };
        let items = Json::array(additional.iter().chain(page.into_iter().map(|(_, json)| json)));
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
