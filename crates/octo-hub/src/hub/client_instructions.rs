//! Instructions of the hub for the model of a client.

use crate::catalogue::item::Entry;
use crate::catalogue::list_epoch::ClientEpoch;
use crate::catalogue::profile_view::View;
use crate::catalogue::surface::{ListOptions, Surface};
use crate::catalogue::surface_choice::SurfaceChoice;
use crate::find::tools_call::is_find_or_call_tool;
use crate::find::tools_find::FIND_TOOL;
use crate::hub::Hub;
use crate::pipeline::policy::is_visible;
use octo_model::{Caller, ItemKind};
use std::collections::BTreeSet;

const INSTRUCTIONS: &str = "Tools of this hub and of the servers behind it. A server's tools begin with its name and two underscores. A \
truncated reply names a handle: read the rest with result_read.";

/// Servers that are named. Models see the instructions in every conversation.
const MAX_SERVERS: usize = 30;

impl Hub {
    /// The instructions of a profile, as the client got them first.
    pub async fn instructions(
        &self,
        client: &ClientEpoch,
        profile: &str,
        caller: &Caller,
        options: ListOptions,
    ) -> String {
        self.wait_for_startup_listing(profile).await;
        match self.view(profile) {
            Ok(view) => {
                client.instructions(&view, options.surface, || self.own_instructions(&view, caller, options))
            }
            Err(_) => INSTRUCTIONS.to_owned(),
        }
    }

    /// Names the servers of the tools that are not listed, so that the model searches for them.
    fn own_instructions(&self, view: &View, caller: &Caller, options: ListOptions) -> String {
        let policy = &*self.rules().policy;
        let shows = |entry: &Entry| is_visible(policy, &view.profile.name, caller, entry);
        let surface = SurfaceChoice::new(view, options.surface, shows).surface;
        let tools = &view.rendered_list(ItemKind::Tool).entries;
        let additional = view.unlisted_hub_tools(surface);
        let mut found = tools
            .iter()
            .chain(&additional)
            .filter(|entry| is_find_or_call_tool(entry) && entry.item.key == FIND_TOOL);
        if !found.any(|entry| surface.lists(&view.profile.listed, entry) && shows(entry)) {
            return INSTRUCTIONS.to_owned();
        }
        let unlisted = tools
            .iter()
            .filter(|entry| !is_find_or_call_tool(entry) && !surface.lists(&view.profile.listed, entry))
            .filter(|entry| shows(entry));
        let servers: BTreeSet<&str> = unlisted.map(Entry::source_name).collect();
        if servers.is_empty() {
            return INSTRUCTIONS.to_owned();
        }
        let more = if servers.len() > MAX_SERVERS { ", …" } else { "" };
        let servers: Vec<&str> = servers.into_iter().take(MAX_SERVERS).collect();
        let how = if surface == Surface::Code { "in programs of run_code" } else { "with tools_call" };
        format!(
            "{INSTRUCTIONS} More tools are not listed: find them with tools_find and call them {how}. They belong to {}{more}.",
            servers.join(", ")
        )
    }
}
