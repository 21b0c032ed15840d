//! What a reply says beside its result: which call it was, who answered, what was left out.

use octo_model::{Json, JsonObject};

/// What was called.
pub struct Target<'a> {
    /// The word for it.
    pub member: &'static str,
    pub name: &'a str,
    pub server: Option<&'a str>,
    /// Whether its structure says everything, so that its content is the same once more.
    pub typed: bool,
}

pub struct Metadata<'a> {
    target: Target<'a>,
    truncated: bool,
    cached: bool,
    result_handle: Option<Json>,
    coerced: Option<Json>,
    content: Option<Json>,
}

impl<'a> Metadata<'a> {
    pub fn new(target: Target<'a>) -> Self {
        Self { target, truncated: false, cached: false, result_handle: None, coerced: None, content: None }
    }

    /// Takes what belongs here from a result. `beside` when its content is not the result of the reply:
    /// then pictures, sounds and links would be lost.
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
        // A typed reply is one block of text that says the same as its structure; what comes beside it says more.
        let blocks = result.list("content");
        if self.truncated || !self.target.typed || blocks.len() > 1 {
            let rest: Vec<&Json> = blocks.iter().filter(|block| text_of(block).is_none()).collect();
            self.content = (!rest.is_empty()).then(|| Json::array(rest));
        }
    }

    /// Writes the object to the end of a reply.
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

/// A vector takes everything, so this cannot fail.
fn write_text(value: &str, text: &mut Vec<u8>) {
    let _ = serde_json::to_writer(text, value);
}

/// The words of a text block.
pub fn text_of(block: &Json) -> Option<String> {
    let members = block.members().ok()?;
    members.text("text").filter(|_| members.text("type").as_deref() == Some("text"))
}
