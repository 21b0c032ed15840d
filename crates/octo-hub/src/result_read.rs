//! `result_read`: the rest of a reply that was cut.

use crate::jq::{Jq, JqQueue};
use crate::ports::Spills;
use crate::readable::{KeptText, Line, Lines, TextSize, range};
use octo_grants::{Doors, Grant};
use octo_model::{Effect, Json, Kind, ToolError};
use octo_toolkit::{Cx, Example, Tool};
use regex::bytes::{Regex, RegexBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A page is at most this long, so that reading a cut reply is never cut itself.
const MAX_PAGE: usize = 40_000;
const DEFAULT_LINES: u64 = 200;

/// A reply that jq may be run on: as values it needs many times its size.
const MAX_JQ_INPUT: u64 = 16 << 20;
/// Reads that run at the same time.
const MAX_READS: usize = 4;
/// A longer line is searched in pieces of this size, which overlap.
const MAX_PIECE: usize = 1 << 20;
const OVERLAP: usize = 4 << 10;
/// How many lines are read between two looks at the deadline.
const LINES_PER_LOOK: u64 = 4_096;

/// The results that are kept, and what reads them.
#[derive(Clone)]
pub struct Kept {
    spills: Arc<dyn Spills>,
    jq: Arc<dyn Jq>,
    queue: Arc<JqQueue>,
    reads: Arc<Semaphore>,
}

impl Kept {
    pub fn new(spills: Arc<dyn Spills>, jq: Arc<dyn Jq>) -> Self {
        Self { spills, jq, queue: Arc::default(), reads: Arc::new(Semaphore::new(MAX_READS)) }
    }

    /// Does blocking work on the text of a kept reply, beside the runtime's own threads.
    async fn read<T: Send + 'static>(
        &self,
        text: KeptText,
        work: impl FnOnce(KeptText) -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let turn = Arc::clone(&self.reads).acquire_owned().await.map_err(ToolError::internal)?;
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(text)
        });
        work.await.unwrap_or_else(|error| Err(ToolError::internal(error)))
    }

    async fn jq(&self, program: &str, text: KeptText, cx: &Cx) -> Result<String, ToolError> {
        if text.size.bytes > MAX_JQ_INPUT {
            let size = text.size.bytes;
            return Err(ToolError::new(
                Kind::TooLarge,
                format!("This reply has {size} bytes; a jq expression takes at most {MAX_JQ_INPUT}."),
            )
            .hint("Read it by lines, bytes or a pattern, or run the tool again and ask for less."));
        }
        let _turn = self.queue.turn(&cx.caller).await?;
        let input = self.read(text, |mut text| {
            let mut bytes = Vec::new();
            text.reader.read_to_end(&mut bytes).map_err(ToolError::internal)?;
            Json::parse(bytes)
                .ok()
                .filter(|json| json.is_object() || json.as_str().starts_with('['))
                .ok_or_else(|| {
                    ToolError::invalid("This reply is plain text.")
                        .hint("Read it by lines, bytes or a pattern.")
                })
        });
        self.jq.run(program, input.await?).await
    }
}

impl Grant for Kept {
    fn open(doors: &Doors) -> Result<Self, ToolError> {
        doors.open()
    }
}

/// Reads more of a reply that was cut, by its handle: lines, a range of bytes, lines that match a pattern,
/// or what a jq expression selects. Prefer jq when the reply is structured.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The handle from the cut reply.
    handle: String,
    /// First line to read, counted from 1.
    #[serde(default)]
    from_line: Option<u64>,
    /// How many lines to read.
    #[serde(default)]
    lines: Option<u64>,
    /// First byte to read, counted from 0; instead of lines.
    #[serde(default)]
    from_byte: Option<u64>,
    /// How many bytes to read.
    #[serde(default)]
    bytes: Option<usize>,
    /// Only lines that match this regular expression.
    #[serde(default)]
    pattern: Option<String>,
    /// A jq expression over the structured reply, such as `.rows[] | .name`.
    #[serde(default)]
    jq: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    /// What was asked for; lines found by a pattern begin with their number.
    text: String,
    /// Lines of the whole reply.
    total_lines: u64,
    /// Bytes of the whole reply.
    total_bytes: u64,
    /// Where to go on: the next line, byte or match; absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<u64>,
}

pub struct ResultRead;

impl Tool for ResultRead {
    const NAME: &'static str = "result_read";
    const TITLE: &'static str = "Read more of a result";
    const EFFECT: Effect = Effect::reads();
    type Input = Input;
    type Output = Output;
    type Grants = Kept;

    fn examples() -> Vec<Example> {
        vec![Example::new(
            "The next hundred lines",
            serde_json::json!({"handle": "r_example", "from_line": 101, "lines": 100}),
        )]
    }

    async fn run(&self, input: Input, kept: Kept, cx: &Cx) -> Result<Output, ToolError> {
        let text = kept.spills.open_text(&cx.caller, &input.handle).await?;
        let TextSize { lines: total_lines, bytes: total_bytes } = text.size;
        let (text, next) = if let Some(program) = &input.jq {
            page(&kept.jq(program, text, cx).await?, input.from_byte.unwrap_or(0), MAX_PAGE)
        } else {
            let cx = cx.clone();
            kept.read(text, move |text| part(text, &input, &cx)).await?
        };
        Ok(Output { text, total_lines, total_bytes, next })
    }
}

