//! Line writer: collapses white space, defers line breaks, adds prefixes of quotes and lists, escapes markup.

/// Line prefix of a quote or list item.
struct Prefix {
    /// Prefix of the first line, until it is written.
    first: Option<String>,
    rest: &'static str,
}

/// Maximum number of levels shown.
const MAX_PREFIX_LEVELS: usize = 12;

pub struct LineWriter {
    out: String,
    limit: usize,
    plain: bool,
    prefixes: Vec<Prefix>,
    /// Levels entered beyond the last one shown.
    hidden_levels: usize,
    /// Line breaks to write before the next character.
    pending_breaks: usize,
    /// Whether to write a space before the next character.
    pending_space: bool,
    /// Whether the current line has content after its prefix.
    line_started: bool,
    /// Number of enclosing places where blocks must not break the line.
    fold_depth: usize,
    /// Number of enclosing table cells.
    cell_depth: usize,
    /// Opening marks (`**`, `[`) and whether they are written yet: an empty pair is omitted.
    open_marks: Vec<(&'static str, bool)>,
}

impl LineWriter {
    pub fn new(limit: usize, plain: bool) -> Self {
        Self {
            out: String::new(),
            limit,
            plain,
            prefixes: Vec::new(),
            hidden_levels: 0,
            pending_breaks: 0,
            pending_space: false,
            line_started: false,
            fold_depth: 0,
            cell_depth: 0,
            open_marks: Vec::new(),
        }
    }

    pub fn is_full(&self) -> bool {
        self.out.len() > self.limit
    }

    pub fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    /// Ends the line; two line breaks leave an empty line.
    pub fn end_line(&mut self, ends: usize) {
        self.pending_space |= self.fold_depth > 0;
        if self.fold_depth > 0 || self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
            return;
        }
        if !self.out.is_empty() {
            self.pending_breaks = self.pending_breaks.max(ends);
        }
        self.pending_space = false;
    }

    /// Explicit line break, as `<br>`.
    pub fn break_line(&mut self) {
        if self.fold_depth > 0 {
            self.pending_space = true;
        } else if self.line_started || self.pending_breaks > 0 {
            self.pending_breaks = (self.pending_breaks + 1).min(2);
            self.pending_space = false;
        }
    }

    /// Limits the line breaks before the next content.
    pub fn limit_breaks(&mut self, ends: usize) {
        self.pending_breaks = self.pending_breaks.min(ends);
    }

    pub fn push_prefix(&mut self, first: String, rest: &'static str) {
        if self.fold_depth > 0 || self.prefixes.len() >= MAX_PREFIX_LEVELS {
            self.hidden_levels += 1;
            return;
        }
        // The preceding empty line belongs to the outer level.
        while self.pending_breaks > 1 {
            self.pending_breaks -= 1;
            self.empty_line();
        }
        self.prefixes.push(Prefix { first: Some(first), rest });
    }

    pub fn pop_prefix(&mut self) {
        if self.hidden_levels > 0 {
            self.hidden_levels -= 1;
        } else {
            self.prefixes.pop();
        }
    }

    /// Until the matching `unfold`, blocks are written on one line.
    pub fn fold(&mut self) {
        self.fold_depth += 1;
    }

    pub fn unfold(&mut self) {
        self.fold_depth = self.fold_depth.saturating_sub(1);
    }

    pub fn is_folded(&self) -> bool {
        self.fold_depth > 0
    }

    pub fn is_cell(&self) -> bool {
        self.cell_depth > 0
    }

    /// Writer for a table cell, or for another part that is inserted into this one later.
    pub fn sub_writer(&self, cell: bool) -> Self {
        let cells = self.cell_depth + usize::from(cell);
        let limit = self.limit.saturating_sub(self.out.len());
        Self { fold_depth: 1, cell_depth: cells, ..Self::new(limit, self.plain) }
    }

    /// Writes an opening mark once content follows it.
    pub fn open_mark(&mut self, mark: &'static str) {
        self.open_marks.push((mark, false));
    }

