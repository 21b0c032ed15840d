//! `result_read`: reads the rest of a truncated reply.

use crate::results::jq_eval::JqRunner;
use crate::results::reply_text::{LineReader, TextLine, read_range};
use octo_admission::{FairSlot, FairSlots, SlotLimits};
use octo_grants::jq::{MAX_INPUT_BYTES, too_large};
use octo_grants::{Capabilities, Grant};
use octo_model::{Effect, Json, Kind, ToolError};
use octo_ports::{ResultStore, StoredText, TextSize};
use octo_toolkit::reply_budget::prefix_within;
use octo_toolkit::{CallContext, Example, Tool, json_len};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::sync::Arc;

/// Name of the tool that reads stored results.
pub const RESULT_READ_TOOL: &str = "result_read";

/// Maximum bytes of a page.
const MAX_PAGE_BYTES: usize = 40_000;
/// Maximum bytes of the reply beside its text.
const ENVELOPE_BYTES: usize = 160;
/// Maximum bytes of the note on a long line.
const LINE_NOTE_BYTES: usize = 72;
/// Minimum page size, so that `next` always advances: a character takes up to four bytes.
const MIN_PAGE_BYTES: usize = 4;
/// Maximum bytes of a line number.
const LINE_NUMBER_BYTES: usize = 24;
const DEFAULT_LINES: u64 = 200;

/// Maximum concurrent reads; one caller has at most half of them.
const MAX_CONCURRENT_READS: usize = 4;
/// Longer lines are searched in overlapping pieces of this size.
const MAX_PIECE_BYTES: usize = 1 << 20;
const PIECE_OVERLAP_BYTES: usize = 4 << 10;
/// Lines read between two checks of the deadline.
const LINES_PER_DEADLINE_CHECK: u64 = 4_096;

/// The stored results and their readers.
#[derive(Clone)]
pub struct ResultReader {
    result_store: Arc<dyn ResultStore>,
    jq: JqRunner,
    reads: Arc<FairSlots>,
}

impl ResultReader {
    pub fn new(result_store: Arc<dyn ResultStore>, jq: JqRunner) -> Self {
        let limits =
            SlotLimits { tenant_factor: 2, caller_factor: 1, ..SlotLimits::new(MAX_CONCURRENT_READS) };
        Self { result_store, jq, reads: FairSlots::new("result_reads", limits) }
    }

    /// Opens a stored reply in a slot, since a store may have to load it for that.
    async fn open(&self, handle: &str, cx: &CallContext) -> Result<OpenText, ToolError> {
        let slot = self.reads.acquire(&cx.caller.principal, cx.deadline.into()).await;
        let slot = slot.map_err(|reason| reason.error("The hub"))?;
        let text = self.result_store.open_text(&cx.caller, handle).await?;
        Ok(OpenText { text, slot })
    }

    async fn jq(
        &self,
        program: &str,
        handle: &str,
        size: TextSize,
        cx: &CallContext,
    ) -> Result<String, ToolError> {
        if size.bytes > MAX_INPUT_BYTES as u64 {
            return Err(too_large("This reply", size.bytes)
                .hint("Read it by lines, bytes or a pattern, or run the tool again and ask for less."));
        }
        let turn = self.jq.acquire(&cx.caller).await?;
        let whole = self.result_store.load(&cx.caller, handle).await?;
        let input = tokio::task::spawn_blocking(move || jq_input(&whole)).await;
        let input = input.unwrap_or_else(|error| Err(ToolError::internal(error)))?;
        turn.run(program, input).await
    }
}

/// The text of a stored reply, and the slot of its reader.
struct OpenText {
    text: StoredText,
    slot: FairSlot,
}

impl OpenText {
    /// Runs blocking work on the text, off the runtime's threads.
    async fn read<T: Send + 'static>(
        self,
        work: impl FnOnce(StoredText) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let Self { text, slot } = self;
        let work = tokio::task::spawn_blocking(move || {
            let _slot = slot;
            work(text)
        });
        work.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }
}

/// Input of a jq expression: the structured content of a reply, or its text if that is JSON.
fn jq_input(whole: &Json) -> Result<Json, ToolError> {
    let result = whole.members().unwrap_or_default();
    if let Some(structure) = result.get("structuredContent") {
        return Ok(structure.clone());
    }
    if result.get("content").is_none() {
        return Ok(whole.clone());
    }
    let texts = result.list("content").into_iter().filter_map(|block| block.member("text")?.to_text());
    Json::parse(texts.collect::<Vec<_>>().join("\n"))
        .ok()
        .filter(|json| json.is_object() || json.as_str().starts_with('['))
        .ok_or_else(|| {
            ToolError::invalid("This reply is plain text.").hint("Read it by lines, bytes or a pattern.")
        })
}

impl Grant for ResultReader {
    fn open(doors: &Capabilities) -> Result<Self, ToolError> {
        doors.open()
    }
}

