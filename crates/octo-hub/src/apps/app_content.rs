//! Pins of apps: HTML that runs in the client, with what it may load and use. A changed app is held like a changed
//! definition.

use crate::trust::{ChangePolicy, canonical_text};
use aws_lc_rs::digest::{SHA256, digest};
use octo_model::{Json, JsonObject, Remedy, ToolError};
use octo_ports::{Pin, PinDelta, PinKind, PinWrite, Pins, ServerIdentity, StoreError};

/// Attempts to write while other processes write.
const MAX_ATTEMPTS: usize = 5;
/// Maximum apps per server.
const MAX_APPS: usize = 1_000;
/// Maximum bytes of what an app says about itself, beside its HTML.
const MAX_ABOUT_BYTES: usize = 8 << 10;

/// Pins of apps have a name that no server can have, because a review of definitions replaces everything that is held of
/// its server. They follow a renamed server as its other pins do.
pub fn app_pins(whose: &ServerIdentity) -> ServerIdentity {
    let name = |server: &String| format!("app:{server}");
    ServerIdentity {
        server: name(&whose.server),
        identity: name(&whose.identity),
        others: whose.others.iter().map(name).collect(),
    }
}

/// An app that a client reads.
pub struct AppContent<'a> {
    /// The server's own URI, as requested.
    pub uri: &'a str,
    pub result: &'a JsonObject,
    /// `_meta.ui` of the listed resource. Clients use it if the content has none.
    pub listed: Option<Json>,
    /// Whether it is pinned now, if it has no pin.
    pub is_pinned: bool,
}

impl AppContent<'_> {
    /// A description of the app: digests of its HTML, and the rights that it asks for.
    fn pin(&self) -> Result<Pin, ToolError> {
        let invalid = |what: &str| {
            ToolError::unavailable(format!("The app `{}` is invalid: {what}.", self.uri))
                .hint("Inform the operator of the server.")
        };
        let mut digests = Vec::new();
        for contents in self.result.list("contents") {
            let contents = contents.members().map_err(|_| invalid("its content is no object"))?;
            if contents.text("uri").as_deref() != Some(self.uri) {
                return Err(invalid("its content has another URI"));
            }
            if contents.get("text").is_some() && contents.get("blob").is_some() {
                return Err(invalid("it has both text and blob"));
            }
            let html =
                contents.get("text").or_else(|| contents.get("blob")).map(Json::as_str).unwrap_or_default();
            // Everything else says what the HTML may do.
            let mut about = contents.clone();
            about.remove("text");
            about.remove("blob");
            let digest = JsonObject::new()
                .with("html", format!("sha256:{}", sha256(html)).as_str())
                .with("about", canonical(&about.to_json()));
            digests.push(digest.to_json());
        }
        let mut text = JsonObject::new().with("contents", Json::array(&digests));
        if let Some(listed) = &self.listed {
            text.set("listed", canonical(listed));
        }
        if text.size() > MAX_ABOUT_BYTES {
            return Err(invalid("it has more than 8 KiB beside its HTML"));
        }
        let hash = sha256(text.to_json().as_str());
        Ok(Pin { kind: PinKind::App, key: self.uri.to_owned(), text: text.to_json(), hash })
    }
}

fn sha256(text: &str) -> String {
    octo_model::hex(digest(&SHA256, text.as_bytes()).as_ref())
}

/// One text for all spellings.
fn canonical(json: &Json) -> Json {
    let text = json.to::<serde_json::Value>().map(|value| canonical_text(&value)).unwrap_or_default();
    Json::parse(text).unwrap_or_else(|_| json.clone())
}

/// Refuses an app that differs from the pinned one, and holds it for review. The first one is pinned.
pub async fn check_app(
    pins: &dyn Pins,
    whose: &ServerIdentity,
    app: AppContent<'_>,
    changes: ChangePolicy,
) -> Result<(), ToolError> {
    let (server, uri) = (&whose.server, app.uri);
    let identity = app_pins(whose);
    let is_accepted =
        check_pin(pins, &identity, app.pin()?, app.is_pinned, changes).await.map_err(|error| {
            ToolError::unavailable("The pins of apps cannot be read or written.")
                .hint("Ask the operator to check the state directory.")
                .detail(error)
        })?;
    if is_accepted {
        return Ok(());
    }
    Err(ToolError::denied(format!(
        "The server `{server}` has changed the app `{uri}`, and the change has not been reviewed."
    ))
    .remedy(Remedy::ReviewDefinitions { server: server.clone() }))
}

