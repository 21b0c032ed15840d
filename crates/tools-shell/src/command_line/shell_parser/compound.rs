//! Compound commands: loops, conditionals and here-documents.

use crate::command_line::shell_parser::shell_word::{QuoteContext, ends_word};
use crate::command_line::shell_parser::{ListEnd, Parser, Terminator};
use crate::command_line::{ARITHMETIC_REASON, ParseError, SimpleCommand, Word};

impl Parser<'_> {
    /// Here-documents that start after a line break; substitutions in them run.
    pub fn read_here_docs(&mut self) -> Result<(), ParseError> {
        for here in std::mem::take(&mut self.here_docs) {
            let mut body = String::new();
            while self.peek().is_some() {
                let mut line = String::new();
                while let Some(c) = self.text.next_if(|c| *c != '\n') {
                    line.push(c);
                }
                self.next();
                let bare = if here.strips_tabs { line.trim_start_matches('\t') } else { line.as_str() };
                if bare == here.delimiter {
                    break;
                }
                body.push_str(bare);
                body.push('\n');
            }
            if !here.is_literal {
                self.substitutions(&body)?;
            }
        }
        Ok(())
    }

    fn substitutions(&mut self, body: &str) -> Result<(), ParseError> {
        let mut reader = Parser::new(body, self.depth + 1)?;
        let mut aside = Word::default();
        while let Some(c) = reader.next() {
            match c {
                '\\' => {
                    reader.next();
                }
                '$' => reader.dollar(&mut aside, QuoteContext::DoubleQuoted)?,
                '`' => reader.backticks(&mut aside)?,
                _ => {}
            }
        }
        self.line.merge(reader.line);
        Ok(())
    }

    /// `for name in words`: words are data, but substitutions in them run. Without `in`, commands may follow
    /// immediately.
    pub fn for_words(&mut self) -> Result<(), ParseError> {
        self.skip_blanks();
        if self.peek() == Some('(') {
            self.mark_opaque(ARITHMETIC_REASON);
        }
        let name = self.word()?.text;
        self.line.commands.push(SimpleCommand { assignments: vec![name], ..SimpleCommand::default() });
        self.skip_newlines();
        let mut ahead = self.text.clone();
        if (ahead.next(), ahead.next()) != (Some('i'), Some('n'))
            || ahead.next().is_some_and(|c| !ends_word(c))
        {
            return Ok(());
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some('\n' | ';') => return Ok(()),
                Some(c) if ends_word(c) => return Err(ParseError::UnbalancedBracket),
                Some(_) => {
                    self.word()?;
                }
            }
        }
    }

    /// `case word in pattern) commands ;; esac`.
    pub fn cases(&mut self) -> Result<(), ParseError> {
        self.skip_newlines();
        self.word()?;
        self.skip_newlines();
        self.word()?;
        loop {
            self.skip_newlines();
            self.eat('(');
            loop {
                self.skip_blanks();
                match self.peek() {
                    None => return Err(ParseError::UnbalancedBracket),
                    Some(')') => break,
                    Some(c) if ends_word(c) => {
                        self.next();
                    }
                    Some(_) => {
                        let word = self.word()?;
                        if word == Word::literal("esac") {
                            return Ok(());
                        }
                    }
                }
            }
            self.next();
            if self.nested(Terminator::Case)? == ListEnd::Esac {
                return Ok(());
            }
        }
    }

    fn skip_newlines(&mut self) {
        self.skip_blanks();
        while self.eat('\n') {
            self.skip_blanks();
        }
    }
}
