//! Names from inside apps: a server's own names of its tools and URIs.

use crate::catalogue::list_epoch::ClientEpoch;
use crate::catalogue::profile_view::View;
use crate::catalogue::scoped_uris;
use crate::hub::Hub;
use octo_model::ItemKind;

impl Hub {
    /// Records that a client reads the HTML of an app. Returns the URI by which the hub knows it, if it is another one: from
    /// inside an app, it is the server's own.
    pub fn open_app(&self, client: &ClientEpoch, profile: &str, uri: &str) -> Option<String> {
        let view = self.view(profile).ok().filter(|_| scoped_uris::is_app_uri(uri))?;
        if let Some(known) = app_with_own_uri(&view, uri) {
            return Some(known);
        }
        // A server without apps cannot be opened.
        let named = scoped_uris::named_server(uri).filter(|server| view.app_servers.contains(*server));
        client.apps().add(named?);
        None
    }

    /// Records that a client calls a tool that has an app.
    pub fn open_app_of_tool(&self, client: &ClientEpoch, profile: &str, name: &str) {
        let Ok(view) = self.view(profile) else { return };
        if let Some(entry) = view.by_name(ItemKind::Tool, name).filter(|entry| entry.item.app.is_part_of_app)
        {
            client.apps().add(entry.source_name());
        }
    }

    /// Returns the name by which the hub knows a tool that is called from inside an app, where it has the server's own name.
    /// The client must have opened an app of that server, and no other server with apps may have such a tool: nothing tells
    /// which app is calling.
    pub fn tool_of_app(&self, client: &ClientEpoch, profile: &str, name: &str) -> Option<String> {
        let view = self.view(profile).ok()?;
        let full = |server: &str| format!("{server}:{name}");
        let is_callable = |server: &str| {
            let entry = view.by_name(ItemKind::Tool, &full(server));
            entry.is_some_and(|entry| entry.item.app.is_for_app)
        };
        if view.by_name(ItemKind::Tool, name).is_some() {
            return None;
        }
        let mut servers = view.app_servers.iter().filter(|server| is_callable(server));
        let server = servers.next().filter(|_| servers.next().is_none())?;
        client.apps().contains(server).then(|| full(server))
    }
}

/// The URI by which clients know an app, if only one server has an app with this URI. A URI that names a server is never
/// that of another server.
fn app_with_own_uri(view: &View, uri: &str) -> Option<String> {
    if view.app_uris.contains(uri) {
        return None;
    }
    let named = scoped_uris::named_server(uri).filter(|server| view.servers.contains_key(*server));
    let may_have = |server: &&String| named.is_none_or(|named| named == server.as_str());
    let scoped = view.servers.keys().filter(may_have);
    let scoped = scoped.filter_map(|server| scoped_uris::to_scoped(server, uri));
    let mut known = scoped.filter(|scoped| view.app_uris.contains(scoped));
    known.next().filter(|_| known.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::item::tests::{stub_item, stub_source};
    use crate::catalogue::profile::Profile;
    use crate::catalogue::profile_view::SourceSnapshot;
    use octo_toolkit::{ListingState, SourceState};
    use serde_json::json;
    use std::sync::Arc;

    /// A server with an app at this URI, as clients get it.
    fn app_server(name: &'static str, uri: &str) -> SourceSnapshot {
        let source = stub_source(name);
        let tool = json!({"name": "show", "_meta": {"ui": {"resourceUri": uri}}});
        let item = stub_item(&source, ItemKind::Tool, "show", tool);
        SourceSnapshot {
            listing: ListingState { state: SourceState::Ready, listing: Arc::default(), version: 1 },
            items: Arc::new(vec![Arc::new(item)]),
            source,
            name: name.to_owned(),
            is_native: false,
            is_carried_over: false,
        }
    }

    #[test]
    fn a_uri_that_names_a_server_is_never_that_of_another() {
        let servers = [
            app_server("maps", "ui://maps/board"),
            app_server("evil", "ui://evil/maps/dash"),
            app_server("chess", "ui://chess/chess/game"),
            app_server("one", "ui://one/same"),
            app_server("two", "ui://two/same"),
        ];
        let view = View::new(1, Profile::everything(), &servers);
        for (uri, expected) in [
            ("ui://board", Some("ui://maps/board")),
            ("ui://chess/game", Some("ui://chess/chess/game")),
            ("ui://maps/dash", None),
            ("ui://evil/maps/dash", None),
            ("ui://nobody/board", None),
            ("ui://same", None),
        ] {
            assert_eq!(app_with_own_uri(&view, uri).as_deref(), expected, "{uri}");
        }
    }
}
