//! `fs_read_text`.

use crate::content::encoding::{self, EncodingChoice};
use crate::content::text_reader::{self, LineSelection, ReadRequest, ReadResult};
use octo_toolkit::fs::Read;
use octo_toolkit::{CallContext, Effect, Example, Fs, ModelText, Tool, ToolError, WorkPath, json_len};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Reads a text file, whole or by lines, with its length and hash. A truncated reply has the line to continue from.
/// Binary files are refused. Prefer fs_read_many for several files, fs_search to find text.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// File to read, relative to the workspace.
    path: WorkPath,
    /// Encoding of the file; with utf-8 others are detected.
    #[serde(default = "encoding::utf8")]
    encoding: String,
    /// First line to return, counted from 1.
    #[serde(default)]
    start_line: Option<u64>,
    /// Last line to return, inclusive.
    #[serde(default)]
    end_line: Option<u64>,
    /// Bytes of start_line to skip, if a reply ended inside of it.
    #[serde(default)]
    start_byte: u64,
    /// Return only this many lines from the start.
    #[serde(default)]
    head: Option<u64>,
    /// Return only this many lines from the end.
    #[serde(default)]
    tail: Option<u64>,
    /// Maximum bytes to return. A reply ends at a line break unless a single line is longer.
    #[serde(default = "max_bytes")]
    max_bytes: u64,
    /// Prefix every line with its number and a tab.
    #[serde(default)]
    line_numbers: bool,
}

pub fn max_bytes() -> u64 {
    200_000
}

/// Maximum bytes of the reply besides path and content.
pub const REPLY_OVERHEAD_BYTES: usize = 720;

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The file.
    path: String,
    /// The text, without a byte order mark.
    content: String,
    /// Lines of the whole file.
    line_count: u64,
    /// False if the file is too large to count; then line_count is how many were seen.
    line_count_exact: bool,
    /// Size of the whole file.
    size_bytes: u64,
    /// Modification time, RFC 3339.
    modified: String,
    /// Encoding of the file.
    encoding: String,
    /// True if requested lines were omitted.
    truncated: bool,
    /// Number of the first line returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_line: Option<u64>,
    /// Number of the last line returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_line: Option<u64>,
    /// Pass as start_line to continue reading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// Pass as start_byte, too, if line `next` continues there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_byte: Option<u64>,
    /// SHA-256 of the whole file, for if_hash of a later change; absent for files over 64 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Notice about this text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

pub struct ReadText;

impl Tool for ReadText {
    const NAME: &'static str = "fs_read_text";
    const TITLE: &'static str = "Read a text file";
    const KEYWORDS: &'static str = "open view show cat print source code contents document";
    const REQUESTS: &'static [&'static str] = &[
        "what does config.yaml say",
        "open main.rs and show lines 40 to 80",
        "last 50 lines of server.log",
        "view the file with line numbers before editing",
        "cat the readme of the project",
        "first rows of data.csv",
        "read a latin-1 encoded document",
    ];
    const EFFECT: Effect = Effect::reads();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = Fs<Read>;

    fn examples() -> Vec<Example> {
        vec![
            Example::new("A whole file", json!({"path": "notes.txt"})),
            Example::new(
                "The last two lines, numbered",
                json!({"path": "data.csv", "tail": 2, "line_numbers": true}),
            ),
            Example::new(
                "From line 2 to line 3",
                json!({"path": "src/main.rs", "start_line": 2, "end_line": 3}),
            ),
        ]
    }

    fn text(output: &Output) -> Option<String> {
        ModelText::new()
            .line(headline(output))
            .field_if("notice", output.notice.as_ref())
            .line_if(output.truncated && output.next.is_none(), "truncated")
            .field_if("next", output.next)
            .field_if("next_byte", output.next_byte)
            .line_if(!output.content.is_empty(), "text:")
            .rest(&output.content)
            .finish()
    }

    async fn run(&self, input: Input, fs: Fs<Read>, cx: &CallContext) -> Result<Output, ToolError> {
        let mut want = ReadRequest {
            lines: lines(&input)?,
            encoding: EncodingChoice::from_label(&input.encoding)?,
            max_bytes: at_least_one(input.max_bytes, "max_bytes")?,
            start_byte: input.start_byte,
            reply_budget: 0,
            numbered: input.line_numbers,
        };
        let cx = cx.clone();
        fs.run(move |fs| {
            let place = fs.place(&input.path)?;
            want.reply_budget = cx.reply.remaining_after(REPLY_OVERHEAD_BYTES + json_len(&place.display()));
            let reading = text_reader::read(fs, &place, want, &cx)?;
            Ok(to_output(place.display(), reading, input.line_numbers))
        })
        .await
    }
}

fn at_least_one(number: u64, name: &str) -> Result<u64, ToolError> {
    match number {
        0 => Err(ToolError::invalid(format!("{name} is 0."))
            .hint(format!("Use {name} of 1 or more, or omit the parameter."))),
        number => Ok(number),
    }
}