    /// Closes the last opened mark; whether there was content in it.
    pub fn close_mark(&mut self, mark: &str) -> bool {
        let written = self.open_marks.pop().is_some_and(|(_, written)| written);
        if written {
            self.out.push_str(mark);
        }
        written
    }

    /// Writes text of the page: white space collapsed, Markdown escaped.
    pub fn push_text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            // Letters and digits are never markup, so they are written in one piece.
            let run = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let (now, after) = rest.split_at(run.max(c.len_utf8()));
            rest = after;
            if is_blank(c) {
                self.pending_space = true;
                continue;
            }
            let starts = (!self.line_started || self.pending_breaks > 0) && self.open_marks.is_empty();
            self.flush_pending();
            if run == 0 && !self.plain && self.must_escape(c, after, starts) {
                self.out.push('\\');
            }
            self.out.push_str(now);
        }
    }

    /// Writes inline Markdown.
    pub fn push_raw(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.flush_pending();
        self.out.push_str(text);
    }

    /// Writes a space if something precedes it.
    pub fn push_space(&mut self) {
        self.pending_space = true;
    }

    /// Writes lines unchanged, such as code.
    pub fn push_lines(&mut self, text: &str) {
        for line in text.lines() {
            if self.is_full() {
                return;
            }
            if line.is_empty() {
                self.pending_breaks = self.pending_breaks.min(1);
                if self.pending_breaks > 0 {
                    self.empty_line();
                }
            } else {
                self.flush_pending();
                self.out.push_str(line);
            }
            self.pending_breaks = 1;
        }
    }

    /// Writes what is pending: line breaks, prefixes, a space, opening marks.
    fn flush_pending(&mut self) {
        if self.pending_breaks > 0 || (self.out.is_empty() && !self.line_started) {
            while self.pending_breaks > 1 {
                self.pending_breaks -= 1;
                self.empty_line();
            }
            if self.pending_breaks == 1 {
                self.out.push('\n');
            }
            self.pending_breaks = 0;
            for prefix in &mut self.prefixes {
                match prefix.first.take() {
                    Some(first) => self.out.push_str(&first),
                    None => self.out.push_str(prefix.rest),
                }
            }
        } else if let Some(first) = self.prefixes.last_mut().and_then(|prefix| prefix.first.take()) {
            // An item that starts on the line of the outer one.
            self.out.push_str(&first);
        } else if self.pending_space && self.line_started {
            self.out.push(' ');
        }
        self.pending_space = false;
        self.line_started = true;
        for (mark, written) in &mut self.open_marks {
            if !*written {
                *written = true;
                self.out.push_str(mark);
            }
        }
    }

    fn empty_line(&mut self) {
        self.out.push('\n');
        let from = self.out.len();
        for prefix in &self.prefixes {
            if prefix.first.is_none() {
                self.out.push_str(prefix.rest);
            }
        }
        self.out.truncate(from.max(self.out.trim_end_matches(' ').len()));
    }

    fn must_escape(&self, c: char, after: &str, starts: bool) -> bool {
        let next = after.chars().next();
        let spaced = next.is_none_or(is_blank);
        match c {
            '`' => true,
            '*' => !(spaced && self.out.ends_with([' ', '\n'])) || starts,
            '_' => {
                let joined = self.out.chars().next_back().is_some_and(char::is_alphanumeric)
                    && next.is_some_and(char::is_alphanumeric);
                !joined && !spaced
            }
            '[' | ']' => self.open_marks.iter().any(|(mark, _)| mark.ends_with('[')),
            '<' => next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            '|' => self.cell_depth > 0,
            '\\' => next.is_some_and(|c| c.is_ascii_punctuation()),
            '#' => starts && after.trim_start_matches('#').starts_with([' ', '\t']),
            '>' => starts,
            '-' | '+' => starts && spaced,
            '.' | ')' if spaced => self.is_list_number(),
            _ => false,
        }
    }

    /// Whether the line so far consists of a number only.
    fn is_list_number(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        let digits = line.trim_start_matches([' ', '>']);
        (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}

pub fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
