//! What holds other commands: loops, choices and here-documents.

use super::read::{Ended, Reader, Until};
use super::word::{Around, is_end};
use super::{ARITHMETIC, Simple, Unreadable, Word};

impl Reader<'_> {
    /// The here-documents that begin after a line break; substitutions in them run.
    pub fn documents(&mut self) -> Result<(), Unreadable> {
        for here in std::mem::take(&mut self.documents) {
            let mut body = String::new();
            while self.peek().is_some() {
                let mut line = String::new();
                while let Some(c) = self.text.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                self.next();
                let bare = if here.tabs { line.trim_start_matches('\t') } else { line.as_str() };
                if bare == here.end {
                    break;
                }
                body.push_str(bare);
                body.push('\n');
            }
            if !here.literal {
                self.substitutions(&body)?;
            }
        }
        Ok(())
    }

    fn substitutions(&mut self, body: &str) -> Result<(), Unreadable> {
        let mut reader = Reader::new(body, self.depth + 1)?;
        let mut aside = Word::default();
        while let Some(c) = reader.next() {
            match c {
                '\\' => {
                    reader.next();
                }
                '$' => reader.dollar(&mut aside, Around::Quotes)?,
                '`' => reader.backticks(&mut aside)?,
                _ => {}
            }
        }
        self.found.absorb(reader.found);
        Ok(())
    }

    /// `for name in words`: words are data, but substitutions in them run. Without `in`, commands may follow at once.
    pub fn words_of_loop(&mut self) -> Result<(), Unreadable> {
        self.blanks();
        if self.peek() == Some('(') {
            self.blind(ARITHMETIC);
        }
        let name = self.word()?.text;
        self.found.commands.push(Simple { assigned: vec![name], ..Simple::default() });
        self.gap();
        let mut ahead = self.text.clone();
        if (ahead.next(), ahead.next()) != (Some('i'), Some('n')) || ahead.next().is_some_and(|c| !is_end(c))
        {
            return Ok(());
        }
        loop {
            self.blanks();
            match self.peek() {
                None | Some('\n' | ';') => return Ok(()),
                Some(c) if is_end(c) => return Err(Unreadable::Bracket),
                Some(_) => {
                    self.word()?;
                }
            }
        }
    }

    /// `case word in pattern) commands ;; esac`.
    pub fn cases(&mut self) -> Result<(), Unreadable> {
        self.gap();
        self.word()?;
        self.gap();
        self.word()?;
        loop {
            self.gap();
            self.eat('(');
            loop {
                self.blanks();
                match self.peek() {
                    None => return Err(Unreadable::Bracket),
                    Some(')') => break,
                    Some(c) if is_end(c) => {
                        self.next();
                    }
                    Some(_) => {
                        let word = self.word()?;
                        if word == Word::plain("esac") {
                            return Ok(());
                        }
                    }
                }
            }
            self.next();
            if self.nested(Until::Case)? == Ended::Esac {
                return Ok(());
            }
        }
    }

    fn gap(&mut self) {
        self.blanks();
        while self.eat('\n') {
            self.blanks();
        }
    }
}
