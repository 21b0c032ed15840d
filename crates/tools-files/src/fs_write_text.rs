//! `fs_write_text`.

use crate::content::byte_scanner::{self, Newline};
use crate::content::content_hash;
use crate::content::encoding::{self, EncodingChoice, TextEncoding};
use crate::content::text_lines::{self, LineEnding};
use crate::{destination, fs_edit};
use octo_toolkit::fs::{Stat, Write, WriteOptions, WriteResult};
use octo_toolkit::{CallContext, Effect, Example, Fs, Kind, RootedPath, Tool, ToolError, WorkPath};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Writes a text file: creates it, replaces all of it, or appends; replacing without if_hash returns a warning.
/// Prefer fs_edit to change a part of a file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to write, relative to the workspace.
    path: WorkPath,
    /// The text, written exactly as given.
    text: String,
    /// Encoding to write; an existing byte order mark is kept.
    #[serde(default = "encoding::utf8")]
    encoding: String,
    /// Append the text instead of replacing.
    #[serde(default)]
    append: bool,
    /// Make missing folders.
    #[serde(default)]
    mkdirs: bool,
    /// Hash that the file must have, from an earlier reply; otherwise nothing is written.
    #[serde(default)]
    if_hash: Option<String>,
    /// Fail if the file already exists.
    #[serde(default)]
    create_new: bool,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// Size of the whole file.
    size_bytes: u64,
    /// Lines of the whole file.
    line_count: u64,
    /// Modification time, RFC 3339.
    modified: String,
    /// True if the file is new.
    created: bool,
    /// Encoding of the file.
    encoding: String,
    /// SHA-256 of the whole file, for if_hash of a later change.
    hash: String,
    /// True if fs_undo can revert the change.
    undo: bool,
    /// What was overwritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub struct WriteText;

impl Tool for WriteText {
    const NAME: &'static str = "fs_write_text";
    const TITLE: &'static str = "Write a text file";
    const KEYWORDS: &'static str = "create save store new file overwrite";
    const REQUESTS: &'static [&'static str] = &[
        "create a file hello.py with this content",
        "save the summary as report.md",
        "store these lines as a new csv on disk",
        "overwrite the whole config with the following text",
        "write the generated html to public/index.html",
        "put a fresh todo.txt in a folder that does not exist yet",
    ];
    const EFFECT: Effect = Effect::destroys().idempotent();
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Write>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new(
                "A new file in a new folder",
                json!({"path": "docs/new/intro.md", "text": "# Intro\n", "mkdirs": true}),
            ),
            Example::new("Replace a file", json!({"path": "notes.txt", "text": "delta\n"})),
        ]
    }

    async fn run(&self, input: Input, fs: Fs<Write>, cx: &CallContext) -> Result<Output, ToolError> {
        let asked = EncodingChoice::from_label(&input.encoding)?;
        let cx = cx.clone();
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            match input.append {
                true => append(fs, &place, &input, asked, &cx),
                false => replace(fs, &place, &input, asked),
            }
        })
        .await
    }
}

fn options(input: &Input) -> WriteOptions {
    WriteOptions { if_hash: input.if_hash.clone(), create_new: input.create_new, mkdirs: input.mkdirs }
}

fn replace(
    fs: &Fs<Write>,
    place: &RootedPath,
    input: &Input,
    asked: EncodingChoice,
) -> Result<Output, ToolError> {
    let before = match fs.read(place, fs_edit::MAX_EDIT_BYTES) {
        Ok((bytes, _)) => Some(bytes),
        // The write below decides: creates a missing file, replaces a huge one, refuses a directory.
        Err(_) => None,
    };
    if let Some(before) = &before {
        content_hash::check_if_hash(
            input.if_hash.as_deref(),
            &content_hash::sha256_hex(before),
            &place.display(),
        )?;
    }
    let form = form(asked, before.as_deref());
    let written = fs.write(place, &form.encode(&input.text)?, &options(input));
    let written = written.map_err(|error| missing_folder_error(error, place))?;
    let warning = match (written.created, &input.if_hash) {
        (false, None) => overwritten(before.as_deref(), &input.text, written.undo),
        _ => None,
    };
    Ok(output(place, form, &written, text_lines::count(&input.text), warning))
}

fn missing_folder_error(error: ToolError, place: &RootedPath) -> ToolError {
    match error.kind {
        Kind::NotFound => {
            destination::missing_parent_error(error, place).hint("Set mkdirs to create missing directories.")
        }
        _ => error,
    }
}

/// Encoding to write. An existing byte order mark stays; one is added if readers depend on it.
fn form(asked: EncodingChoice, before: Option<&[u8]>) -> TextEncoding {
    let marked = before.and_then(encoding::read_bom).map(|(form, _)| form);
    match asked {
        EncodingChoice::Detect => marked.unwrap_or(TextEncoding::UTF8),
        EncodingChoice::Exactly(encoding) => {
            let form = TextEncoding { encoding, bom: false };
            TextEncoding { bom: form.is_utf16(), ..form }
        }
    }
}

