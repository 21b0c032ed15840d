//! Words: quotes, escapes, and expansions with `$`.

use crate::command_line::shell_parser::{Parser, Terminator};
use crate::command_line::{ARITHMETIC_REASON, EXPANSION, ParseError, SimpleCommand, Word};

/// Context of a `$`. Within double quotes and here-documents a single quote is an ordinary character.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum QuoteContext {
    Unquoted,
    DoubleQuoted,
}

/// Whether a character ends an unquoted word.
pub fn ends_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

impl Parser<'_> {
    pub fn word(&mut self) -> Result<Word, ParseError> {
        let mut word = Word::default();
        let mut brace = false;
        while let Some(c) = self.peek() {
            if ends_word(c) {
                break;
            }
            self.next();
            match c {
                '\\' => self.escaped(&mut word),
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '$' => self.dollar(&mut word, QuoteContext::Unquoted)?,
                '`' => self.backticks(&mut word)?,
                _ => {
                    brace |= c == '{';
                    word.has_glob |= matches!(c, '*' | '?' | '[');
                    word.text.push(c);
                }
            }
        }
        // Some shells called `sh` expand these; others do not.
        word.has_glob |= brace && (word.text.contains(',') || word.text.contains(".."));
        // `[` alone is a program.
        word.has_glob &= !matches!(word.text.as_str(), "[" | "[[");
        Ok(word)
    }

    /// A backslash; at the end of a line it is a line continuation.
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

    fn single(&mut self, word: &mut Word) -> Result<(), ParseError> {
        word.quoted = true;
        loop {
            match self.next().ok_or(ParseError::UnclosedQuote)? {
                '\'' => return Ok(()),
                c => word.text.push(c),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), ParseError> {
        word.quoted = true;
        loop {
            match self.next().ok_or(ParseError::UnclosedQuote)? {
                '"' => return Ok(()),
                '$' => self.dollar(word, QuoteContext::DoubleQuoted)?,
                '`' => self.backticks(word)?,
                '\\' => match self.next().ok_or(ParseError::UnclosedQuote)? {
                    '\n' => {}
                    c if matches!(c, '$' | '`' | '"' | '\\') => word.text.push(c),
                    c => word.text.extend(['\\', c]),
                },
                c => word.text.push(c),
            }
        }
    }

    /// The expansion after `$`.
    pub fn dollar(&mut self, word: &mut Word, around: QuoteContext) -> Result<(), ParseError> {
        match self.peek() {
            Some('(') => {
                self.next();
                if self.peek() == Some('(') {
                    self.arithmetic()?;
                } else {
                    word.may_split |= around == QuoteContext::Unquoted;
                    self.nested(Terminator::Paren)?;
                }
            }
            Some('{') => {
                self.next();
                word.may_split |= around == QuoteContext::Unquoted;
                self.parameter(around)?;
            }
            Some('[') => self.mark_opaque(ARITHMETIC_REASON),
            Some('\'') if around == QuoteContext::Unquoted => {
                self.mark_opaque("$'...', which shells read in different ways")
            }
            Some('"') => {}
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.next();
                word.may_split |= around == QuoteContext::Unquoted && !"#?-$!".contains(c);
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                word.may_split |= around == QuoteContext::Unquoted;
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.next();
                }
            }
            _ => {
                word.text.push('$');
                return Ok(());
            }
        }
        word.has_expansion = true;
        word.text.push(EXPANSION);
        Ok(())
    }

    /// `$((1 + 2))`, which may contain substitutions. If it does not end in `))`, shells disagree about its meaning.
    fn arithmetic(&mut self) -> Result<(), ParseError> {
        let (mut depth, mut aside, mut in_number) = (1_usize, Word::default(), false);
        while depth > 0 {
            let c = self.next().ok_or(ParseError::UnbalancedBracket)?;
            // A variable in arithmetic is itself evaluated as arithmetic, and an index in it can contain commands.
            let special = c == '$' && self.peek().is_some_and(|c| "#?$!".contains(c));
            in_number = c.is_ascii_digit() || in_number && c.is_ascii_alphanumeric();
            if !in_number && !special && (c.is_ascii_alphabetic() || "_$`[\"'\\".contains(c)) {
                self.mark_opaque(ARITHMETIC_REASON);
            }
            match c {
                '(' => depth += 1,
                ')' => {
                    depth -= 1;
                    if depth == 1 && self.peek() != Some(')') {
                        self.mark_opaque("$((...) ...), which shells read in different ways");
                    }
                }
                '$' => self.dollar(&mut aside, QuoteContext::DoubleQuoted)?,
                '`' => self.backticks(&mut aside)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// `${name:-word}`, whose word may contain substitutions.
    fn parameter(&mut self, around: QuoteContext) -> Result<(), ParseError> {
        self.operator();
        let mut aside = Word::default();
        loop {
            match self.next().ok_or(ParseError::UnbalancedBracket)? {
                '}' => return Ok(()),
                '\\' => {
                    self.next();
                }
                '\'' if around == QuoteContext::Unquoted => self.single(&mut aside)?,
                '\'' => self.mark_opaque("a single quote in ${...}, which shells read in different ways"),
                '"' => self.double(&mut aside)?,
                '$' => self.dollar(&mut aside, around)?,
                '`' => self.backticks(&mut aside)?,
                _ => {}
            }
        }
    }

    /// Checks a parameter's name and operator. Shells with more features run commands for an indirect name, an index,
    /// the numbers of a substring and a text that is expanded as a prompt.
    fn operator(&mut self) {
        let mut ahead = self.text.clone();
        ahead.next_if_eq(&'#');
        if ahead.next_if_eq(&'!').is_some() && ahead.peek() != Some(&'}') {
            self.mark_opaque("${!...}, whose variable is known only at run time");
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
            self.mark_opaque(ARITHMETIC_REASON);
        }
        match operation.strip_prefix(':').map_or(operation, |rest| rest).chars().next() {
            Some('=') => {
                self.line.commands.push(SimpleCommand { assignments: vec![name], ..SimpleCommand::default() })
            }
            Some('@') => self.mark_opaque("${...@...}, which can run commands"),
            Some('-' | '?' | '+') | None => {}
            Some(_) if operation.starts_with(':') && !is_number(operation) => {
                self.mark_opaque(ARITHMETIC_REASON)
            }
            Some(_) => {}
        }
    }

    /// Backtick substitution: its text is unescaped first, then parsed.
    pub fn backticks(&mut self, word: &mut Word) -> Result<(), ParseError> {
        let mut text = String::new();
        loop {
            match self.next().ok_or(ParseError::UnclosedQuote)? {
                '`' => break,
                '\\' => match self.next().ok_or(ParseError::UnclosedQuote)? {
                    c if matches!(c, '$' | '`' | '\\') => text.push(c),
                    c => text.extend(['\\', c]),
                },
                c => text.push(c),
            }
        }
        self.parse_separately(&text)?;
        word.has_expansion = true;
        word.may_split = true;
        word.text.push(EXPANSION);
        Ok(())
    }
}
