//! Encoding of a cached listing, and the fingerprint it is stored under.

use crate::upstream_spec::TransportSpec;
use aws_lc_rs::digest::{Context, SHA256};
use octo_model::{Effect, EffectOrigin, ItemKind, Json, JsonObject};
use octo_toolkit::{Definition, Listing};
use std::collections::{BTreeMap, BTreeSet};

/// Hash of the server's configuration: program or URL, and the names of variables and headers, never their values.
pub(crate) fn config_fingerprint(link: &TransportSpec) -> String {
    let mut hash = Context::new(&SHA256);
    let mut add = |part: &str| {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    match link {
        TransportSpec::Stdio(command) => {
            add("program");
            add(&command.program);
            add(&command.cwd.as_ref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default());
            add(&command.args.len().to_string());
            command.args.iter().for_each(|word| add(word));
            command.env.keys().for_each(|name| add(name));
        }
        TransportSpec::Http { url, headers } => {
            add("address");
            add(url);
            headers.keys().for_each(|name| add(name));
        }
    }
    octo_model::hex(hash.finish().as_ref())
}

/// Parses an entry of a list as a definition for the catalogue.
pub(crate) fn parse_definition(kind: ItemKind, entry: &Json) -> Result<Definition, &'static str> {
    let name = match kind {
        ItemKind::Tool | ItemKind::Prompt => "name",
        ItemKind::Resource | ItemKind::Skill => "uri",
        ItemKind::Template => "uriTemplate",
    };
    let members = entry.members().map_err(|_| "not an object")?;
    let key = members.text(name).filter(|key| !key.is_empty()).ok_or("missing name")?;
    Ok(Definition { key, members, effect: Effect::unknown(), effect_origin: EffectOrigin::Assumed })
}

pub(crate) fn encode(lists: &Listing) -> String {
    let part = |list: &[Definition]| {
        let entries: Vec<Json> = list.iter().map(|entry| entry.members.to_json()).collect();
        Json::array(&entries)
    };
    let mut known = JsonObject::new()
        .with(ItemKind::Tool.list_member(), part(&lists.tools))
        .with(ItemKind::Prompt.list_member(), part(&lists.prompts))
        .with(ItemKind::Resource.list_member(), part(&lists.resources))
        .with(ItemKind::Template.list_member(), part(&lists.templates))
        .with(ItemKind::Skill.list_member(), part(&lists.skills))
        .with("completes", lists.supports_completion)
        .with("subscribes", lists.supports_subscribe);
    if let Some(instructions) = &lists.instructions {
        known.set("instructions", Json::text(instructions));
    }
    if !lists.extensions.is_empty() {
        known.set("extensions", lists.extensions.clone());
    }
    if let Some(ttl) = lists.ttl_ms {
        known.set("ttlMs", Json::of(&ttl));
    }
    known.to_json().as_str().to_owned()
}

/// Returns `None` if the text has another format.
pub(crate) fn decode(text: String) -> Option<Listing> {
    let known = JsonObject::parse(text).ok()?;
    let part = |kind: ItemKind| {
        let entries = known.list(kind.list_member());
        entries.iter().map(|entry| parse_definition(kind, entry).ok()).collect::<Option<Vec<_>>>()
    };
    Some(Listing {
        search_texts: BTreeMap::new(),
        readers: BTreeSet::new(),
        tools: part(ItemKind::Tool)?,
        prompts: part(ItemKind::Prompt)?,
        resources: part(ItemKind::Resource)?,
        templates: part(ItemKind::Template)?,
        skills: part(ItemKind::Skill)?,
        instructions: known.text("instructions"),
        ttl_ms: known.get("ttlMs").and_then(|ttl| ttl.to().ok()),
        supports_completion: known.is_true("completes"),
        supports_subscribe: known.is_true("subscribes"),
        approvals: 0,
        extensions: known.object("extensions"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_grants::Command;
    use std::collections::BTreeMap;

    fn command(args: &[&str], env: &[(&str, &str)]) -> TransportSpec {
        TransportSpec::Stdio(Command {
            program: "npx".into(),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cwd: None,
        })
    }

    #[test]
    fn another_program_has_another_mark_and_another_key_has_not() {
        let plain = config_fingerprint(&command(&["a", "b"], &[("KEY", "one")]));
        assert_eq!(plain, config_fingerprint(&command(&["a", "b"], &[("KEY", "two")])));
        for other in [
            command(&["a"], &[("KEY", "one")]),
            command(&["ab"], &[("KEY", "one")]),
            command(&["a", "b", "KEY"], &[]),
            command(&["a", "b"], &[("OTHER", "one")]),
            TransportSpec::Http { url: "http://x.test".into(), headers: BTreeMap::new() },
        ] {
            assert_ne!(plain, config_fingerprint(&other));
        }
    }

    #[test]
    fn lists_come_back_as_they_were() {
        let text = r#"{"name":"a","inputSchema":{"type":"object"},"x-own":1.50}"#;
        let tool = parse_definition(ItemKind::Tool, &Json::parse(text).unwrap()).unwrap();
        let lists = Listing {
            tools: vec![tool],
            instructions: Some("be kind".into()),
            ttl_ms: Some(5),
            supports_subscribe: true,
            ..Listing::default()
        };
        let back = decode(encode(&lists)).unwrap();
        assert_eq!(back.tools[0].members.to_json().as_str(), text);
        assert_eq!((back.tools[0].key.as_str(), back.instructions.as_deref()), ("a", Some("be kind")));
        assert_eq!((back.ttl_ms, back.supports_completion, back.supports_subscribe), (Some(5), false, true));
        assert!(decode("[]".into()).is_none() && decode(r#"{"tools":[{}]}"#.into()).is_none());
    }
}
