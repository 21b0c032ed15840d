//! URIs with a server's name. Every server has its own `ui://` and `skill://` URIs, so clients get them as
//! `ui://SERVER/…`; other URIs belong to one server and stay as they are.

use octo_model::{ItemKind, Json, JsonObject, Method, Operation};
use octo_toolkit::{Definition, Listing};
use serde_json::Value;

/// Schemes with a namespace per server.
const SCOPED_SCHEMES: [&str; 2] = ["ui", "skill"];

/// Parts of a URI with one of these schemes: what is before and after `://`.
fn parts(uri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = uri.split_once("://")?;
    SCOPED_SCHEMES.iter().any(|scoped| scheme.eq_ignore_ascii_case(scoped)).then_some((scheme, rest))
}

/// Whether each server has its own URIs of this scheme.
pub fn is_scoped(uri: &str) -> bool {
    parts(uri).is_some()
}

pub fn is_app_uri(uri: &str) -> bool {
    parts(uri).is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("ui"))
}

/// The server that a client's URI names.
pub fn named_server(uri: &str) -> Option<&str> {
    let (_, rest) = parts(uri)?;
    rest.split_once('/').map(|(server, _)| server)
}

/// A server's URI as clients get it, if it differs.
pub fn to_scoped(server: &str, uri: &str) -> Option<String> {
    let (scheme, rest) = parts(uri)?;
    Some(format!("{scheme}://{server}/{rest}"))
}

/// A client's URI as the server knows it, if it differs.
pub fn to_own(server: &str, uri: &str) -> Option<String> {
    let (scheme, rest) = parts(uri)?;
    let rest = rest.strip_prefix(server)?.strip_prefix('/')?;
    Some(format!("{scheme}://{rest}"))
}

/// Names the server in all URIs of a listing.
pub fn scope_listing(server: &str, listing: &mut Listing) {
    for item in listing.tools.iter_mut().chain(&mut listing.prompts) {
        scope_meta(server, &mut item.members);
    }
    scope_uris(server, ItemKind::Resource, &mut listing.resources);
    scope_uris(server, ItemKind::Template, &mut listing.templates);
    for skill in &mut listing.skills {
        if let Some(scoped) = to_scoped(server, &skill.key) {
            skill.members = scope_skill(server, &skill.members);
            skill.key = scoped;
        }
    }
}

fn scope_uris(server: &str, kind: ItemKind, definitions: &mut [Definition]) {
    let member = if kind == ItemKind::Template { "uriTemplate" } else { "uri" };
    for definition in definitions {
        if let Some(scoped) = to_scoped(server, &definition.key) {
            definition.members.set(member, scoped.as_str());
            definition.key = scoped;
        }
    }
}

/// The operation with the server's own URIs.
pub fn own_operation(server: &str, mut op: Operation) -> Operation {
    match op.method {
        Method::ReadResource | Method::Subscribe | Method::Unsubscribe | Method::GetSkill => {
            if let Some(own) = to_own(server, &op.name) {
                op.params.set("uri", own.as_str());
                op.name = own;
            }
        }
        Method::Complete => {
            let reference = op.params.object("ref");
            if let Some(own) = reference.text("uri").and_then(|uri| to_own(server, &uri)) {
                op.params.set("ref", reference.with("uri", own.as_str()));
                op.name = own;
            }
        }
        Method::CallTool | Method::GetPrompt => {}
    }
    op
}

/// Names the server in the links and embedded resources of a result.
pub fn scope_result(server: &str, method: Method, mut result: JsonObject) -> JsonObject {
    scope_meta(server, &mut result);
    match method {
        Method::CallTool => scope_list(server, &mut result, "content", scope_block),
        Method::GetPrompt => scope_list(server, &mut result, "messages", |server, message| {
            let content = scope_block(server, &message.object("content"))?;
            Some(message.clone().with("content", content))
        }),
        Method::ReadResource => scope_list(server, &mut result, "contents", |server, contents| {
            let mut contents = scope_member(server, contents, "uri")?;
            scope_meta(server, &mut contents);
            Some(contents)
        }),
        Method::GetSkill => {
            let skill = scope_skill(server, &result.object("skill"));
            result.set("skill", skill);
        }
        Method::Complete | Method::Subscribe | Method::Unsubscribe => {}
    }
    result
}

