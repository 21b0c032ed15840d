//! Commands: simple commands between operators, in groups, loops, functions and here-documents.

pub(crate) mod compound;
pub(crate) mod shell_word;

use super::{ARITHMETIC_REASON, CommandLine, ParseError, SimpleCommand, Word};
use crate::command_line::shell_parser::shell_word::ends_word;
use std::iter::Peekable;
use std::str::Chars;

/// Far above hand-written nesting.
const MAX_DEPTH: usize = 32;

/// Where a list of commands ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Terminator {
    End,
    Paren,
    /// `;;` or `esac`.
    Case,
}

/// What a list of commands ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ListEnd {
    /// The expected terminator.
    Expected,
    Esac,
}

/// A document that starts after the next line break.
pub struct HereDoc {
    pub delimiter: String,
    pub strips_tabs: bool,
    pub is_literal: bool,
}

pub struct Parser<'a> {
    pub text: Peekable<Chars<'a>>,
    pub depth: usize,
    pub line: CommandLine,
    pub here_docs: Vec<HereDoc>,
    /// Name of the function whose body follows.
    function_name: Option<String>,
    /// Functions whose bodies enclose the position; plain groups have no name.
    function_stack: Vec<Option<String>>,
}

pub fn read(text: &str, depth: usize) -> Result<CommandLine, ParseError> {
    let mut reader = Parser::new(text, depth)?;
    reader.list(Terminator::End)?;
    Ok(reader.line)
}

/// Parses as much as possible; the rest may be the grammar of another shell.
pub fn parse_lossy(text: &str) -> CommandLine {
    let Ok(mut reader) = Parser::new(text, 1) else { return CommandLine::default() };
    if reader.list(Terminator::End).is_err() {
        reader.mark_opaque("commands that only another shell can read");
    }
    reader.line
}

impl<'a> Parser<'a> {
    pub fn new(text: &'a str, depth: usize) -> Result<Self, ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        let text = text.chars().peekable();
        Ok(Self {
            text,
            depth,
            line: CommandLine::default(),
            here_docs: Vec::new(),
            function_name: None,
            function_stack: Vec::new(),
        })
    }

    pub fn peek(&mut self) -> Option<char> {
        self.text.peek().copied()
    }

    pub fn next(&mut self) -> Option<char> {
        self.text.next()
    }

    pub fn eat(&mut self, c: char) -> bool {
        self.text.next_if_eq(&c).is_some()
    }

    pub fn mark_opaque(&mut self, what: &'static str) {
        self.line.opaque.push(what);
    }