fn lines(input: &Input) -> Result<LineSelection, ToolError> {
    let range = input.start_line.is_some() || input.end_line.is_some();
    match (input.head, input.tail) {
        (Some(_), Some(_)) => Err(ToolError::invalid("head and tail are mutually exclusive.")
            .hint("Use one of them, or start_line and end_line.")),
        (Some(_), None) | (None, Some(_)) if range => {
            Err(ToolError::invalid("head and tail cannot be combined with start_line and end_line.")
                .hint("Omit head and tail, or omit start_line and end_line."))
        }
        (Some(_), None) | (None, Some(_)) if input.start_byte > 0 => {
            Err(ToolError::invalid("head and tail cannot be combined with start_byte.")
                .hint("Use start_byte together with start_line."))
        }
        (Some(head), None) => Ok(LineSelection::Span(1, at_least_one(head, "head")?)),
        (None, Some(tail)) => Ok(LineSelection::Last(at_least_one(tail, "tail")?)),
        (None, None) => {
            let first = at_least_one(input.start_line.unwrap_or(1), "start_line")?;
            let last = at_least_one(input.end_line.unwrap_or(u64::MAX - 1), "end_line")?;
            if last < first {
                return Err(ToolError::invalid(format!("end_line {last} is before start_line {first}."))
                    .hint("Lines count from 1 and end_line is inclusive."));
            }
            Ok(LineSelection::Span(first, last))
        }
    }
}

fn to_output(path: String, reading: ReadResult, numbered: bool) -> Output {
    let mut notice = reading.notice;
    let content = match (numbered, reading.first) {
        (true, Some(first)) => number(&reading.content, first),
        (true, None) if !reading.content.is_empty() => {
            notice = Some("The file is too large to number its last lines.".to_owned());
            reading.content
        }
        _ => reading.content,
    };
    Output {
        path,
        content,
        line_count: reading.line_count,
        line_count_exact: reading.line_count_exact,
        size_bytes: reading.opened.stat.size,
        modified: reading.opened.stat.modified.to_string(),
        encoding: reading.encoding,
        truncated: reading.truncated,
        start_line: reading.first,
        end_line: reading.last,
        next: reading.next,
        next_byte: reading.next_byte,
        hash: reading.hash,
        notice,
    }
}

/// The file and what of it was read.
fn headline(output: &Output) -> String {
    let lines = match (output.start_line, output.end_line) {
        (Some(first), Some(last)) => format!("lines {first}-{last} of "),
        _ => "lines: ".to_owned(),
    };
    let more = if output.line_count_exact { "" } else { "+" };
    let encoding = if output.encoding == "utf-8" { String::new() } else { format!(", {}", output.encoding) };
    let hash = output.hash.as_deref().and_then(|hash| hash.get(..16));
    let hash = hash.map_or(String::new(), |hash| format!(", hash {hash}"));
    format!(
        "{}: {lines}{}{more}, {} bytes{encoding}, modified {}{hash}",
        output.path, output.line_count, output.size_bytes, output.modified
    )
}

fn number(content: &str, first: u64) -> String {
    let lines = content.split_inclusive('\n').zip(first..);
    lines.map(|(line, number)| format!("{number}\t{line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn parse_selection(input: Value) -> Result<LineSelection, String> {
        let mut input = input;
        input["path"] = json!("f");
        lines(&serde_json::from_value(input).unwrap()).map_err(|error| error.text())
    }

    #[test]
    fn which_lines_are_meant() {
        let rows = [
            (json!({}), LineSelection::Span(1, u64::MAX - 1)),
            (json!({"start_line": 3}), LineSelection::Span(3, u64::MAX - 1)),
            (json!({"end_line": 3}), LineSelection::Span(1, 3)),
            (json!({"head": 3}), LineSelection::Span(1, 3)),
            (json!({"tail": 3}), LineSelection::Last(3)),
        ];
        for (input, lines) in rows {
            assert_eq!(parse_selection(input), Ok(lines));
        }
        let refused = [
            json!({"head": 1, "tail": 1}),
            json!({"head": 1, "start_line": 1}),
            json!({"tail": 1, "end_line": 1}),
            json!({"start_line": 0}),
            json!({"head": 0}),
            json!({"start_line": 3, "end_line": 2}),
        ];
        for input in refused {
            assert!(parse_selection(input.clone()).is_err(), "{input}");
        }
    }

    #[test]
    fn the_text_is_raw_below_one_line_about_the_file() {
        let whole = Output {
            path: "a.rs".to_owned(),
            content: "fn a() {\n    \"b\";\n}\n".to_owned(),
            line_count: 3,
            line_count_exact: true,
            size_bytes: 20,
            modified: "2030-01-02T03:04:05Z".to_owned(),
            encoding: "utf-8".to_owned(),
            truncated: false,
            start_line: Some(1),
            end_line: Some(3),
            next: None,
            next_byte: None,
            hash: Some("0123456789abcdef".repeat(4)),
            notice: None,
        };
        let about = "a.rs: lines 1-3 of 3, 20 bytes, modified 2030-01-02T03:04:05Z, hash 0123456789abcdef\n";
        assert_eq!(ReadText::text(&whole), Some(format!("{about}text:\nfn a() {{\n    \"b\";\n}}")));
        let part = Output {
            content: "next: 9\n".to_owned(),
            line_count_exact: false,
            encoding: "latin1".to_owned(),
            truncated: true,
            end_line: Some(1),
            next: Some(2),
            next_byte: Some(7),
            hash: None,
            notice: Some("n".to_owned()),
            ..whole
        };
        let about = "a.rs: lines 1-1 of 3+, 20 bytes, latin1, modified 2030-01-02T03:04:05Z\nnotice: n\n";
        assert_eq!(ReadText::text(&part), Some(format!("{about}next: 2\nnext_byte: 7\ntext:\nnext: 9")));
    }

    #[test]
    fn lines_are_numbered_from_where_they_are() {
        assert_eq!(number("a\nb", 9), "9\ta\n10\tb");
    }
}
