//! `octoprox call --save FILE`: saves an image, audio or file of a reply.

use crate::app_error::AppError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use octo_model::{Json, JsonObject};
use std::path::Path;

/// Binary content of a reply.
pub struct Attachment {
    kind: String,
    data: String,
}

/// Returns the first attachment.
pub fn first_attachment(result: &JsonObject) -> Option<Attachment> {
    let blocks = result.list("content");
    blocks.iter().filter_map(|block| from_block(&block.members().ok()?)).next()
}

fn from_block(block: &JsonObject) -> Option<Attachment> {
    let resource = block.object("resource");
    let data = block.get("data").or_else(|| resource.get("blob")).and_then(Json::to_text)?;
    let kind = block.text("mimeType").or_else(|| resource.text("mimeType")).unwrap_or_default();
    Some(Attachment { kind, data })
}

impl Attachment {
    /// Notice that the reply has an attachment.
    pub fn notice(&self) -> String {
        format!("The reply contains {}. Save it with --save FILE.", self.kind)
    }

    /// Writes the file and returns a message.
    pub fn save(&self, path: &Path) -> Result<String, AppError> {
        let bytes = STANDARD
            .decode(&self.data)
            .map_err(|_| AppError::new("The tool returned invalid base64. Nothing was saved."))?;
        std::fs::write(path, &bytes)
            .map_err(|error| AppError::invalid(format!("{}: {error}.", path.display())))?;
        Ok(format!("Saved {} ({}, {} bytes).", path.display(), self.kind, bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_found_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        for (result, found) in [
            (r#"{"content":[{"type":"text","text":"a"}]}"#, None),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"AAEC"}]}"#,
                Some([0, 1, 2]),
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"a/b","blob":"AQID"}}]}"#,
                Some([1, 2, 3]),
            ),
        ] {
            let result = JsonObject::parse(result.to_owned()).unwrap();
            let path = folder.path().join("file");
            let saved = first_attachment(&result).map(|it| {
                it.save(&path).unwrap();
                std::fs::read(&path).unwrap()
            });
            assert_eq!(saved, found.map(Vec::from));
        }
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        let result = JsonObject::parse(r#"{"content":[{"type":"image","data":"AAEC"}]}"#.to_owned()).unwrap();
        assert!(first_attachment(&result).unwrap().save(Path::new("/no/such/folder/file")).is_err());
        let result = JsonObject::parse(r#"{"content":[{"type":"image","data":"!"}]}"#.to_owned()).unwrap();
        assert!(first_attachment(&result).unwrap().save(Path::new("/no/such/folder/file")).is_err());
    }
}
