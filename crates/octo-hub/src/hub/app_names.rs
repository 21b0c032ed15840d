//! Names from inside apps: a server's own names of its tools and URIs.

use crate::apps::scoped_uris;
use crate::catalogue::list_epoch::ClientEpoch;
use crate::hub::Hub;
use octo_model::ItemKind;

impl Hub {
    /// Records that a client reads the HTML of an app. Returns the URI by which the hub knows it, if it is another one: from
    /// inside an app, it is the server's own.
    pub fn open_app(&self, client: &ClientEpoch, profile: &str, uri: &str) -> Option<String> {
        let view = self.view(profile).ok().filter(|_| scoped_uris::is_app_uri(uri))?;
        // A server without apps cannot be opened.
        let named = scoped_uris::named_server(uri).filter(|server| view.app_servers.contains(*server));
        if !view.app_uris.contains(uri) {
            let scoped = view.servers.keys().filter_map(|server| scoped_uris::to_scoped(server, uri));
            let mut known = scoped.filter(|scoped| view.app_uris.contains(scoped));
            if let Some(only) = known.next().filter(|_| known.next().is_none()) {
                return Some(only);
            }
        }
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
