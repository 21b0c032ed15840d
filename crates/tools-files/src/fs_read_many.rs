//! `fs_read_many`.

use crate::content::encoding::EncodingChoice;
use crate::content::text_reader::{self, LineSelection, ReadRequest};
use crate::fs_read_text::max_bytes;
use octo_toolkit::fs::Read;
use octo_toolkit::{
    CallContext, Effect, Example, Fs, Json, ModelText, Tool, ToolError, WorkPath, counted, json_len,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

const MAX_PATHS: usize = 100;
/// Maximum bytes of an entry besides its path and text.
const ENTRY_OVERHEAD_BYTES: usize = 260;
/// A shorter beginning of a file is useless.
const MIN_TEXT_BYTES: usize = 200;

/// Reads several text files in one call, in the given order; each has its text or an error. Files that do not fit come
/// without text and with `next`. Prefer fs_read_text for a part of one file.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Files to read, at most 100.
    paths: Vec<WorkPath>,
    /// Maximum bytes of all files together; small files are returned whole, large ones share the rest.
    #[serde(default = "max_bytes")]
    max_bytes: u64,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// One entry for every path, in the given order.
    files: Vec<FileEntry>,
}

#[derive(Default, Serialize, JsonSchema)]
pub struct FileEntry {
    /// The path as given.
    path: String,
    /// The text; absent if the file could not be read or did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Why the file could not be read, and what to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Lines of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line_count: Option<u64>,
    /// Size of the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size_bytes: Option<u64>,
    /// Encoding of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    /// SHA-256 of the whole file, for if_hash of a later change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// True if lines were omitted.
    truncated: bool,
    /// Pass to fs_read_text as start_line to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Pass to fs_read_text as start_byte, too, if line `next` continues there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_byte: Option<u64>,
}

pub struct ReadMany;

impl Tool for ReadMany {
    const NAME: &'static str = "fs_read_many";
    const TITLE: &'static str = "Read several text files";
    const KEYWORDS: &'static str = "open several files at once batch view";
    const REQUESTS: &'static [&'static str] = &[
        "open the readme, the config and the main file together",
        "load ten source files in one go",
        "get the contents of all these files at once",
        "i need a.txt, b.txt and c.txt, missing ones should not matter",
        "take in every module of the package with a single call",
        "compare two local files by reading both",
    ];
    const EFFECT: Effect = Effect::reads();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("Two files at once", json!({"paths": ["README.md", "docs/guide.md"]})),
            Example::new(
                "A file that is missing does not spoil the others",
                json!({"paths": ["notes.txt", "missing.txt"], "max_bytes": 1000}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        output.files.iter().fold(ModelText::new(), write_entry).finish()
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        if input.paths.is_empty() || input.paths.len() > MAX_PATHS {
            return Err(ToolError::invalid(format!("{} paths were given.", input.paths.len()))
                .hint(format!("Pass 1 to {MAX_PATHS} paths in one call.")));
        }
        let cx = cx.clone();
        fs.run(move |fs| {
            let files: Vec<RequestedFile<'_>> =
                input.paths.iter().map(|path| RequestedFile::new(fs, path)).collect();
            Ok(Output { files: read_all(fs, &files, input.max_bytes, &cx)? })
        })
        .await
    }
}

/// A line about the file, then its text. The number of lines says where it ends.
fn write_entry(text: ModelText, file: &FileEntry) -> ModelText {
    if let Some(error) = &file.error {
        return text.line(format_args!("=== {}: error: {error}", file.path));
    }
    let content = file.content.as_deref().unwrap_or_default();
    let (shown, all) = (content.lines().count() as u64, file.line_count);
    let next = file.next.map_or(String::new(), |next| format!(", next: {next}"));
    let next_byte = file.next_byte.map_or(String::new(), |byte| format!(", next_byte: {byte}"));
    let lines = match all {
        Some(all) if file.truncated => format!("{shown} of {}", counted(all, "line", "lines")),
        _ if file.content.is_some() => counted(shown, "line", "lines"),
        _ => format!("omitted, {} bytes", file.size_bytes.unwrap_or_default()),
    };
    let encoding = file.encoding.as_deref().filter(|encoding| *encoding != "utf-8");
    let encoding = encoding.map_or(String::new(), |encoding| format!(", {encoding}"));
    let hash = file.hash.as_deref().and_then(|hash| hash.get(..16));
    let hash = hash.map_or(String::new(), |hash| format!(", hash {hash}"));
    let text = text.line(format_args!("=== {} ({lines}{encoding}{next}{next_byte}{hash})", file.path));
    match shown {
        0 => text,
        _ => text.block(content.strip_suffix('\n').unwrap_or(content)),
    }
}