/// Names the server in the entry of a skill and its files.
fn scope_skill(server: &str, skill: &JsonObject) -> JsonObject {
    let mut skill = scope_member(server, skill, "uri").unwrap_or_else(|| skill.clone());
    scope_list(server, &mut skill, "resources", |server, file| scope_member(server, file, "uri"));
    skill
}

/// Changes the elements of a list that contain a scoped URI.
fn scope_list(
    server: &str,
    result: &mut JsonObject,
    member: &str,
    scope: impl Fn(&str, &JsonObject) -> Option<JsonObject>,
) {
    let Some(list) = result.get(member).filter(|list| may_have_scoped_uri(list)) else { return };
    let Ok(elements) = list.elements() else { return };
    let scoped = elements.into_iter().map(|element| {
        let changed = element.members().ok().and_then(|members| scope(server, &members));
        changed.map_or(element, |members| members.to_json())
    });
    let scoped: Vec<Json> = scoped.collect();
    result.set(member, Json::array(&scoped));
}

fn may_have_scoped_uri(json: &Json) -> bool {
    // A slash may be written as `\/`.
    json.as_str().contains("ui:") || json.as_str().contains("skill:")
}

fn scope_block(server: &str, block: &JsonObject) -> Option<JsonObject> {
    match block.text("type").as_deref() {
        Some("resource_link") => scope_member(server, block, "uri"),
        Some("resource") => {
            let resource = scope_member(server, &block.object("resource"), "uri")?;
            Some(block.clone().with("resource", resource))
        }
        _ => None,
    }
}

fn scope_member(server: &str, members: &JsonObject, member: &str) -> Option<JsonObject> {
    let scoped = to_scoped(server, &members.text(member)?)?;
    Some(members.clone().with(member, scoped.as_str()))
}

/// Names the server in the `ui://` URIs of `_meta`, wherever they are: products use different members.
fn scope_meta(server: &str, members: &mut JsonObject) {
    let Some(meta) = members.get("_meta").filter(|meta| may_have_scoped_uri(meta)) else { return };
    let Ok(mut value) = meta.to::<Value>() else { return };
    if scope_values(server, &mut value) > 0 {
        members.set("_meta", Json::from(value));
    }
}

