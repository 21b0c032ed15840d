//! Validates and sanitizes input: no hidden characters, limited lengths.

use octo_toolkit::memory::{
    Link, MAX_FACT_BYTES, MAX_ITEMS, MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_SOURCE_BYTES, MemoryCaller,
};
use octo_toolkit::{CallContext, Kind, ToolError, hidden_text};

pub fn caller(cx: &CallContext) -> MemoryCaller {
    MemoryCaller::new(&cx.caller, cx.id)
}

/// Sanitizes texts and counts the removed characters.
#[derive(Default)]
pub struct Sanitizer {
    pub removed_chars: usize,
}

impl Sanitizer {
    pub fn name(&mut self, text: &str) -> Result<String, ToolError> {
        self.single_line(text, "The name of an entity", MAX_NAME_BYTES)
    }

    pub fn kind(&mut self, text: &str) -> Result<String, ToolError> {
        self.single_line(text, "The type of an entity", MAX_KIND_BYTES)
    }

    pub fn source(&mut self, text: &str) -> Result<String, ToolError> {
        self.single_line(text, "A source", MAX_SOURCE_BYTES)
    }

    pub fn link(&mut self, source: &str, relation: &str, target: &str) -> Result<Link, ToolError> {
        let relation = self.single_line(relation, "A relation", MAX_KIND_BYTES)?;
        Ok(Link { source: self.name(source)?, relation, target: self.name(target)? })
    }

    /// One observation; `None` if it is empty.
    pub fn fact(&mut self, text: &str) -> Result<Option<String>, ToolError> {
        let text = self.sanitize(text);
        let text = text.trim();
        if text.len() > MAX_FACT_BYTES {
            let long = format!("An observation has {} bytes; the maximum is {MAX_FACT_BYTES}.", text.len());
            return Err(ToolError::new(Kind::TooLarge, long)
                .hint("Split it into several observations, or store a file and remember its path."));
        }
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    /// Text on one line.
    fn single_line(&mut self, text: &str, subject: &str, max_bytes: usize) -> Result<String, ToolError> {
        let sanitized = self.sanitize(text);
        let line: Vec<&str> = sanitized.split_whitespace().collect();
        let line = line.join(" ");
        match line.len() {
            0 => Err(ToolError::invalid(format!("{subject} is empty."))
                .hint("Use at least one visible character.")),
            long if long > max_bytes => Err(ToolError::new(
                Kind::TooLarge,
                format!("{subject} has {long} bytes; the maximum is {max_bytes}."),
            )
            .hint("Shorten it, and put the rest into observations.")),
            _ => Ok(line),
        }
    }

    fn sanitize(&mut self, text: &str) -> String {
        let clean = hidden_text::strip_hidden(text);
        self.removed_chars += clean.removed;
        clean.text.into_owned()
    }

    /// Notice about removed characters.
    pub fn notice(&self) -> Option<String> {
        (self.removed_chars > 0)
            .then(|| format!("Removed {} hidden characters from the texts.", self.removed_chars))
    }
}

/// Rejects lists that are empty or too long for one call.
pub fn check_len<T>(list: &[T], name: &str) -> Result<(), ToolError> {
    match list.len() {
        0 => Err(ToolError::invalid(format!("{name} is empty."))
            .hint(format!("Pass at least one item in {name}."))),
        many if many > MAX_ITEMS => Err(ToolError::new(
            Kind::TooLarge,
            format!("{name} has {many} items; the maximum per call is {MAX_ITEMS}."),
        )
        .hint("Call again with the rest, or use memory_import with a file.")),
        _ => Ok(()),
    }
}

/// Checks the range of a number.
pub fn check_range(number: u64, name: &str, max: u64) -> Result<usize, ToolError> {
    match usize::try_from(number) {
        Ok(fits) if (1..=max).contains(&number) => Ok(fits),
        _ => Err(ToolError::invalid(format!("{name} is {number}."))
            .hint(format!("Use a value between 1 and {max}, or omit {name}."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_clean_line() {
        let mut sanitizer = Sanitizer::default();
        assert_eq!(sanitizer.name("  Ada \n Lovelace\u{200b}\u{e0041} ").unwrap(), "Ada Lovelace");
        assert_eq!(sanitizer.removed_chars, 2);
        assert_eq!(sanitizer.name("\u{200b}").unwrap_err().kind, Kind::Invalid);
        assert_eq!(sanitizer.name(&"a".repeat(MAX_NAME_BYTES + 1)).unwrap_err().kind, Kind::TooLarge);
        assert!(sanitizer.notice().unwrap().starts_with("Removed 3 hidden"));
    }

    #[test]
    fn observations_keep_their_lines_and_empty_ones_are_none() {
        let mut sanitizer = Sanitizer::default();
        assert_eq!(sanitizer.fact(" a\nb ").unwrap().unwrap(), "a\nb");
        assert_eq!(sanitizer.fact(" \u{200b} ").unwrap(), None);
        assert_eq!(sanitizer.fact(&"a".repeat(MAX_FACT_BYTES + 1)).unwrap_err().kind, Kind::TooLarge);
    }

    #[test]
    fn lists_and_numbers_have_bounds() {
        assert!(check_len(&[1], "x").is_ok());
        assert_eq!(check_len::<u8>(&[], "x").unwrap_err().kind, Kind::Invalid);
        assert_eq!(check_len(&[0; MAX_ITEMS + 1], "x").unwrap_err().kind, Kind::TooLarge);
        assert_eq!(check_range(5, "x", 5).unwrap(), 5);
        assert!(check_range(0, "x", 5).is_err() && check_range(6, "x", 5).is_err());
    }
}
