//! Commands: what stands between operators, in groups, loops, functions and here-documents.

use super::word::is_end;
use super::{ARITHMETIC, Line, Simple, Unreadable, Word};
use std::iter::Peekable;
use std::str::Chars;

/// Deeper nesting than anybody writes by hand.
const DEEPEST: usize = 32;

/// Where a list of commands ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    End,
    Paren,
    /// `;;` or `esac`.
    Case,
}

/// What a list of commands ended with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// What was waited for.
    There,
    Esac,
}

/// A document that begins after the next line break.
pub struct Here {
    pub end: String,
    pub tabs: bool,
    pub literal: bool,
}

pub struct Reader<'a> {
    pub text: Peekable<Chars<'a>>,
    pub depth: usize,
    pub found: Line,
    pub documents: Vec<Here>,
    /// A function's name whose body comes next.
    named: Option<String>,
    /// The functions in whose bodies we are; groups that are no functions have no name.
    bodies: Vec<Option<String>>,
}

pub fn read(text: &str, depth: usize) -> Result<Line, Unreadable> {
    let mut reader = Reader::new(text, depth)?;
    reader.list(Until::End)?;
    Ok(reader.found)
}

/// As much as can be read; the rest may be the grammar of another shell.
pub fn read_some(text: &str) -> Line {
    let Ok(mut reader) = Reader::new(text, 1) else { return Line::default() };
    if reader.list(Until::End).is_err() {
        reader.blind("commands that only another shell can read");
    }
    reader.found
}

impl<'a> Reader<'a> {
    pub fn new(text: &'a str, depth: usize) -> Result<Self, Unreadable> {
        if depth > DEEPEST {
            return Err(Unreadable::TooDeep);
        }
        let text = text.chars().peekable();
        Ok(Self {
            text,
            depth,
            found: Line::default(),
            documents: Vec::new(),
            named: None,
            bodies: Vec::new(),
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

    pub fn blind(&mut self, what: &'static str) {
        self.found.blind.push(what);
    }

    /// Commands within this text.
    pub fn nested(&mut self, until: Until) -> Result<Ended, Unreadable> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Unreadable::TooDeep);
        }
        let ended = self.list(until)?;
        self.depth -= 1;
        Ok(ended)
    }

    /// Commands in a text of their own.
    pub fn apart(&mut self, text: &str) -> Result<(), Unreadable> {
        let line = read(text, self.depth + 1)?;
        self.found.absorb(line);
        Ok(())
    }

    /// Blanks, joined lines and a comment.
    pub fn blanks(&mut self) {
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

    fn list(&mut self, until: Until) -> Result<Ended, Unreadable> {
        let mut piped = false;
        loop {
            self.blanks();
            let Some(c) = self.peek() else {
                return if until == Until::End { Ok(Ended::There) } else { Err(Unreadable::Bracket) };
            };
            match c {
                '\n' => {
                    self.next();
                    self.documents()?;
                    continue;
                }
                ')' if until == Until::Paren => {
                    self.next();
                    return Ok(Ended::There);
                }
                ')' => return Err(Unreadable::Bracket),
                ';' => {
                    self.next();
                    piped = false;
                    if self.eat(';') && until == Until::Case {
                        return Ok(Ended::There);
                    }
                }
                '&' => {
                    self.next();
                    piped = false;
                    if !self.eat('&')
                        && let Some(last) = self.found.commands.last_mut()
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
                        self.blind(ARITHMETIC);
                    }
                    let name = self.named.take();
                    self.bodies.push(name);
                    self.nested(Until::Paren)?;
                    self.bodies.pop();
                }
                _ => {
                    if self.command(&mut piped)? == Ended::Esac && until == Until::Case {
                        return Ok(Ended::Esac);
                    }
                }
            }
        }
    }

    /// One command or keyword.
    fn command(&mut self, piped: &mut bool) -> Result<Ended, Unreadable> {
        let first = if self.peek().is_some_and(is_end) { None } else { Some(self.word()?) };
        let keyword = first.as_ref().filter(|word| !word.quoted && !word.open).map(|word| word.text.as_str());
        match keyword {
            Some("if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done") => {}
            Some("!" | "time") => {}
            Some("coproc") => self.blind("coproc, whose first word may be a name"),
            Some("{") => {
                let name = self.named.take();
                self.bodies.push(name);
            }
            Some("}") => {
                self.bodies.pop();
            }
            Some("[[") => self.condition()?,
            Some("for" | "select") => self.words_of_loop()?,
            Some("case") => self.cases()?,
            Some("esac") => return Ok(Ended::Esac),
            Some("function") => {
                self.blanks();
                let name = self.word()?;
                self.brackets();
                self.named = Some(name.text);
            }
            _ => self.simple(first, std::mem::take(piped))?,
        }
        Ok(Ended::There)
    }

