//! What callers give, made fit to be believed later: nothing hidden in it, nothing without an end.

use octo_toolkit::memory::{
    Link, MAX_FACT_BYTES, MAX_ITEMS, MAX_KIND_BYTES, MAX_NAME_BYTES, MAX_SOURCE_BYTES, MemoryCaller,
};
use octo_toolkit::{CallContext, Kind, ToolError, hidden_text};

pub fn asker(cx: &CallContext) -> MemoryCaller {
    MemoryCaller::new(&cx.caller, cx.id)
}

/// Cleans texts and counts what was hidden in them.
#[derive(Default)]
pub struct Cleaner {
    pub removed: usize,
}

impl Cleaner {
    pub fn name(&mut self, text: &str) -> Result<String, ToolError> {
        self.line(text, "The name of an entity", MAX_NAME_BYTES)
    }

    pub fn kind(&mut self, text: &str) -> Result<String, ToolError> {
        self.line(text, "The type of an entity", MAX_KIND_BYTES)
    }

    pub fn source(&mut self, text: &str) -> Result<String, ToolError> {
        self.line(text, "A source", MAX_SOURCE_BYTES)
    }

    pub fn link(&mut self, source: &str, relation: &str, target: &str) -> Result<Link, ToolError> {
        let relation = self.line(relation, "A relation", MAX_KIND_BYTES)?;
        Ok(Link { source: self.name(source)?, relation, target: self.name(target)? })
    }

    /// One observation; `None` when nothing is in it.
    pub fn fact(&mut self, text: &str) -> Result<Option<String>, ToolError> {
        let text = self.clean(text);
        let text = text.trim();
        if text.len() > MAX_FACT_BYTES {
            let long = format!("An observation has {} bytes; at most {MAX_FACT_BYTES} are kept.", text.len());
            return Err(ToolError::new(Kind::TooLarge, long)
                .hint("Split it into several observations, or keep a file and remember its path."));
        }
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    /// A text of one line.
    fn line(&mut self, text: &str, what: &str, most: usize) -> Result<String, ToolError> {
        let clean = self.clean(text);
        let line: Vec<&str> = clean.split_whitespace().collect();
        let line = line.join(" ");
        match line.len() {
            0 => Err(ToolError::invalid(format!("{what} is empty."))
                .hint("Give it at least one visible character.")),
            long if long > most => Err(ToolError::new(
                Kind::TooLarge,
                format!("{what} has {long} bytes; at most {most} are kept."),
            )
            .hint("Shorten it, and put the rest into observations.")),
            _ => Ok(line),
        }
    }

    fn clean(&mut self, text: &str) -> String {
        let clean = hidden_text::strip_hidden(text);
        self.removed += clean.removed;
        clean.text.into_owned()
    }

    /// What the answer says of hidden characters.
    pub fn notice(&self) -> Option<String> {
        (self.removed > 0).then(|| format!("{} hidden characters were taken out of the texts.", self.removed))
    }
}

/// Refuses lists that are empty or too long for one call.
pub fn items<T>(list: &[T], name: &str) -> Result<(), ToolError> {
    match list.len() {
        0 => Err(ToolError::invalid(format!("{name} is empty."))
            .hint(format!("Give at least one item in {name}."))),
        many if many > MAX_ITEMS => Err(ToolError::new(
            Kind::TooLarge,
            format!("{name} has {many} items; one call takes {MAX_ITEMS}."),
        )
        .hint("Call again with the rest, or use memory_import with a file.")),
        _ => Ok(()),
    }
}

/// A number within its bounds.
pub fn within(number: u64, name: &str, most: u64) -> Result<usize, ToolError> {
    match usize::try_from(number) {
        Ok(fits) if (1..=most).contains(&number) => Ok(fits),
        _ => Err(ToolError::invalid(format!("{name} is {number}."))
            .hint(format!("Give {name} between 1 and {most}, or leave it out."))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_clean_line() {
        let mut cleaner = Cleaner::default();
        assert_eq!(cleaner.name("  Ada \n Lovelace\u{200b}\u{e0041} ").unwrap(), "Ada Lovelace");
        assert_eq!(cleaner.removed, 2);
        assert_eq!(cleaner.name("\u{200b}").unwrap_err().kind, Kind::Invalid);
        assert_eq!(cleaner.name(&"a".repeat(MAX_NAME_BYTES + 1)).unwrap_err().kind, Kind::TooLarge);
        assert!(cleaner.notice().unwrap().starts_with("3 hidden"));
    }

    #[test]
    fn observations_keep_their_lines_and_empty_ones_are_none() {
        let mut cleaner = Cleaner::default();
        assert_eq!(cleaner.fact(" a\nb ").unwrap().unwrap(), "a\nb");
        assert_eq!(cleaner.fact(" \u{200b} ").unwrap(), None);
        assert_eq!(cleaner.fact(&"a".repeat(MAX_FACT_BYTES + 1)).unwrap_err().kind, Kind::TooLarge);
    }

    #[test]
    fn lists_and_numbers_have_bounds() {
        assert!(items(&[1], "x").is_ok());
        assert_eq!(items::<u8>(&[], "x").unwrap_err().kind, Kind::Invalid);
        assert_eq!(items(&[0; MAX_ITEMS + 1], "x").unwrap_err().kind, Kind::TooLarge);
        assert_eq!(within(5, "x", 5).unwrap(), 5);
        assert!(within(0, "x", 5).is_err() && within(6, "x", 5).is_err());
    }
}
