//! Words: quotes, escapes, and everything behind `$`.

use super::read::{Reader, Until};
use super::{UNKNOWN, Unreadable, Word};

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
                    self.nested(Until::Paren)?;
                }
            }
            Some('{') => {
                self.next();
                self.parameter(around)?;
            }
            Some('\'') if around == Around::Nothing => {
                self.blind("$'...', which shells read in different ways")
            }
            Some('"') => {}
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
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
        let (mut depth, mut aside) = (1_usize, Word::default());
        while depth > 0 {
            match self.next().ok_or(Unreadable::Bracket)? {
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
        let mut aside = Word::default();
        loop {
            match self.next().ok_or(Unreadable::Bracket)? {
                '}' => return Ok(()),
                '\\' => {
                    self.next();
                }
                '\'' if around == Around::Nothing => self.single(&mut aside)?,
                '"' => self.double(&mut aside)?,
                '$' => self.dollar(&mut aside, around)?,
                '`' => self.backticks(&mut aside)?,
                _ => {}
            }
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
        word.text.push(UNKNOWN);
        Ok(())
    }
}
