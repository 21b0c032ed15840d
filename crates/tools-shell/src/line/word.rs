//! Words: quotes, escapes, and everything behind `$`.

use super::read::{Reader, Until};
use super::{ARITHMETIC, Simple, UNKNOWN, Unreadable, Word};

/// Where a `$` stands. Within double quotes and here-documents a single quote is a letter like any other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Around {
    Nothing,
    Quotes,
}

/// What ends a word outside of quotes.
pub fn is_end(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

impl Reader<'_> {
    pub fn word(&mut self) -> Result<Word, Unreadable> {
        let mut word = Word::default();
        let mut brace = false;
        while let Some(c) = self.peek() {
            if is_end(c) {
                break;
            }
            self.next();
            match c {
                '\\' => self.escaped(&mut word),
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '$' => self.dollar(&mut word, Around::Nothing)?,
                '`' => self.backticks(&mut word)?,
                _ => {
                    brace |= c == '{';
                    word.glob |= matches!(c, '*' | '?' | '[');
                    word.text.push(c);
                }
            }
        }
        // Some shells called `sh` expand these; others do not.
        word.glob |= brace && (word.text.contains(',') || word.text.contains(".."));
        // `[` alone is a program.
        word.glob &= !matches!(word.text.as_str(), "[" | "[[");
        Ok(word)
    }

    /// A backslash; at the end of a line it joins two lines.
    fn escaped(&mut self, word: &mut Word) {
        match self.next() {
            Some('\n') => {}
            Some(c) => {
                word.quoted = true;
                word.text.push(c);
            }
            None => word.text.push('\\'),
        }
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        word.quoted = true;
        loop {
            match self.next().ok_or(Unreadable::Quote)? {
                '\'' => return Ok(()),
                c => word.text.push(c),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        word.quoted = true;
        loop {
            match self.next().ok_or(Unreadable::Quote)? {
                '"' => return Ok(()),
                '$' => self.dollar(word, Around::Quotes)?,
                '`' => self.backticks(word)?,
                '\\' => match self.next().ok_or(Unreadable::Quote)? {
                    '\n' => {}
                    c if matches!(c, '$' | '`' | '"' | '\\') => word.text.push(c),
                    c => word.text.extend(['\\', c]),
                },
                c => word.text.push(c),
            }
        }
    }

    /// What follows `$`.
    pub fn dollar(&mut self, word: &mut Word, around: Around) -> Result<(), Unreadable> {
        match self.peek() {
            Some('(') => {
                self.next();
                if self.peek() == Some('(') {
                    self.arithmetic()?;
                } else {
                    word.splits |= around == Around::Nothing;
                    self.nested(Until::Paren)?;
                }
            }
            Some('{') => {
                self.next();
                word.splits |= around == Around::Nothing;
                self.parameter(around)?;
            }
            Some('[') => self.blind(ARITHMETIC),
            Some('\'') if around == Around::Nothing => {
                self.blind("$'...', which shells read in different ways")
            }
            Some('"') => {}
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
                word.splits |= around == Around::Nothing && !"#?-$!".contains(c);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                word.splits |= around == Around::Nothing;
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.next();
                }
            }
            _ => {
                word.text.push('$');
                return Ok(());
            }
        }
        word.open = true;
        word.text.push(UNKNOWN);
        Ok(())
    }

    /// `$((1 + 2))`, which may hold substitutions. When it does not end in `))`, shells disagree about what it is.
    fn arithmetic(&mut self) -> Result<(), Unreadable> {
        let (mut depth, mut aside, mut in_number) = (1_usize, Word::default(), false);
        while depth > 0 {
            let c = self.next().ok_or(Unreadable::Bracket)?;
            // A variable in arithmetic is itself read as arithmetic, and an index in that can hold commands.
            let special = c == '$' && self.peek().is_some_and(|c| "#?$!".contains(c));
            in_number = c.is_ascii_digit() || in_number && c.is_ascii_alphanumeric();
            if !in_number && !special && (c.is_ascii_alphabetic() || "_$`[\"'\\".contains(c)) {
                self.blind(ARITHMETIC);
            }
            match c {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 1 && self.peek() != Some(')') {
                        self.blind("$((...) ...), which shells read in different ways");
                    }
                }
                '$' => self.dollar(&mut aside, Around::Quotes)?,
                '`' => self.backticks(&mut aside)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `${name:-word}`, whose word may hold substitutions.
    fn parameter(&mut self, around: Around) -> Result<(), Unreadable> {
        self.operator();
        let mut aside = Word::default();
        loop {
            match self.next().ok_or(Unreadable::Bracket)? {
                '}' => return Ok(()),
                '\\' => {
                    self.next();
                }
                '\'' if around == Around::Nothing => self.single(&mut aside)?,
                '\'' => self.blind("a single quote in ${...}, which shells read in different ways"),
                '"' => self.double(&mut aside)?,
                '$' => self.dollar(&mut aside, around)?,
                '`' => self.backticks(&mut aside)?,
                _ => {}
            }
        }
    }

    /// Looks at a parameter's name and what is done with it. Larger shells run commands for an indirect name, for an
    /// index, for the numbers of a substring and for a text that is read as a prompt.
    fn operator(&mut self) {
        let mut ahead = self.text.clone();
        ahead.next_if_eq(&'#');
        if ahead.next_if_eq(&'!').is_some() && ahead.peek() != Some(&'}') {
            self.blind("${!...}, whose variable is known only at run time");
        }
        let mut name = String::new();
        while let Some(c) = ahead.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
            name.push(c);
        }
        if name.is_empty() {
            ahead.next_if(|c| "@*#?-$!".contains(*c));
        }
        let is_index = ahead.next_if_eq(&'[').is_some();
        let rest: String = ahead.clone().take_while(|c| *c != '}').collect();
        let after = if is_index { rest.split_once(']').unwrap_or((&rest, "")) } else { ("0", rest.as_str()) };
        let (index, operation) = after;
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit() || " :-".contains(c));
        if !matches!(index, "@" | "*") && !is_number(index) {
            self.blind(ARITHMETIC);
        }
        match operation.strip_prefix(':').map_or(operation, |rest| rest).chars().next() {
            Some('=') => self.found.commands.push(Simple { assigned: vec![name], ..Simple::default() }),
            Some('@') => self.blind("${...@...}, which can run commands"),
            Some('-' | '?' | '+') | None => {}
            Some(_) if operation.starts_with(':') && !is_number(operation) => self.blind(ARITHMETIC),
            Some(_) => {}
        }
    }

    /// The older substitution: its text is unescaped first, then read.
    pub fn backticks(&mut self, word: &mut Word) -> Result<(), Unreadable> {
        let mut text = String::new();
        loop {
            match self.next().ok_or(Unreadable::Quote)? {
                '`' => break,
                '\\' => match self.next().ok_or(Unreadable::Quote)? {
                    c if matches!(c, '$' | '`' | '\\') => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c => text.push(c),
            }
        }
        self.apart(&text)?;
        word.open = true;
        word.splits = true;
        word.text.push(UNKNOWN);
        Ok(())
    }
}
