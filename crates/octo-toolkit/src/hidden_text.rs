//! Removes text that is invisible to people, so that models read what people see.

use std::borrow::Cow;

/// The text without hidden characters, and how many were removed.
pub struct StrippedText<'a> {
    pub text: Cow<'a, str>,
    pub removed: usize,
}

pub fn strip_hidden(text: &str) -> StrippedText<'_> {
    let Some(first) =
        text.char_indices().find(|(_, c)| may_be_hidden(*c) || *c == BLACK_FLAG).map(|(at, _)| at)
    else {
        return StrippedText { text: Cow::Borrowed(text), removed: 0 };
    };
    let (head, tail) = text.split_at(first);
    let mut kept = String::with_capacity(text.len());
    kept.push_str(head);
    let (mut rest, mut removed) = (tail, 0);
    while let Some(c) = rest.chars().next() {
        let take = match c {
            '\u{1b}' => CharAction::Drop(escape_length(rest)),
            BLACK_FLAG => CharAction::Keep(flag_length(rest)),
            c if may_be_hidden(c) => decide(c, &kept, rest),
            c => CharAction::Keep(c.len_utf8()),
        };
        let (length, keep) = match take {
            CharAction::Keep(length) => (length, true),
            CharAction::Drop(length) => (length, false),
        };
        let (now, later) = rest.split_at(length);
        if keep {
            kept.push_str(now);
        } else {
            removed += now.chars().count();
        }
        rest = later;
    }
    if removed == 0 {
        return StrippedText { text: Cow::Borrowed(text), removed };
    }
    StrippedText { text: Cow::Owned(kept), removed }
}

/// Removes hidden characters from an owned string and adds their number to `removed`.
pub fn strip_hidden_owned(text: String, removed: &mut usize) -> String {
    let clean = strip_hidden(&text);
    *removed += clean.removed;
    match clean.text {
        Cow::Borrowed(_) => text,
        Cow::Owned(kept) => kept,
    }
}

/// The black flag, which tag characters turn into the flag of a region.
const BLACK_FLAG: char = '\u{1f3f4}';

enum CharAction {
    Keep(usize),
    Drop(usize),
}

/// Returns whether a character may be hidden text; some are legitimate beside certain others.
fn may_be_hidden(c: char) -> bool {
    match c {
        ' '..='~' | '\t' | '\n' | '\r' => false,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' => true,
        '\u{a0}'..='\u{2ff}' => false,
        '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' => true,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' => true,
        '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' => true,
        '\u{fdd0}'..='\u{fdef}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}' | '\u{f0000}'..='\u{10ffff}' => true,
        c => u32::from(c) & 0xfffe == 0xfffe,
    }
}

/// Keeps a suspect character where a script needs it.
fn decide(c: char, before: &str, rest: &str) -> CharAction {
    let previous = before.chars().next_back();
    let next = rest.chars().nth(1);
    let right = match c {
        '\u{200d}' => joins_emoji(previous, next) || previous.is_some_and(is_indic),
        '\u{200c}' => previous.is_some_and(|c| is_indic(c) || is_arabic(c)),
        '\u{200e}' | '\u{200f}' => previous.is_none_or(|c| !matches!(c, '\u{200e}' | '\u{200f}')),
        '\u{fe00}'..='\u{fe0f}' => previous.is_some_and(|c| !is_variation_selector(c) && !c.is_whitespace()),
        _ => false,
    };
    if right { CharAction::Keep(c.len_utf8()) } else { CharAction::Drop(c.len_utf8()) }
}

fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Returns whether a joiner connects two parts of one emoji.
fn joins_emoji(previous: Option<char>, next: Option<char>) -> bool {
    let picture = |c: char| matches!(c, '\u{1f000}'..='\u{1faff}' | '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{20e3}' | '\u{3030}' | '\u{303d}');
    previous.is_some_and(picture) && next.is_some_and(picture)
}

