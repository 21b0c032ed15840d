//! Size of images in replies. They cost a model by pixels rather than bytes, so they are not counted as text.

use octo_model::{Json, JsonObject};

/// Maximum bytes of images per reply beside its text; beyond that they count as text.
const MAX_IMAGE_BYTES: usize = 3 << 20;

/// Bytes of a reply that the result limit does not count.
pub(crate) fn uncounted_image_bytes(result: &JsonObject) -> usize {
    if !result.get("content").is_some_and(|content| content.as_str().contains("\"image\"")) {
        return 0;
    }
    let blocks = result.list("content");
    let size = blocks.iter().filter(|block| is_image(block)).map(|block| block.bytes().len()).sum();
    if size <= MAX_IMAGE_BYTES { size } else { 0 }
}

/// Whether a block is an image and nothing else, such as text that a client might show.
pub(crate) fn is_image(block: &Json) -> bool {
    let Ok(members) = block.members() else { return false };
    let is_picture = members.text("mimeType").is_some_and(|kind| kind.starts_with("image/"));
    is_picture && members.text("type").as_deref() == Some("image") && members.get("text").is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn size(content: Value) -> usize {
        let result: Json = json!({"content": content}).into();
        uncounted_image_bytes(&result.members().unwrap())
    }

    #[test]
    fn only_pictures_count_and_only_some() {
        let picture =
            |letters: usize| json!({"type": "image", "mimeType": "image/png", "data": "A".repeat(letters)});
        let text = json!({"type": "text", "text": "an \"image\" of words"});
        assert_eq!(size(json!([text])), 0);
        assert_eq!(size(json!([text, picture(1_000)])), picture(1_000).to_string().len());
        assert!(size(json!([picture(1 << 20), picture(1 << 20)])) > 2 << 20);
        assert_eq!(size(json!([picture(MAX_IMAGE_BYTES + 1)])), 0);
    }
}
