//! Text in lines: white space folded, line ends owed until something follows, prefixes of quotes and lists, escapes.

/// What a quote or a list item puts before its lines.
struct Prefix {
    /// Before the first line, until it is written.
    first: Option<String>,
    rest: &'static str,
}

/// More levels than this are not shown.
const LEVELS: usize = 12;

pub struct Writer {
    out: String,
    limit: usize,
    plain: bool,
    prefixes: Vec<Prefix>,
    /// Levels that were entered past the last one shown.
    unseen: usize,
    /// Line ends owed before the next character.
    breaks: usize,
    /// A space owed before the next character.
    space: bool,
    /// Whether the present line has a character of its own.
    begun: bool,
    /// In how many places blocks must not end the line.
    flat: usize,
    /// In how many tables' cells we are.
    cells: usize,
    /// Openings (`**`, `[`) and whether they are written yet: an empty pair is left out.
    marks: Vec<(&'static str, bool)>,
}

impl Writer {
    pub fn new(limit: usize, plain: bool) -> Self {
        Self {
            out: String::new(),
            limit,
            plain,
            prefixes: Vec::new(),
            unseen: 0,
            breaks: 0,
            space: false,
            begun: false,
            flat: 0,
            cells: 0,
            marks: Vec::new(),
        }
    }

    pub fn is_full(&self) -> bool {
        self.out.len() > self.limit
    }

    pub fn finish(mut self) -> String {
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    /// Ends the line; two line ends leave an empty line between.
    pub fn end_line(&mut self, ends: usize) {
        self.space |= self.flat > 0;
        if self.flat > 0 || self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
            return;
        }
        if !self.out.is_empty() {
            self.breaks = self.breaks.max(ends);
        }
        self.space = false;
    }

    /// A line end that counts for itself, as `<br>`.
    pub fn break_line(&mut self) {
        if self.flat > 0 {
            self.space = true;
        } else if self.begun || self.breaks > 0 {
            self.breaks = (self.breaks + 1).min(2);
            self.space = false;
        }
    }

    /// At most this many line ends before what comes next.
    pub fn tighten(&mut self, ends: usize) {
        self.breaks = self.breaks.min(ends);
    }

    pub fn enter(&mut self, first: String, rest: &'static str) {
        if self.flat > 0 || self.prefixes.len() >= LEVELS {
            self.unseen += 1;
            return;
        }
        // The empty line before belongs to the outer level.
        while self.breaks > 1 {
            self.breaks -= 1;
            self.empty_line();
        }
        self.prefixes.push(Prefix { first: Some(first), rest });
    }

    pub fn leave(&mut self) {
        if self.unseen > 0 {
            self.unseen -= 1;
        } else {
            self.prefixes.pop();
        }
    }

    /// Until the matching `unfold`, blocks are words of one line.
    pub fn fold(&mut self) {
        self.flat += 1;
    }

    pub fn unfold(&mut self) {
        self.flat = self.flat.saturating_sub(1);
    }

    pub fn is_folded(&self) -> bool {
        self.flat > 0
    }

    pub fn is_cell(&self) -> bool {
        self.cells > 0
    }

    /// A writer for one cell of a table, or another part that is put into this one later.
    pub fn part(&self, cell: bool) -> Self {
        let cells = self.cells + usize::from(cell);
        let limit = self.limit.saturating_sub(self.out.len());
        Self { flat: 1, cells, ..Self::new(limit, self.plain) }
    }

    /// Writes an opening when something follows it.
    pub fn open(&mut self, mark: &'static str) {
        self.marks.push((mark, false));
    }

    /// Ends what was opened last; whether there was something in it.
    pub fn close(&mut self, mark: &str) -> bool {
        let written = self.marks.pop().is_some_and(|(_, written)| written);
        if written {
            self.out.push_str(mark);
        }
        written
    }

    /// Words of the page: white space folded, marks of Markdown escaped.
    pub fn words(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            // Letters and digits are never marks, so they go in one piece.
            let run = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
            let (now, after) = rest.split_at(run.max(c.len_utf8()));
            rest = after;
            if is_blank(c) {
                self.space = true;
                continue;
            }
            let starts = (!self.begun || self.breaks > 0) && self.marks.is_empty();
            self.ready();
            if run == 0 && !self.plain && self.must_escape(c, after, starts) {
                self.out.push('\\');
            }
            self.out.push_str(now);
        }
    }

    /// Text that is Markdown already, within a line.
    pub fn raw(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.ready();
        self.out.push_str(text);
    }

    /// A space, if something stands before it.
    pub fn space(&mut self) {
        self.space = true;
    }

    /// Lines that stand as they are, such as code.
    pub fn lines(&mut self, text: &str) {
        for line in text.lines() {
            if self.is_full() {
                return;
            }
            if line.is_empty() {
                self.breaks = self.breaks.min(1);
                if self.breaks > 0 {
                    self.empty_line();
                }
            } else {
                self.ready();
                self.out.push_str(line);
            }
            self.breaks = 1;
        }
    }

    /// Pays what is owed: line ends, prefixes, a space, openings.
    fn ready(&mut self) {
        if self.breaks > 0 || (self.out.is_empty() && !self.begun) {
            while self.breaks > 1 {
                self.breaks -= 1;
                self.empty_line();
            }
            if self.breaks == 1 {
                self.out.push('\n');
            }
            self.breaks = 0;
            for prefix in &mut self.prefixes {
                match prefix.first.take() {
                    Some(first) => self.out.push_str(&first),
                    None => self.out.push_str(prefix.rest),
                }
            }
        } else if let Some(first) = self.prefixes.last_mut().and_then(|prefix| prefix.first.take()) {
            // An item that begins on the line of the outer one.
            self.out.push_str(&first);
        } else if self.space && self.begun {
            self.out.push(' ');
        }
        self.space = false;
        self.begun = true;
        for (mark, written) in &mut self.marks {
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
            '[' | ']' => self.marks.iter().any(|(mark, _)| mark.ends_with('[')),
            '<' => next.is_some_and(|c| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')),
            '|' => self.cells > 0,
            '\\' => next.is_some_and(|c| c.is_ascii_punctuation()),
            '#' => starts && after.trim_start_matches('#').starts_with([' ', '\t']),
            '>' => starts,
            '-' | '+' => starts && spaced,
            '.' | ')' if spaced => self.is_number_of_item(),
            _ => false,
        }
    }

    /// Whether the line so far is a number and nothing else.
    fn is_number_of_item(&self) -> bool {
        let line = self.out.rsplit('\n').next().unwrap_or_default();
        let digits = line.trim_start_matches([' ', '>']);
        (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
    }
}

pub fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}' | '\u{a0}')
}