fn is_indic(c: char) -> bool {
    matches!(c, '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
}

fn is_arabic(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{6ff}' | '\u{700}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' | '\u{fb50}'..='\u{fdcf}' | '\u{fe70}'..='\u{fefe}')
}

/// Length of a black flag with well-formed region tags.
fn flag_length(rest: &str) -> usize {
    let flag = BLACK_FLAG.len_utf8();
    let tags = rest
        .chars()
        .skip(1)
        .take_while(|c| matches!(c, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}'));
    let count = tags.take(8).count();
    let ended = rest.chars().nth(1 + count) == Some('\u{e007f}');
    if ended && (3..=6).contains(&count) { flag + 4 * (count + 1) } else { flag }
}

/// Length of a terminal escape sequence, including the escape character.
fn escape_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let end = match bytes.get(1) {
        Some(b'[') => {
            bytes.iter().skip(2).take(64).position(|byte| (0x40..=0x7e).contains(byte)).map(|at| at + 3)
        }
        Some(b']' | b'P' | b'_' | b'^') => control_string_end(rest),
        _ => None,
    };
    end.filter(|end| rest.is_char_boundary(*end)).unwrap_or(1)
}

/// End of a terminal control string: at BEL, or at ESC and a backslash.
fn control_string_end(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let near = bytes.get(..bytes.len().min(4_096)).unwrap_or_default();
    let bell = near.iter().position(|byte| *byte == 7).map(|at| at + 1);
    let st = near.windows(2).skip(1).position(|pair| pair == b"\x1b\\").map(|at| at + 3);
    bell.into_iter().chain(st).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hidden_text_goes_and_writing_stays() {
        let rows = [
            ("plain\ttext\r\n", "plain\ttext\r\n", 0),
            ("a\u{200b}b\u{ad}c\u{feff}", "abc", 3),
            ("a\0b\u{7}c\u{85}", "abc", 3),
            ("x\u{e0041}\u{e0042}y", "xy", 2),
            ("\u{202e}abc\u{2066}", "abc", 2),
            ("\u{1b}[31mred\u{1b}[0m", "red", 9),
            ("\u{1b}]8;;http://x\u{7}link\u{1b}]8;;\u{1b}\\", "link", 21),
            ("👩\u{200d}💻", "👩\u{200d}💻", 0),
            ("a\u{200d}b", "ab", 1),
            ("می\u{200c}خواهم", "می\u{200c}خواهم", 0),
            ("क\u{94d}\u{200d}ष", "क\u{94d}\u{200d}ष", 0),
            ("no\u{200c}ne", "none", 1),
            ("❤\u{fe0f}", "❤\u{fe0f}", 0),
            ("a\u{fe00}\u{fe01}\u{fe02}\u{fe03}", "a\u{fe00}", 3),
            (
                "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
                "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
                0,
            ),
            ("🏴\u{e0067}\u{e0062}", "🏴", 2),
            ("\u{f000}icon\u{10ffff}\u{fffe}\u{fdd0}", "icon", 4),
            ("שלום\u{200f}!", "שלום\u{200f}!", 0),
            ("a\u{200e}\u{200f}\u{200e}b", "a\u{200e}b", 2),
            ("ｱ\u{ffa0}\u{3164}\u{115f}", "ｱ", 3),
        ];
        for (text, expected, count) in rows {
            let clean = strip_hidden(text);
            assert_eq!((clean.text.as_ref(), clean.removed), (expected, count), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn cleaning_twice_is_cleaning_once(text in "[\\PC\u{0}-\u{9f}\u{200b}-\u{206f}\u{fe00}-\u{feff}\u{e0000}-\u{e01ef}🏴❤क]{0,60}") {
            let once = strip_hidden(&text).text.into_owned();
            let again = strip_hidden(&once);
            prop_assert_eq!(again.removed, 0);
            prop_assert_eq!(again.text.as_ref(), once.as_str());
        }
    }
}