/// Reads more of a truncated reply.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// From the truncated reply.
    handle: String,
    /// First line, from 1.
    #[serde(default)]
    from_line: Option<u64>,
    /// Number of lines.
    #[serde(default)]
    lines: Option<u64>,
    /// First byte, from 0.
    #[serde(default)]
    from_byte: Option<u64>,
    /// Number of bytes.
    #[serde(default)]
    bytes: Option<usize>,
    /// Only lines matching this regex.
    #[serde(default)]
    pattern: Option<String>,
    /// For structured replies.
    #[serde(default)]
    jq: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// The requested part; lines found by a pattern start with their number.
    text: String,
    /// Lines of the whole reply.
    total_lines: u64,
    /// Bytes of the whole reply.
    total_bytes: u64,
    /// Where to continue: the next line, byte or match; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
    /// The last line is too long: the from_byte of its rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_byte: Option<u64>,
}

pub struct ResultRead;

impl Tool for ResultRead {
    const NAME: &'static str = RESULT_READ_TOOL;
    const TITLE: &'static str = "Read more of a result";
    const KEYWORDS: &'static str = "continue rest remaining page next part large output";
    const REQUESTS: &'static [&'static str] = &[
        "show the rest of the output that was cut off",
        "the reply was too long, continue from line 200",
        "get more of the previous result by its handle",
        "find lines with error in the shortened answer",
        "pick one field out of an earlier cut reply",
        "next part of the omitted output",
    ];
    const EFFECT: Effect = Effect::reads();
    const IS_READER: bool = true;
    type Input = Input;
    type Output = Output;
    type Grants = ResultReader;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "The next hundred lines",
            serde_json::json!({"handle": "r_example", "from_line": 101, "lines": 100}),
        )]
    }

    async fn run(&self, input: Input, kept: ResultReader, cx: &CallContext) -> Result<Output, ToolError> {
        let open = kept.open(&input.handle, cx).await?;
        let size = open.text.size;
        let TextSize { lines: total_lines, bytes: total_bytes } = size;
        let room = cx.reply.remaining_after(ENVELOPE_BYTES).min(MAX_PAGE_BYTES);
        let Page { text, next, next_byte } = if let Some(program) = &input.jq {
            drop(open);
            let found = kept.jq(program, &input.handle, size, cx).await?;
            read_within(input.bytes, room, |length| Ok(page(&found, input.from_byte.unwrap_or(0), length)))?
        } else {
            let reading = cx.clone();
            open.read(move |text| read_part(text, &input, room, &reading)).await?
        };
        Ok(Output { text, total_lines, total_bytes, next, next_byte })
    }
}

/// A part of a text and where the next one starts.
#[derive(Debug, Default)]
struct Page {
    text: String,
    next: Option<u64>,
    /// Where the rest of the last line starts, if it is too long.
    next_byte: Option<u64>,
}

impl From<(String, Option<u64>)> for Page {
    fn from((text, next): (String, Option<u64>)) -> Self {
        Self { text, next, next_byte: None }
    }
}

/// Returns the requested part of the text and where to continue.
fn read_part(mut text: StoredText, input: &Input, room: usize, cx: &CallContext) -> Result<Page, ToolError> {
    match input {
        Input { pattern: Some(pattern), .. } => matching_lines(text, pattern, input, room, cx),
        Input { from_byte: Some(_), bytes, .. }
        | Input { bytes: bytes @ Some(_), from_line: None, lines: None, .. } => {
            let from = input.from_byte.unwrap_or_default();
            read_within(*bytes, room, |length| {
                read_range(&mut text, from, length).map(Page::from).map_err(ToolError::internal)
            })
        }
        _ => read_lines(text, input, room, cx),
    }
}

/// The wanted number of bytes, or fewer so that they take `room` bytes in the reply.
fn read_within(
    wanted: Option<usize>,
    room: usize,
    mut read: impl FnMut(usize) -> Result<Page, ToolError>,
) -> Result<Page, ToolError> {
    let mut length = wanted.unwrap_or(room).clamp(MIN_PAGE_BYTES, room);
    loop {
        let page = read(length)?;
        let size = json_len(&page.text);
        if size <= room {
            return Ok(page);
        }
        length = length.saturating_mul(room) / size;
    }
}

/// A range of bytes, aligned to character boundaries.
fn page(text: &str, from: u64, length: usize) -> Page {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
    let start = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let want = start.saturating_add(length).min(text.len());
    let end = (start..=want).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    (text.get(start..end).unwrap_or_default().to_owned(), (end < text.len()).then_some(end as u64)).into()
}

/// A line with its position in the text.
struct NumberedLine {
    number: u64,
    /// Byte offset of its start.
    at: u64,
    line: TextLine,
}

