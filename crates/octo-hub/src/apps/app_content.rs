//! Pins of apps: HTML that runs in the client, with what it may load and use. A changed app is held like a changed
//! definition.

use crate::trust::ChangePolicy;
use aws_lc_rs::digest::{SHA256, digest};
use octo_model::{Json, JsonObject, Remedy, ToolError};
use octo_ports::{Pin, PinDelta, PinKind, PinWrite, Pins, ServerIdentity, StoreError};

/// Attempts to write while other processes write.
const MAX_ATTEMPTS: usize = 5;
/// Maximum apps per server.
const MAX_APPS: usize = 1_000;

/// Pins of apps have a name that no server can have, because a review of definitions replaces everything that is held of
/// its server.
pub fn app_pins(server: &str) -> ServerIdentity {
    let name = format!("app:{server}");
    ServerIdentity { identity: name.clone(), server: name, others: Vec::new() }
}

/// Describes the content of an app: a digest of the HTML, and the rights that it asks for.
fn describe(uri: &str, contents: &JsonObject) -> Pin {
    let html = contents.get("text").or_else(|| contents.get("blob")).map(Json::as_str).unwrap_or_default();
    let hash = |text: &str| octo_model::hex(digest(&SHA256, text.as_bytes()).as_ref());
    let mut text = JsonObject::new().with("digest", format!("sha256:{}", hash(html)).as_str());
    for (name, value) in contents.object("_meta").object("ui").iter() {
        text.set(name, value.clone());
    }
    let hash = hash(text.to_json().as_str());
    Pin { kind: PinKind::App, key: uri.to_owned(), text: text.to_json(), hash }
}

/// Refuses an app that differs from the pinned one, and holds it for review. The first one is pinned.
pub async fn check_app(
    pins: &dyn Pins,
    server: &str,
    uri: &str,
    result: &JsonObject,
    changes: ChangePolicy,
) -> Result<(), ToolError> {
    for contents in result.list("contents") {
        let Ok(contents) = contents.members() else { continue };
        // A result may contain several files.
        let uri = contents.text("uri").unwrap_or_else(|| uri.to_owned());
        let is_accepted =
            check_pin(pins, server, describe(&uri, &contents), changes).await.map_err(|error| {
                ToolError::unavailable("The pins of apps cannot be read or written.")
                    .hint("Ask the operator to check the state directory.")
                    .detail(error)
            })?;
        if !is_accepted {
            return Err(ToolError::denied(format!(
                "The server `{server}` has changed the app `{uri}`, and the change has not been reviewed."
            ))
            .remedy(Remedy::ReviewDefinitions { server: server.to_owned() }));
        }
    }
    Ok(())
}

/// Returns whether the app is the pinned one, or is pinned now.
async fn check_pin(
    pins: &dyn Pins,
    server: &str,
    pin: Pin,
    changes: ChangePolicy,
) -> Result<bool, StoreError> {
    let identity = app_pins(server);
    for _ in 0..MAX_ATTEMPTS {
        let known = pins.load(&identity).await?.pins;
        let pinned = known.iter().find(|known| known.key == pin.key);
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
            Some(_) => {
                delta.held.push(pin.clone());
                false
            }
            None => return Ok(false),
        };
        if let PinWrite::Written(fresh) = pins.write(&identity, delta).await? {
            if fresh.iter().any(|fresh| fresh.key == pin.key) || (is_accepted && pinned.is_some() && !is_held)
            {
                tracing::warn!(target: "trust", server, app = pin.key, is_accepted, "app changed");
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
        let check = async |html: &str, ui: Value, changes| {
            check_app(pins.as_ref(), "maps", "ui://x", &app(html, ui), changes).await
        };
        let none = json!({});
        assert!(check("<p>1", none.clone(), ChangePolicy::Hold).await.is_ok(), "the first one");
        assert!(check("<p>1", none.clone(), ChangePolicy::Hold).await.is_ok());
        let wider = json!({"csp": {"connectDomains": ["https://evil.test"]}});
        for (html, ui) in [("<p>2", none.clone()), ("<p>1", wider.clone())] {
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
    }
}
