//! Metadata of a reply: call id, target, truncation.

use octo_hub::{CallOutcome, Entry, block_text};
use octo_model::{Json, JsonObject};

/// What was called.
pub struct CallTarget<'a> {
    /// Name of the member: `tool` or `prompt`.
    pub member: &'static str,
    pub name: &'a str,
    pub server: Option<&'a str>,
    /// Whether the structured content is complete, so that the content only repeats it.
    pub typed: bool,
}

impl<'a> CallTarget<'a> {
    /// The target of a call by this name.
    pub fn of(called: &'a CallOutcome, member: &'static str, name: &'a str) -> Self {
        let entry = called.entry.as_ref();
        Self {
            member,
            name: entry.map_or(name, |entry| &*entry.listed_name),
            server: entry.map(Entry::source_name),
            typed: entry.is_some_and(|entry| entry.item.is_native()),
        }
    }
}

pub struct ReplyMetadata<'a> {
    target: CallTarget<'a>,
    truncated: bool,
    cached: bool,
    result_handle: Option<Json>,
    coerced: Option<Json>,
    content: Option<Json>,
}

impl<'a> ReplyMetadata<'a> {
    pub fn new(target: CallTarget<'a>) -> Self {
        Self { target, truncated: false, cached: false, result_handle: None, coerced: None, content: None }
    }

    /// Takes the metadata of a result. `beside` if its content is not the result of the reply: images, audio and links
    /// would be lost otherwise.
    pub fn read(&mut self, result: &JsonObject, beside: bool) {
        if let Some(meta) = result.get("_meta").and_then(|meta| meta.members().ok()) {
            self.truncated = meta.is_true("octoprox/truncated");
            self.cached = meta.is_true("octoprox/cached");
            self.result_handle = meta.get("octoprox/result_handle").cloned();
            self.coerced = meta.get("octoprox/coerced").cloned();
        }
        if !beside {
            return;
        }
        // A typed reply is one text block that repeats the structure; further blocks contain more.
        let blocks = result.list("content");
        if self.truncated || !self.target.typed || blocks.len() > 1 {
            let rest: Vec<&Json> = blocks.iter().filter(|block| block_text(block).is_none()).collect();
            self.content = (!rest.is_empty()).then(|| Json::array(rest));
        }
    }

    /// Appends the object to a reply.
    pub fn write(&self, id: &str, text: &mut Vec<u8>) {
        for part in ["{\"call_id\":\"", id, "\",\"", self.target.member, "\":"] {
            text.extend_from_slice(part.as_bytes());
        }
        write_text(self.target.name, text);
        text.extend_from_slice(b",\"server\":");
        match self.target.server {
            Some(server) => write_text(server, text),
            None => text.extend_from_slice(b"null"),
        }
        if self.truncated {
            text.extend_from_slice(b",\"truncated\":true");
        }
        if self.cached {
            text.extend_from_slice(b",\"cached\":true");
        }
        let rest =
            [("result_handle", &self.result_handle), ("coerced", &self.coerced), ("content", &self.content)];
        for (key, value) in rest.into_iter().filter_map(|(key, value)| Some((key, value.as_ref()?))) {
            for part in [",\"", key, "\":", value.as_str()] {
                text.extend_from_slice(part.as_bytes());
            }
        }
        text.push(b'}');
    }
}

/// Writing to a vector cannot fail.
fn write_text(value: &str, text: &mut Vec<u8>) {
    let _ = serde_json::to_writer(text, value);
}