/// Describes what was overwritten; `None` if the file was empty or is unchanged.
fn overwritten(before: Option<&[u8]>, text: &str, undo: bool) -> Option<String> {
    let back = if undo { "fs_undo can restore it." } else { "It cannot be restored." };
    let Some(before) = before else {
        return Some(format!("Overwrote a large file. {back}"));
    };
    let old = String::from_utf8_lossy(before);
    if before.is_empty() || old == text {
        return None;
    }
    let count = text_lines::count(&old);
    let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
    let ends = match LineEnding::uniform(&old) == Some(LineEnding::Crlf)
        && LineEnding::uniform(text) == Some(LineEnding::Lf)
    {
        true => " Line endings changed from CRLF to LF.",
        false => "",
    };
    Some(format!("Overwrote {lines}; {back}{ends}"))
}

fn append(
    fs: &Fs<Write>,
    place: &RootedPath,
    input: &Input,
    asked: EncodingChoice,
    cx: &CallContext,
) -> Result<Output, ToolError> {
    let added = AppendedText::prepare(fs, place, &input.text, asked, false)?;
    let written = fs
        .append(place, &added.bytes, &options(input))
        .map_err(|error| missing_folder_error(error, place))?;
    let mut opened = fs.open_file(place)?;
    let census =
        byte_scanner::summarize(&mut opened.file, Newline::from_encoding(added.encoding), &|| cx.check())?;
    Ok(output(place, added.encoding, &written, census.lines, None))
}

/// Text to append to a file, in that file's encoding.
pub struct AppendedText {
    pub bytes: Vec<u8>,
    pub encoding: TextEncoding,
}

impl AppendedText {
    /// With `fresh_line`, a newline is inserted if the file does not end with one.
    pub fn prepare(
        fs: &Fs<Write>,
        place: &RootedPath,
        text: &str,
        asked: EncodingChoice,
        fresh_line: bool,
    ) -> Result<Self, ToolError> {
        // Encodings differ only in non-ASCII text; then the decisive bytes may be far from the end.
        let enough = if text.is_ascii() { 4096 } else { fs_edit::MAX_EDIT_BYTES as usize };
        let (head, tail, stat) = match read_head_and_tail(fs, place, asked, enough) {
            Ok(ends) => ends,
            Err(error) if error.kind == Kind::NotFound => {
                let form = form(asked, None);
                return Ok(Self { bytes: form.encode(text)?, encoding: form });
            }
            Err(error) => return Err(error),
        };
        if stat.size == 0 {
            let form = form(asked, None);
            return Ok(Self { bytes: form.encode(text)?, encoding: form });
        }
        let found =
            encoding::detect(asked, &head, &tail).map_err(|binary| binary.to_error(&place.display()))?;
        // A byte order mark is only at the start of the file.
        let inner = TextEncoding { bom: false, ..found };
        let (end, _) = inner.decode(&tail, true);
        let gap = match fresh_line && !end.ends_with('\n') {
            true => LineEnding::dominant(&end).as_str(),
            false => "",
        };
        Ok(Self { bytes: inner.encode(&format!("{gap}{text}"))?, encoding: found })
    }
}

/// The start and the end of a file.
fn read_head_and_tail(
    fs: &Fs<Write>,
    place: &RootedPath,
    asked: EncodingChoice,
    enough: usize,
) -> Result<(Vec<u8>, Vec<u8>, Stat), ToolError> {
    let mut opened = fs.open_file(place)?;
    let mut head = vec![0; 4096];
    let full = byte_scanner::read_full(&mut opened.file, &mut head)?;
    head.truncate(full);
    let newline = encoding::detect(asked, &head, &head).map_or(Newline::Byte, Newline::from_encoding);
    let all = (u64::MAX - 1, opened.stat.size);
    let tail = byte_scanner::tail(&mut opened.file, newline, all, enough, &|| Ok(()))?;
    Ok((head, tail.bytes, opened.stat))
}

fn output(
    place: &RootedPath,
    form: TextEncoding,
    written: &WriteResult,
    line_count: u64,
    warning: Option<String>,
) -> Output {
    Output {
        path: place.display(),
        size_bytes: written.stat.size,
        line_count,
        modified: written.stat.modified.to_string(),
        created: written.created,
        encoding: form.name(),
        hash: written.hash.clone(),
        undo: written.undo,
        warning,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_that_is_there_is_kept() {
        let name = |form: TextEncoding| (form.name(), form.bom);
        let wide = EncodingChoice::Exactly(encoding_rs::UTF_16LE);
        assert_eq!(name(form(EncodingChoice::Detect, None)), ("utf-8".into(), false));
        assert_eq!(name(form(EncodingChoice::Detect, Some(b"\xef\xbb\xbfa"))), ("utf-8".into(), true));
        assert_eq!(name(form(EncodingChoice::Detect, Some(b"\xff\xfea\0"))), ("utf-16le".into(), true));
        assert_eq!(name(form(wide, None)), ("utf-16le".into(), true));
    }

    #[test]
    fn overwriting_is_told() {
        let warning = overwritten(Some(b"a\nb\n"), "c\n", true);
        assert_eq!(warning.as_deref(), Some("Overwrote 2 lines; fs_undo can restore it."));
        assert_eq!(overwritten(Some(b""), "c\n", true), None);
        assert_eq!(overwritten(Some(b"c\n"), "c\n", true), None);
        assert!(overwritten(Some(b"a\r\n"), "c\n", false).unwrap().contains("CRLF"));
    }
}