/// Returns whether the app is the pinned one, or is pinned now.
async fn check_pin(
    pins: &dyn Pins,
    identity: &ServerIdentity,
    pin: Pin,
    is_pinned: bool,
    changes: ChangePolicy,
) -> Result<bool, StoreError> {
    for _ in 0..MAX_ATTEMPTS {
        let known = pins.load(identity).await?.pins;
        let pinned = known.iter().find(|known| known.key == pin.key);
        if pinned.is_none() && !is_pinned {
            return Ok(true);
        }
        let pending = pins.pending(&identity.server).await?;
        let is_held = pending.iter().any(|held| held.new.key == pin.key);
        if pinned.is_some_and(|pinned| pinned.hash == pin.hash) && !is_held {
            return Ok(true);
        }
        // What is not in a change is no longer held.
        let others = pending.into_iter().map(|held| held.new).filter(|held| held.key != pin.key);
        let mut delta = PinDelta { held: others.collect(), ..PinDelta::default() };
        let is_accepted = match pinned {
            Some(pinned) if pinned.hash == pin.hash => true,
            None if known.len() < MAX_APPS => {
                delta.new_pins.push(pin.clone());
                true
            }
            Some(pinned) if changes != ChangePolicy::Hold => {
                delta.replaced.push((pin.clone(), pinned.hash.clone()));
                true
            }
            _ if delta.held.len() >= MAX_APPS => return Ok(false),
            _ => {
                delta.held.push(pin.clone());
                false
            }
        };
        if let PinWrite::Written(fresh) = pins.write(identity, delta).await? {
            if fresh.iter().any(|fresh| fresh.key == pin.key) || (is_accepted && pinned.is_some() && !is_held)
            {
                tracing::warn!(target: "trust", server = identity.server, app = pin.key, is_accepted, "app changed");
            }
            return Ok(is_accepted);
        }
    }
    Err(StoreError::Conflict(octo_ports::Port::Pins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_ports::Stores;
    use serde_json::{Value, json};

    fn app(html: &str, ui: Value) -> JsonObject {
        let contents = json!([{"uri": "ui://x", "mimeType": "text/html;profile=mcp-app", "text": html, "_meta": {"ui": ui}}]);
        Json::from(json!({"contents": contents})).members().unwrap()
    }

    #[tokio::test]
    async fn changed_html_or_rights_are_held_until_accepted() {
        let pins = Stores::in_memory().pins;
        let whose = ServerIdentity { server: "maps".into(), identity: "npx maps".into(), others: Vec::new() };
        let check = async |html: &str, ui: Value, changes| {
            let app = AppContent { uri: "ui://x", result: &app(html, ui), listed: None, is_pinned: true };
            check_app(pins.as_ref(), &whose, app, changes).await
        };
        let none = json!({});
        assert!(check("<p>1", none.clone(), ChangePolicy::Hold).await.is_ok(), "the first one");
        assert!(check("<p>1", none.clone(), ChangePolicy::Hold).await.is_ok());
        let wider = json!({"csp": {"connectDomains": ["https://evil.test"]}});
        for (html, ui) in [("<p>2", none.clone()), ("<p>1", wider.clone()), ("<p>2", json!({"digest": "x"}))]
        {
            let refused = check(html, ui.clone(), ChangePolicy::Hold).await.unwrap_err();
            assert!(refused.message.contains("changed the app `ui://x`"), "{refused}");
            assert_eq!(pins.pending("app:maps").await.unwrap().len(), 1);
        }
        assert!(
            check("<p>1", none.clone(), ChangePolicy::Hold).await.is_ok(),
            "the accepted one still opens"
        );
        assert!(pins.pending("app:maps").await.unwrap().is_empty(), "and the other one is no longer offered");
        assert!(check("<p>1", wider.clone(), ChangePolicy::Hold).await.is_err());
        let held = pins.pending("app:maps").await.unwrap();
        pins.accept("app:maps", vec![held[0].new.clone()]).await.unwrap();
        assert!(check("<p>1", wider, ChangePolicy::Hold).await.is_ok());
        assert!(check("<p>3", none.clone(), ChangePolicy::Warn).await.is_ok());
        assert!(check("<p>1", none, ChangePolicy::Hold).await.is_err());
        let renamed = ServerIdentity { server: "atlas".into(), ..whose.clone() };
        let changed = app("<p>4", json!({}));
        let app = AppContent { uri: "ui://x", result: &changed, listed: None, is_pinned: true };
        assert!(
            check_app(pins.as_ref(), &renamed, app, ChangePolicy::Hold).await.is_err(),
            "pins follow the server"
        );
    }

    #[test]
    fn nothing_of_an_app_escapes_its_pin() {
        let html = "<p>1";
        let same = app(html, json!({}));
        let pin = |result: &JsonObject, listed: Option<Value>| {
            AppContent { uri: "ui://x", result, listed: listed.map(Json::from), is_pinned: true }.pin()
        };
        let first = pin(&same, None).unwrap();
        assert_ne!(
            first.hash,
            pin(&same, Some(json!({"csp": {"connectDomains": ["https://x.test"]}}))).unwrap().hash
        );
        let with = |members: Value| {
            let mut contents = json!({"uri": "ui://x", "mimeType": "text/html;profile=mcp-app", "text": html, "_meta": {"ui": {}}});
            contents.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            Json::from(json!({"contents": [contents]})).members().unwrap()
        };
        assert_eq!(first.hash, pin(&with(json!({})), None).unwrap().hash);
        for other in [
            json!({"meta": {"ui": {"csp": {}}}}),
            json!({"mimeType": "text/html"}),
            json!({"_meta": {"ui": {"permissions": {}}}}),
        ] {
            assert_ne!(first.hash, pin(&with(other.clone()), None).unwrap().hash, "{other}");
        }
        for invalid in [json!({"blob": "PHA+"}), json!({"uri": "ui://y"})] {
            assert!(pin(&with(invalid.clone()), None).is_err(), "{invalid}");
        }
    }
}
