//! A source with parts of it overwritten by spaces.

use oxc_parser::{Kind, Token};
use oxc_span::Span;

/// Bytes of a source and its tokens.
pub struct BlankedText<'s> {
    bytes: Vec<u8>,
    tokens: &'s [Token],
}

impl<'s> BlankedText<'s> {
    pub fn new(source: &str, tokens: &'s [Token]) -> Self {
        Self { bytes: source.as_bytes().to_vec(), tokens }
    }

    pub fn finish(self) -> String {
        String::from_utf8(self.bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }

    /// Overwrites a span with spaces, except for line ends. Its first byte becomes `first`.
    pub fn blank(&mut self, span: Span, first: u8) {
        let bytes = range(span).and_then(|range| self.bytes.get_mut(range)).unwrap_or_default();
        for byte in bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')) {
            *byte = b' ';
        }
        if let Some(byte) = bytes.first_mut() {
            *byte = first;
        }
    }

    /// Blanks what follows an expression. A line after it that begins with a bracket was a statement of its own, and
    /// would now continue the expression.
    pub fn blank_suffix(&mut self, span: Span) {
        self.blank(span, b' ');
        let opens = [Kind::LParen, Kind::LBrack, Kind::NoSubstitutionTemplate, Kind::TemplateHead];
        let next = self.token_after(span.end);
        if next.is_some_and(|next| next.is_on_new_line() && opens.contains(&next.kind())) {
            self.blank(span, b';');
        }
    }

    /// Blanks type parameters of an arrow function. The bracket after them moves to where they begin: a line break between
    /// `return` and the bracket would end the statement.
    pub fn open_at_type_parameters(&mut self, type_parameters: Span) {
        if let Some(open) = self.token_after(type_parameters.end).filter(|next| next.kind() == Kind::LParen) {
            self.blank(open.span(), b' ');
            self.blank(type_parameters, b'(');
        }
    }

    /// An arrow must be on the line of the bracket before it. If a blanked return type has several lines, the bracket
    /// moves to its end.
    pub fn close_before_arrow(&mut self, parameters: Span, return_type: Span) {
        let (Some(parameters), Some(of)) = (range(parameters), range(return_type)) else { return };
        if !self.bytes.get(of.clone()).unwrap_or_default().contains(&b'\n') {
            return;
        }
        let close =
            self.bytes.get(parameters.clone()).unwrap_or_default().iter().rposition(|byte| *byte == b')');
        let places = close.map(|close| parameters.start + close).zip(of.end.checked_sub(1));
        if let Some((from, to)) = places {
            for (place, byte) in [(from, b' '), (to, b')')] {
                if let Some(at) = self.bytes.get_mut(place) {
                    *at = byte;
                }
            }
        }
    }

    /// Tokens that begin in a span.
    pub fn tokens_in(&self, span: Span) -> &'s [Token] {
        let first = self.tokens.partition_point(|token| token.start() < span.start);
        let end = self.tokens.partition_point(|token| token.start() < span.end);
        self.tokens.get(first..end).unwrap_or_default()
    }

    /// The first token at or after a position.
    pub fn token_after(&self, position: u32) -> Option<&'s Token> {
        self.tokens
            .get(self.tokens.partition_point(|token| token.start() < position))
            .filter(|token| token.kind() != Kind::Eof)
    }
}

fn range(span: Span) -> Option<std::ops::Range<usize>> {
    Some(usize::try_from(span.start).ok()?..usize::try_from(span.end).ok()?)
}