    /// `[[ ... ]]`: operators and expressions in it are data, but substitutions in them run, some even in quotes.
    fn condition(&mut self) -> Result<(), Unreadable> {
        self.blind("[[ ... ]], whose words can hold commands");
        loop {
            self.blanks();
            match self.peek() {
                None => return Err(Unreadable::Bracket),
                Some(c) if is_end(c) => {
                    self.next();
                }
                Some(_) if self.word()?.known() == Some("]]") => return Ok(()),
                Some(_) => {}
            }
        }
    }

    /// `()` after a function's name.
    fn brackets(&mut self) -> bool {
        self.blanks();
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

    fn simple(&mut self, first: Option<Word>, piped: bool) -> Result<(), Unreadable> {
        let mut simple = Simple { piped, ..Simple::default() };
        if let Some(first) = first {
            if !is_assignment(&first) && self.brackets() {
                self.named = Some(first.text);
                return Ok(());
            }
            self.take(first, &mut simple)?;
        }
        loop {
            self.blanks();
            match self.peek() {
                Some('<' | '>') => self.redirect(&mut simple)?,
                Some('(') if simple.words.is_empty() && simple.assigned.len() == 1 => self.elements()?,
                Some('(') => return Err(Unreadable::Bracket),
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some(_) => {
                    let word = self.word()?;
                    self.take(word, &mut simple)?;
                }
            }
        }
        simple.own =
            simple.name().is_some_and(|name| self.bodies.iter().any(|body| body.as_deref() == Some(name)));
        self.found.commands.push(simple);
        Ok(())
    }

    /// `name=(words)` of larger shells.
    fn elements(&mut self) -> Result<(), Unreadable> {
        self.next();
        loop {
            self.blanks();
            match self.peek() {
                Some(')') => {
                    self.next();
                    return Ok(());
                }
                Some('\n') => {
                    self.next();
                }
                Some(c) if !is_end(c) => {
                    if self.word()?.text.starts_with('[') {
                        self.blind(ARITHMETIC);
                    }
                }
                _ => return Err(Unreadable::Bracket),
            }
        }
    }

    /// A word's place in its command: descriptor of a redirection, assignment, program or argument.
    fn take(&mut self, word: Word, simple: &mut Simple) -> Result<(), Unreadable> {
        let number = !word.quoted && !word.text.is_empty() && word.text.chars().all(|c| c.is_ascii_digit());
        if number && matches!(self.peek(), Some('<' | '>')) {
            return self.redirect(simple);
        }
        match word.text.split_once('=') {
            Some((name, _)) if simple.words.is_empty() && is_assignment(&word) => {
                simple.assigned.push(name.trim_end_matches('+').to_owned());
            }
            _ => simple.words.push(word),
        }
        Ok(())
    }

    fn redirect(&mut self, simple: &mut Simple) -> Result<(), Unreadable> {
        let out = self.next() == Some('>');
        if self.peek() == Some('(') {
            self.next();
            self.nested(Until::Paren)?;
            simple.words.push(Word { open: true, ..Word::plain("\0") });
            return Ok(());
        }
        if out {
            let appends = self.eat('>');
            let copies = !appends && self.eat('&');
            self.eat('|');
            self.blanks();
            let target = self.word()?;
            if !appends && !copies {
                simple.empties.push(target);
            }
            return Ok(());
        }
        if self.eat('<') {
            if self.eat('<') {
                self.blanks();
                self.word()?;
                return Ok(());
            }
            let tabs = self.eat('-');
            self.blanks();
            let end = self.word()?;
            self.documents.push(Here { end: end.text, tabs, literal: end.quoted });
            return Ok(());
        }
        let _ = self.eat('&') || self.eat('>');
        self.blanks();
        self.word()?;
        Ok(())
    }
}

/// `NAME=value`, the name not quoted.
fn is_assignment(word: &Word) -> bool {
    word.text.split_once('=').is_some_and(|(name, _)| {
        let name = name.trim_end_matches('+');
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
