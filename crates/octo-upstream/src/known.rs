//! The last good list of a server, as text, and the mark under which it is kept.

use crate::kind::Kind;
use crate::listing;
use crate::spec::Link;
use aws_lc_rs::digest::{Context, SHA256};
use octo_model::{Json, JsonObject};
use octo_toolkit::{Definition, Listing};

/// A hash of what the server is: its program or its address, and the names of what it is told, never the values.
pub(crate) fn mark(link: &Link) -> String {
    let mut hash = Context::new(&SHA256);
    let mut add = |part: &str| {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    };
    match link {
        Link::Child(command) => {
            add("program");
            add(&command.program);
            add(&command.cwd.as_ref().map(|cwd| cwd.to_string_lossy()).unwrap_or_default());
            add(&command.args.len().to_string());
            command.args.iter().for_each(|word| add(word));
            command.env.keys().for_each(|name| add(name));
        }
        Link::Http { url, headers } => {
            add("address");
            add(url);
            headers.keys().for_each(|name| add(name));
        }
    }
    hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn write(lists: &Listing) -> String {
    let part = |list: &[Definition]| {
        let entries: Vec<Json> = list.iter().map(|entry| entry.members.to_json()).collect();
        Json::array(&entries)
    };
    let mut known = JsonObject::new()
        .with(Kind::Tools.field(), part(&lists.tools))
        .with(Kind::Prompts.field(), part(&lists.prompts))
        .with(Kind::Resources.field(), part(&lists.resources))
        .with(Kind::Templates.field(), part(&lists.templates))
        .with("completes", lists.completes)
        .with("subscribes", lists.subscribes);
    if let Some(instructions) = &lists.instructions {
        known.set("instructions", Json::text(instructions));
    }
    if let Some(ttl) = lists.ttl_ms {
        known.set("ttlMs", Json::of(&ttl));
    }
    known.to_json().as_str().to_owned()
}

/// Nothing, where the text is not one of ours.
pub(crate) fn read(text: String) -> Option<Listing> {
    let known = JsonObject::parse(text).ok()?;
    let part = |kind: Kind| {
        let entries = known.list(kind.field());
        entries.iter().map(|entry| listing::definition(kind, entry).ok()).collect::<Option<Vec<_>>>()
    };
    Some(Listing {
        tools: part(Kind::Tools)?,
        prompts: part(Kind::Prompts)?,
        resources: part(Kind::Resources)?,
        templates: part(Kind::Templates)?,
        instructions: known.text("instructions"),
        ttl_ms: known.get("ttlMs").and_then(|ttl| ttl.to().ok()),
        completes: known.is_true("completes"),
        subscribes: known.is_true("subscribes"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use octo_grants::Command;
    use std::collections::BTreeMap;

    fn command(args: &[&str], env: &[(&str, &str)]) -> Link {
        Link::Child(Command {
            program: "npx".into(),
            args: args.iter().map(|word| (*word).to_owned()).collect(),
            env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            cwd: None,
        })
    }

    #[test]
    fn another_program_has_another_mark_and_another_key_has_not() {
        let plain = mark(&command(&["a", "b"], &[("KEY", "one")]));
        assert_eq!(plain, mark(&command(&["a", "b"], &[("KEY", "two")])));
        for other in [
            command(&["a"], &[("KEY", "one")]),
            command(&["ab"], &[("KEY", "one")]),
            command(&["a", "b", "KEY"], &[]),
            command(&["a", "b"], &[("OTHER", "one")]),
            Link::Http { url: "http://x.test".into(), headers: BTreeMap::new() },
        ] {
            assert_ne!(plain, mark(&other));
        }
    }

    #[test]
    fn lists_come_back_as_they_were() {
        let text = r#"{"name":"a","inputSchema":{"type":"object"},"x-own":1.50}"#;
        let tool = listing::definition(Kind::Tools, &Json::parse(text).unwrap()).unwrap();
        let lists = Listing {
            tools: vec![tool],
            instructions: Some("be kind".into()),
            ttl_ms: Some(5),
            subscribes: true,
            ..Listing::default()
        };
        let back = read(write(&lists)).unwrap();
        assert_eq!(back.tools[0].members.to_json().as_str(), text);
        assert_eq!((back.tools[0].key.as_str(), back.instructions.as_deref()), ("a", Some("be kind")));
        assert_eq!((back.ttl_ms, back.completes, back.subscribes), (Some(5), false, true));
        assert!(read("[]".into()).is_none() && read(r#"{"tools":[{}]}"#.into()).is_none());
    }
}
