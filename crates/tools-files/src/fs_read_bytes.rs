//! `fs_read_bytes`.

use crate::content::{byte_scanner, file_magic, text_reader};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, ReplyBudget, Tool, ToolError, WorkPath, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{Seek, SeekFrom};

/// Enough to detect the file type.
const MAGIC_BYTES: usize = 512;
/// Maximum bytes of the reply besides path and base64.
const REPLY_OVERHEAD_BYTES: usize = 240;

/// Reads bytes of any file as base64, starting at an offset, and detects the file type. A truncated reply has the
/// next offset. Prefer fs_read_text for text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to read, relative to the workspace.
    path: WorkPath,
    /// Maximum bytes to read.
    #[serde(default = "max_bytes")]
    max_bytes: u64,
    /// Bytes to skip from the start.
    #[serde(default)]
    offset: u64,
}

fn max_bytes() -> u64 {
    500_000
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// The bytes, in base64.
    base64: String,
    /// Size of the whole file.
    size_bytes: u64,
    /// True if the file continues after these bytes.
    truncated: bool,
    /// Media type, by the file's first bytes.
    mime: String,
    /// Pass as offset to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub struct ReadBytes;

impl Tool for ReadBytes {
    const NAME: &'static str = "fs_read_bytes";
    const TITLE: &'static str = "Read bytes of a file";
    const KEYWORDS: &'static str = "binary hex dump raw download";
    const REQUESTS: &'static [&'static str] = &[
        "get the first 16 bytes of the binary as base64",
        "what kind of file is blob.bin by its magic number",
        "read raw data from offset 1024 of the firmware image",
        "inspect the header of a zip or exe file",
        "fetch a piece of a binary file in encoded form",
        "hex check of an unknown file's beginning",
    ];
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![Example::new("Five bytes", json!({"path": "notes.txt", "max_bytes": 5})).with_output(json!({
            "path": "notes.txt",
            "base64": "YWxwaGE=",
            "size_bytes": 17,
            "truncated": true,
            "mime": "text/plain",
            "next": 5,
        }))]
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let reply = cx.reply;
        fs.run(move |fs| read(fs, &input, reply)).await
    }
}

fn read(fs: &Fs<Read>, input: &Input, reply: ReplyBudget) -> Result<Output, ToolError> {
    let place = fs.place(&input.path)?;
    let mut opened = fs.open_file(&place)?;
    let size = opened.stat.size;
    if input.offset > size {
        return Err(ToolError::invalid(format!("offset {} is past the end.", input.offset))
            .hint(format!("The file has {size} bytes.")));
    }
    let mut head = vec![0; MAGIC_BYTES];
    let full = byte_scanner::read_full(&mut opened.file, &mut head)?;
    head.truncate(full);
    opened.file.seek(SeekFrom::Start(input.offset)).map_err(ToolError::internal)?;
    // Base64 encodes three bytes as four characters.
    let room = reply.remaining_after(REPLY_OVERHEAD_BYTES + json_len(&place.display())) / 4 * 3;
    let wanted = input.max_bytes.min(text_reader::MAX_READ_BYTES).min(size - input.offset).min(room as u64);
    let mut bytes = vec![0; usize::try_from(wanted).map_err(ToolError::internal)?];
    let full = byte_scanner::read_full(&mut opened.file, &mut bytes)?;
    bytes.truncate(full);
    let end = input.offset + full as u64;
    Ok(Output {
        path: place.display(),
        base64: STANDARD.encode(&bytes),
        size_bytes: size,
        truncated: end < size,
        mime: mime(&head).to_owned(),
        next: (end < size && full > 0).then_some(end),
    })
}

fn mime(head: &[u8]) -> &'static str {
    let cut = |error: std::str::Utf8Error| error.error_len().is_some();
    match file_magic::kind(head) {
        Some(kind) => kind.mime,
        None if head.contains(&0) || std::str::from_utf8(head).is_err_and(cut) => "application/octet-stream",
        None => "text/plain",
    }
}

#[cfg(test)]
mod tests {
    use super::mime;

    #[test]
    fn media_types() {
        let rows: [(&[u8], &str); 4] = [
            (b"alpha\n", "text/plain"),
            ("grün ü".as_bytes().split_last().unwrap().1, "text/plain"),
            (b"a\0b", "application/octet-stream"),
            (b"\x89PNG\r\n\x1a\n", "image/png"),
        ];
        for (head, wanted) in rows {
            assert_eq!(mime(head), wanted);
        }
    }
}