/// Iterates over the lines from the requested one; `each` returns `true` for the first line that is not shown
/// any more.
fn for_each_line(
    text: StoredText,
    input: &Input,
    cx: &CallContext,
    mut see: impl FnMut(u64, &[u8]),
    mut each: impl FnMut(&NumberedLine) -> bool,
) -> Result<Option<u64>, ToolError> {
    let from = input.from_line.unwrap_or(1).max(1);
    let mut all = LineReader::new(text.reader);
    let (mut number, mut at) = (0, 0);
    loop {
        number += 1;
        if number % LINES_PER_DEADLINE_CHECK == 0 {
            check_deadline(cx)?;
        }
        let keep = if number < from { 0 } else { MAX_PAGE_BYTES + 4 };
        let line = all.next(keep, |piece| {
            if number >= from {
                see(number, piece);
            }
        });
        let Some(line) = line.map_err(ToolError::internal)? else { return Ok(None) };
        let bytes = line.bytes as u64 + u64::from(line.is_ended);
        if number >= from && each(&NumberedLine { number, at, line }) {
            return Ok(Some(number));
        }
        at += bytes;
    }
}

/// Stops a read whose call has ended.
fn check_deadline(cx: &CallContext) -> Result<(), ToolError> {
    cx.check()?;
    if cx.time_left().is_zero() {
        return Err(ToolError::new(Kind::Timeout, "Reading took too long.").hint("Start at a later line."));
    }
    Ok(())
}

impl NumberedLine {
    /// The line as text. A line that takes more than `room` bytes is truncated, with a note of where its rest starts.
    fn render(&self, room: usize) -> (String, Option<u64>) {
        let text = String::from_utf8_lossy(&self.line.prefix);
        let is_whole = self.line.prefix.len() == self.line.bytes;
        if is_whole && json_len(&text) <= room {
            return (text.into_owned(), None);
        }
        let part = prefix_within(text.trim_end_matches('\u{fffd}'), room.saturating_sub(LINE_NOTE_BYTES));
        let rest = self.at + part.len() as u64;
        (format!("{part}… (line truncated: continue with from_byte {rest})"), Some(rest))
    }
}

fn read_lines(text: StoredText, input: &Input, room: usize, cx: &CallContext) -> Result<Page, ToolError> {
    let from = input.from_line.unwrap_or(1).max(1);
    let want = input.lines.unwrap_or(DEFAULT_LINES).max(1);
    let (mut shown, mut used, mut next_byte) = (String::new(), 0, None);
    let next = for_each_line(
        text,
        input,
        cx,
        |_, _| {},
        |placed| {
            let (mut line, rest) = placed.render(room);
            if placed.line.is_ended {
                line.push('\n');
            }
            used += json_len(&line);
            let is_full = placed.number >= from.saturating_add(want) || (used > room && !shown.is_empty());
            if is_full || next_byte.is_some() {
                return true;
            }
            shown.push_str(&line);
            next_byte = rest;
            false
        },
    )?;
    Ok(Page { text: shown, next, next_byte })
}

fn matching_lines(
    text: StoredText,
    pattern: &str,
    input: &Input,
    room: usize,
    cx: &CallContext,
) -> Result<Page, ToolError> {
    let pattern = RegexBuilder::new(pattern).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
    let pattern = pattern.map_err(|error| {
        ToolError::invalid(format!("Invalid pattern: {error}.")).hint("Escape special characters with \\.")
    })?;
    let want = input.lines.unwrap_or(DEFAULT_LINES).max(1);
    let search = RefCell::new(LineSearch { pattern, piece: Vec::new(), found: false });
    let (mut shown, mut count, mut used) = (String::new(), 0, 0);
    let next = for_each_line(
        text,
        input,
        cx,
        |_, piece| search.borrow_mut().push(piece),
        |placed| {
            if !search.borrow_mut().finish_line() {
                return false;
            }
            let (line, _) = placed.render(room.saturating_sub(LINE_NUMBER_BYTES));
            let line = format!("{}: {}\n", placed.number, line.trim_end_matches('\r'));
            used += json_len(&line);
            if count == want || (used > room && count > 0) {
                return true;
            }
            count += 1;
            shown.push_str(&line);
            false
        },
    )?;
    Ok((shown, next).into())
}

/// Searches for a pattern in a line that arrives in pieces.
struct LineSearch {
    pattern: Regex,
    piece: Vec<u8>,
    found: bool,
}

impl LineSearch {
    fn push(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        self.piece.extend_from_slice(piece);
        if self.piece.len() >= MAX_PIECE_BYTES {
            self.found = self.pattern.is_match(&self.piece);
            self.piece.drain(..self.piece.len() - PIECE_OVERLAP_BYTES);
        }
    }

    /// Returns whether the line that ends here matched.
    fn finish_line(&mut self) -> bool {
        let line = self.piece.strip_suffix(b"\r").unwrap_or(&self.piece);
        let found = self.found || self.pattern.is_match(line);
        self.piece.clear();
        self.found = false;
        found
    }
}