/// A requested file.
struct RequestedFile<'a> {
    path: &'a WorkPath,
    size: u64,
    /// Size of its entry in the reply without its text.
    overhead: usize,
}

impl<'a> RequestedFile<'a> {
    fn new(fs: &Fs<Read>, path: &'a WorkPath) -> Self {
        let size = fs.place(path).and_then(|place| fs.stat(&place)).map_or(0, |stat| stat.size);
        Self { path, size, overhead: ENTRY_OVERHEAD_BYTES + json_len(path.as_str()) }
    }

    /// Its entry if its text does not fit.
    fn omitted(&self) -> FileEntry {
        let path = self.path.to_string();
        FileEntry {
            path,
            size_bytes: Some(self.size),
            truncated: true,
            next: Some(1),
            ..FileEntry::default()
        }
    }
}

/// Smallest files first: a file that needs less than an equal share leaves the rest to the others.
fn read_all(
    fs: &Fs<Read>,
    files: &[RequestedFile<'_>],
    max_bytes: u64,
    cx: &CallContext,
) -> Result<Vec<FileEntry>, ToolError> {
    let mut entries: Vec<FileEntry> = files.iter().map(RequestedFile::omitted).collect();
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|index| files.get(*index).map(|file| file.size));
    let mut bytes = max_bytes;
    let mut room = cx.reply.remaining_beside(&entries)?;
    for (served, index) in order.iter().enumerate() {
        cx.check()?;
        let (Some(file), Some(entry)) = (files.get(*index), entries.get_mut(*index)) else { continue };
        let waiting = files.len() - served;
        let share = (room / waiting).saturating_sub(file.overhead);
        if share < MIN_TEXT_BYTES.min(usize::try_from(file.size).unwrap_or(MIN_TEXT_BYTES)) {
            continue;
        }
        let read = read(fs, file.path, bytes / waiting as u64, share, cx);
        bytes = bytes.saturating_sub(read.content.as_ref().map_or(0, |content| content.len() as u64));
        room = room.saturating_sub(Json::of(&read).bytes().len());
        *entry = read;
    }
    Ok(entries)
}

fn read(fs: &Fs<Read>, path: &WorkPath, max_bytes: u64, room: usize, cx: &CallContext) -> FileEntry {
    let (lines, asked) = (LineSelection::Span(1, u64::MAX - 1), EncodingChoice::Detect);
    let want =
        ReadRequest { lines, encoding: asked, max_bytes, start_byte: 0, reply_budget: room, numbered: false };
    let told = path.to_string();
    match fs.place(path).and_then(|place| text_reader::read(fs, &place, want, cx)) {
        Ok(reading) => FileEntry {
            path: told,
            content: Some(reading.content),
            error: None,
            line_count: Some(reading.line_count),
            size_bytes: Some(reading.opened.stat.size),
            encoding: Some(reading.encoding),
            hash: reading.hash,
            truncated: reading.truncated,
            next: reading.next,
            next_byte: reading.next_byte,
        },
        Err(error) => FileEntry { path: told, error: Some(error.text()), ..FileEntry::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_says_how_many_lines_follow() {
        let entry = |path: &str, content: Option<&str>| FileEntry {
            path: path.to_owned(),
            content: content.map(str::to_owned),
            line_count: Some(9),
            ..FileEntry::default()
        };
        let files = vec![
            entry("whole", Some("a\n\"b\"\n\n")),
            FileEntry { truncated: true, next: Some(2), next_byte: Some(3), ..entry("part", Some("a\n")) },
            FileEntry { error: Some("gone".to_owned()), ..entry("none", None) },
            FileEntry {
                size_bytes: Some(7),
                line_count: None,
                truncated: true,
                next: Some(1),
                ..entry("large", None)
            },
            FileEntry { hash: Some("0123456789abcdef".repeat(4)), ..entry("breaks", Some("\n\n")) },
            entry("empty", Some("")),
        ];
        let wanted = "=== whole (3 lines)\na\n\"b\"\n\n=== part (1 of 9 lines, next: 2, next_byte: 3)\na\n=== none: error: gone\n=== large (omitted, 7 bytes, next: 1)\n=== breaks (2 lines, hash 0123456789abcdef)\n\n\n=== empty (0 lines)";
        assert_eq!(ReadMany::text(&Output { files }).as_deref(), Some(wanted));
    }
}
