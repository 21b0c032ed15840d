//! Two columns that fit a terminal.

/// Wide enough for everybody.
const WIDTH: usize = 80;
const GAP: usize = 2;

/// Lines of a name and a text; texts are cut, names are not.
pub fn table(rows: &[(String, String)]) -> String {
    let first = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let room = WIDTH.saturating_sub(first + GAP);
    let lines = rows.iter().map(|(name, text)| {
        let line = format!("{name:first$}{:GAP$}{}", "", fitted(text, room));
        format!("{}\n", line.trim_end())
    });
    lines.collect()
}

/// The first sentence when it fits, else as many words as do.
fn fitted(text: &str, room: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = line.split_once(". ").map_or(line.as_str(), |(first, _)| first).trim_end_matches('.');
    if sentence.chars().count() <= room {
        return sentence.to_owned();
    }
    let mut short = String::new();
    for word in sentence.split(' ') {
        if short.chars().count() + word.chars().count() + 2 > room {
            break;
        }
        if !short.is_empty() {
            short.push(' ');
        }
        short.push_str(word);
    }
    short.trim_end_matches([',', ':', ';']).to_owned() + "…"
}

/// Text of others, without what could move the cursor or turn the writing around.
pub fn harmless(text: &str) -> String {
    let bad = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit() {
        let rows = [
            ("short".to_owned(), "Does it. And more.".to_owned()),
            ("a_name_of_forty_six_letters_which_is_the_limit".to_owned(), "word ".repeat(30)),
        ];
        let text = table(&rows);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.lines().next().unwrap().ends_with("  Does it"), "{text}");
    }

    #[test]
    fn strange_letters_are_shown_as_such() {
        assert_eq!(harmless("a\u{1b}[2J\u{202e}b\n"), "a\u{fffd}[2J\u{fffd}b\n");
    }
}