    /// Nested commands within this text.
    pub fn nested(&mut self, until: Terminator) -> Result<ListEnd, ParseError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ParseError::TooDeep);
        }
        let ended = self.list(until)?;
        self.depth -= 1;
        Ok(ended)
    }

    /// Commands in a separate text.
    pub fn parse_separately(&mut self, text: &str) -> Result<(), ParseError> {
        let line = read(text, self.depth + 1)?;
        self.line.merge(line);
        Ok(())
    }

    /// Skips blanks, line continuations and a comment.
    pub fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => {
                    self.next();
                }
                Some('\\') => {
                    let mut ahead = self.text.clone();
                    ahead.next();
                    if ahead.next() != Some('\n') {
                        return;
                    }
                    self.text = ahead;
                }
                Some('#') => while self.text.next_if(|c| *c != '\n').is_some() {},
                _ => return,
            }
        }
    }

    fn list(&mut self, until: Terminator) -> Result<ListEnd, ParseError> {
        let mut piped = false;
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else {
                return if until == Terminator::End {
                    Ok(ListEnd::Expected)
                } else {
                    Err(ParseError::UnbalancedBracket)
                };
            };
            match c {
                '\n' => {
                    self.next();
                    self.read_here_docs()?;
                    continue;
                }
                ')' if until == Terminator::Paren => {
                    self.next();
                    return Ok(ListEnd::Expected);
                }
                ')' => return Err(ParseError::UnbalancedBracket),
                ';' => {
                    self.next();
                    piped = false;
                    if self.eat(';') && until == Terminator::Case {
                        return Ok(ListEnd::Expected);
                    }
                }
                '&' => {
                    self.next();
                    piped = false;
                    if !self.eat('&')
                        && let Some(last) = self.line.commands.last_mut()
                    {
                        last.background = true;
                    }
                }
                '|' => {
                    self.next();
                    piped = !self.eat('|');
                    self.eat('&');
                }
                '(' => {
                    self.next();
                    if self.peek() == Some('(') {
                        self.mark_opaque(ARITHMETIC_REASON);
                    }
                    let name = self.function_name.take();
                    self.function_stack.push(name);
                    self.nested(Terminator::Paren)?;
                    self.function_stack.pop();
                }
                _ => {
                    if self.command(&mut piped)? == ListEnd::Esac && until == Terminator::Case {
                        return Ok(ListEnd::Esac);
                    }
                }
            }
        }
    }

    /// One command or keyword.
    fn command(&mut self, piped: &mut bool) -> Result<ListEnd, ParseError> {
        let first = if self.peek().is_some_and(ends_word) { None } else { Some(self.word()?) };
        let keyword =
            first.as_ref().filter(|word| !word.quoted && !word.has_expansion).map(|word| word.text.as_str());
        match keyword {
            Some("if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done") => {}
            Some("!" | "time") => {}
            Some("coproc") => self.mark_opaque("coproc, whose first word may be a name"),
            Some("{") => {
                let name = self.function_name.take();
                self.function_stack.push(name);
            }
            Some("}") => {
                self.function_stack.pop();
            }
            Some("[[") => self.condition()?,
            Some("for" | "select") => self.for_words()?,
            Some("case") => self.cases()?,
            Some("esac") => return Ok(ListEnd::Esac),
            Some("function") => {
                self.skip_blanks();
                let name = self.word()?;
                self.eat_parens();
                self.function_name = Some(name.text);
            }
            _ => self.simple(first, std::mem::take(piped))?,
        }
        Ok(ListEnd::Expected)
    }

    /// `[[ ... ]]`: operators and expressions in it are data, but substitutions in them run, some even in quotes.
    fn condition(&mut self) -> Result<(), ParseError> {
        self.mark_opaque("[[ ... ]], whose words can hold commands");
        loop {
            self.skip_blanks();
            match self.peek() {
                None => return Err(ParseError::UnbalancedBracket),
                Some(c) if ends_word(c) => {
                    self.next();
                }
                Some(_) if self.word()?.as_literal() == Some("]]") => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// `()` after a function's name.
    fn eat_parens(&mut self) -> bool {
        self.skip_blanks();
        let mut ahead = self.text.clone();
        if ahead.next() != Some('(') {
            return false;
        }
        while ahead.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        let found = ahead.next() == Some(')');
        if found {
            self.text = ahead;
        }
        found
    }

    fn simple(&mut self, first: Option<Word>, piped: bool) -> Result<(), ParseError> {
        let mut simple = SimpleCommand { piped, ..SimpleCommand::default() };
        if let Some(first) = first {
            if !is_assignment(&first) && self.eat_parens() {
                self.function_name = Some(first.text);
                return Ok(());
            }
            self.take(first, &mut simple)?;
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('<' | '>') => self.redirect(&mut simple)?,
                Some('(') if simple.words.is_empty() && simple.assignments.len() == 1 => self.elements()?,
                Some('(') => return Err(ParseError::UnbalancedBracket),
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some(_) => {
                    let word = self.word()?;
                    self.take(word, &mut simple)?;
                }
            }
        }
        simple.is_recursive = simple
            .name()
            .is_some_and(|name| self.function_stack.iter().any(|body| body.as_deref() == Some(name)));
        self.line.commands.push(simple);
        Ok(())
    }

    /// `name=(words)` of shells with arrays.
    fn elements(&mut self) -> Result<(), ParseError> {
        self.next();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(')') => {
                    self.next();
                    return Ok(());
                }
                Some('\n') => {
                    self.next();
                }
                Some(c) if !ends_word(c) => {
                    if self.word()?.text.starts_with('[') {
                        self.mark_opaque(ARITHMETIC_REASON);
                    }
                }
                _ => return Err(ParseError::UnbalancedBracket),
            }
        }
    }

    /// Assigns a word to its role: descriptor of a redirection, assignment, program or argument.
    fn take(&mut self, word: Word, simple: &mut SimpleCommand) -> Result<(), ParseError> {
        let number = !word.quoted && !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit());
        if number && matches!(self.peek(), Some('<' | '>')) {
            return self.redirect(simple);
        }
        match word.text.split_once('=') {
            Some((name, _)) if simple.words.is_empty() && is_assignment(&word) => {
                simple.assignments.push(name.trim_end_matches('+').to_owned());
            }
            _ => simple.words.push(word),
        }
        Ok(())
    }

    fn redirect(&mut self, simple: &mut SimpleCommand) -> Result<(), ParseError> {
        let out = self.next() == Some('>');
        if self.peek() == Some('(') {
            self.next();
            self.nested(Terminator::Paren)?;
            simple.words.push(Word { has_expansion: true, ..Word::literal("\0") });
            return Ok(());
        }
        if out {
            let appends = self.eat('>');
            let copies = !appends && self.eat('&');
            self.eat('|');
            self.skip_blanks();
            let target = self.word()?;
            if !appends && !copies {
                simple.truncated_files.push(target);
            }
            return Ok(());
        }
        if self.eat('<') {
            if self.eat('<') {
                self.skip_blanks();
                self.word()?;
                return Ok(());
            }
            let tabs = self.eat('-');
            self.skip_blanks();
            let end = self.word()?;
            self.here_docs.push(HereDoc { delimiter: end.text, strips_tabs: tabs, is_literal: end.quoted });
            return Ok(());
        }
        let _ = self.eat('&') || self.eat('>');
        self.skip_blanks();
        self.word()?;
        Ok(())
    }
}

/// `NAME=value` with an unquoted name.
fn is_assignment(word: &Word) -> bool {
    word.text.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