/// The part of the text that is asked for, and where to go on.
fn part(mut text: KeptText, input: &Input, cx: &Cx) -> Result<(String, Option<u64>), ToolError> {
    match input {
        Input { pattern: Some(pattern), .. } => matching(text, pattern, input, cx),
        Input { from_byte: Some(from), bytes, .. } => {
            range(&mut text, *from, bytes.unwrap_or(MAX_PAGE).min(MAX_PAGE)).map_err(ToolError::internal)
        }
        _ => lines(text, input, cx),
    }
}

/// A range of bytes, moved to where characters begin.
fn page(text: &str, from: u64, length: usize) -> (String, Option<u64>) {
    let from = usize::try_from(from).unwrap_or(usize::MAX).min(text.len());
    let start = (from..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let want = start.saturating_add(length).min(text.len());
    let end = (start..=want).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(start);
    (text.get(start..end).unwrap_or_default().to_owned(), (end < text.len()).then_some(end as u64))
}

/// Goes through the lines from the one that is wanted; `each` says with `true` that a line is not shown any more.
fn walk(
    text: KeptText,
    input: &Input,
    cx: &Cx,
    mut see: impl FnMut(u64, &[u8]),
    mut each: impl FnMut(u64, Line) -> bool,
) -> Result<Option<u64>, ToolError> {
    let from = input.from_line.unwrap_or(1).max(1);
    let mut all = Lines::new(text.reader);
    let mut number = 0;
    loop {
        number += 1;
        if number % LINES_PER_LOOK == 0 {
            look(cx)?;
        }
        let keep = if number < from { 0 } else { MAX_PAGE + 4 };
        let line = all.next(keep, |piece| {
            if number >= from {
                see(number, piece);
            }
        });
        let Some(line) = line.map_err(ToolError::internal)? else { return Ok(None) };
        if number >= from && each(number, line) {
            return Ok(Some(number));
        }
    }
}

/// Ends a read that nobody waits for any more.
fn look(cx: &Cx) -> Result<(), ToolError> {
    cx.check()?;
    if cx.time_left().is_zero() {
        return Err(ToolError::new(Kind::Timeout, "Reading took too long.").hint("Begin at a later line."));
    }
    Ok(())
}

/// The beginning of a line as text, and whether that is not all of it.
fn shown_part(line: &Line) -> (String, bool) {
    let start = line.start.strip_suffix(b"\r").filter(|_| line.start.len() == line.bytes);
    let text = String::from_utf8_lossy(start.unwrap_or(&line.start)).into_owned();
    let (part, rest) = page(&text, 0, MAX_PAGE);
    (part, rest.is_some() || line.start.len() < line.bytes)
}

fn lines(text: KeptText, input: &Input, cx: &Cx) -> Result<(String, Option<u64>), ToolError> {
    let from = input.from_line.unwrap_or(1).max(1);
    let want = input.lines.unwrap_or(DEFAULT_LINES).max(1);
    let mut shown = String::new();
    let next = walk(
        text,
        input,
        cx,
        |_, _| {},
        |number, line| {
            if number >= from.saturating_add(want)
                || (shown.len() + line.bytes > MAX_PAGE && !shown.is_empty())
            {
                return true;
            }
            let (part, cut) = shown_part(&line);
            shown.push_str(&part);
            shown.push_str(if cut { "… (long line: read it by bytes)\n" } else { "\n" });
            false
        },
    )?;
    Ok((shown, next))
}

fn matching(
    text: KeptText,
    pattern: &str,
    input: &Input,
    cx: &Cx,
) -> Result<(String, Option<u64>), ToolError> {
    let pattern = RegexBuilder::new(pattern).size_limit(1 << 20).dfa_size_limit(1 << 20).build();
    let pattern = pattern.map_err(|error| {
        ToolError::invalid(format!("The pattern cannot be read: {error}."))
            .hint("Escape special characters with \\.")
    })?;
    let want = input.lines.unwrap_or(DEFAULT_LINES).max(1);
    let search = RefCell::new(Search { pattern, piece: Vec::new(), found: false });
    let (mut shown, mut count) = (String::new(), 0);
    let next = walk(
        text,
        input,
        cx,
        |_, piece| search.borrow_mut().see(piece),
        |number, line| {
            if !search.borrow_mut().end() {
                return false;
            }
            if count == want || (shown.len() + line.bytes > MAX_PAGE && count > 0) {
                return true;
            }
            count += 1;
            shown.push_str(&format!("{number}: {}\n", shown_part(&line).0));
            false
        },
    )?;
    Ok((shown, next))
}

/// Looks for a pattern in a line that comes in pieces.
struct Search {
    pattern: Regex,
    piece: Vec<u8>,
    found: bool,
}

impl Search {
    fn see(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        self.piece.extend_from_slice(piece);
        if self.piece.len() >= MAX_PIECE {
            self.found = self.pattern.is_match(&self.piece);
            self.piece.drain(..self.piece.len() - OVERLAP);
        }
    }

    /// Whether the line that ends here has matched.
    fn end(&mut self) -> bool {
        let line = self.piece.strip_suffix(b"\r").unwrap_or(&self.piece);
        let found = self.found || self.pattern.is_match(line);
        self.piece.clear();
        self.found = false;
        found
    }
}