/// Returns how many URIs there were.
fn scope_values(server: &str, value: &mut Value) -> usize {
    match value {
        Value::String(text) => match to_scoped(server, text) {
            Some(scoped) => {
                *text = scoped;
                1
            }
            None => 0,
        },
        Value::Array(values) => values.iter_mut().map(|value| scope_values(server, value)).sum(),
        Value::Object(members) => members.values_mut().map(|value| scope_values(server, value)).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_app_and_skill_uris_get_the_name_of_their_server() {
        for (own, scoped) in [
            ("ui://weather/dash.html", "ui://maps/weather/dash.html"),
            ("ui://dash", "ui://maps/dash"),
            ("UI://dash", "UI://maps/dash"),
            ("ui://maps/x", "ui://maps/maps/x"),
            ("skill://git/SKILL.md", "skill://maps/git/SKILL.md"),
            ("ui://{page}/x", "ui://maps/{page}/x"),
        ] {
            assert_eq!(to_scoped("maps", own).as_deref(), Some(scoped));
            assert_eq!(to_own("maps", scoped).as_deref(), Some(own));
            assert_eq!(named_server(scoped), Some("maps"));
            assert_eq!(to_own("map", scoped), None);
        }
        for other in ["file:///a", "https://x.test/ui://y", "ui:", "ui:/x", "", "gui://x", "mcp-ui://x"] {
            assert_eq!((to_scoped("maps", other), to_own("maps", other)), (None, None), "{other}");
        }
        assert!(is_app_uri("ui://x") && !is_app_uri("skill://x") && is_scoped("skill://x"));
        assert_eq!((named_server("ui://x"), named_server("file://x/y")), (None, None));
    }

    #[test]
    fn links_and_embedded_resources_are_scoped_and_the_rest_is_left_alone() {
        let scoped = |method, result: Value| -> Value {
            let result = Json::from(result).members().unwrap();
            scope_result("a", method, result).to_json().to().unwrap()
        };
        assert_eq!(
            scoped(
                Method::CallTool,
                json!({"content": [
                    {"type": "resource_link", "uri": "ui://x", "name": "x"},
                    {"type": "resource", "resource": {"uri": "ui://y", "text": "ui://z"}},
                    {"type": "text", "text": "ui://z"},
                    {"type": "resource_link", "uri": "file:///x", "name": "x"},
                ], "structuredContent": {"uri": "ui://z"}, "_meta": {"ui": {"resourceUri": "ui://w"}, "n": 1.5}})
            ),
            json!({"content": [
                {"type": "resource_link", "uri": "ui://a/x", "name": "x"},
                {"type": "resource", "resource": {"uri": "ui://a/y", "text": "ui://z"}},
                {"type": "text", "text": "ui://z"},
                {"type": "resource_link", "uri": "file:///x", "name": "x"},
            ], "structuredContent": {"uri": "ui://z"}, "_meta": {"ui": {"resourceUri": "ui://a/w"}, "n": 1.5}})
        );
        assert_eq!(
            scoped(Method::ReadResource, json!({"contents": [{"uri": "ui://x", "text": "<p>ui://x</p>"}]})),
            json!({"contents": [{"uri": "ui://a/x", "text": "<p>ui://x</p>"}]})
        );
        assert_eq!(
            scoped(
                Method::GetPrompt,
                json!({"messages": [{"role": "user", "content": {"type": "resource_link", "uri": "skill://x/SKILL.md"}}]})
            ),
            json!({"messages": [{"role": "user", "content": {"type": "resource_link", "uri": "skill://a/x/SKILL.md"}}]})
        );
        let odd = json!({"content": "ui://x", "_meta": "ui:"});
        assert_eq!(scoped(Method::CallTool, odd.clone()), odd);
    }

    #[test]
    fn definitions_are_scoped() {
        let definition = |key: &str, members: Value| Definition {
            key: key.to_owned(),
            members: Json::from(members).members().unwrap(),
            effect: octo_model::Effect::unknown(),
            effect_origin: octo_model::EffectOrigin::Assumed,
        };
        let meta = json!({"ui": {"resourceUri": "ui://x", "visibility": ["app"]}, "ui/resourceUri": "ui://x",
            "openai/outputTemplate": "ui://x"});
        let mut listing = Listing {
            tools: vec![definition("t", json!({"name": "t", "_meta": meta}))],
            resources: vec![definition("ui://x", json!({"uri": "ui://x", "name": "x"}))],
            templates: vec![definition("ui://{x}", json!({"uriTemplate": "ui://{x}", "name": "x"}))],
            ..Listing::default()
        };
        scope_listing("a", &mut listing);
        let meta: Value = listing.tools[0].members.get("_meta").unwrap().to().unwrap();
        assert_eq!(
            meta,
            json!({"ui": {"resourceUri": "ui://a/x", "visibility": ["app"]}, "ui/resourceUri": "ui://a/x",
                "openai/outputTemplate": "ui://a/x"})
        );
        assert_eq!(listing.resources[0].key, "ui://a/x");
        assert_eq!(listing.resources[0].members.text("uri").as_deref(), Some("ui://a/x"));
        assert_eq!(listing.templates[0].members.text("uriTemplate").as_deref(), Some("ui://a/{x}"));
    }

    #[test]
    fn operations_name_what_the_server_knows() {
        let read = |uri: &str| {
            let params = JsonObject::new().with("uri", uri);
            own_operation("a", Operation { method: Method::ReadResource, name: uri.to_owned(), params })
        };
        let op = read("ui://a/x/y");
        assert_eq!((op.name.as_str(), op.params.text("uri").as_deref()), ("ui://x/y", Some("ui://x/y")));
        assert_eq!(read("ui://b/x").name, "ui://b/x");
    }
}
