//! The zone named in a text: `tomorrow 09:00 Europe/Berlin`, `9am in Tokyo`, `5pm UTC+2`.

use super::vocabulary;
use super::word_cursor::WordCursor;
use crate::input_error::InputError;
use crate::zone::{self, ResolvedZone};

/// Removes the zone from the words, if there is one.
pub fn extract(words: &mut WordCursor) -> Result<Option<ResolvedZone>, InputError> {
    let Some((from, count, text)) = find_zone(words.all()) else {
        return Ok(None);
    };
    let found = zone::resolve(&text)?;
    words.remove(from, count);
    if let Some((_, _, second)) = find_zone(words.all()) {
        return Err(InputError::new(
            format!("The text names two time zones, {text} and {second}."),
            "Omit one of them.",
        ));
    }
    Ok(Some(found))
}

/// Position, word count and name of the zone.
fn find_zone(words: &[String]) -> Option<(usize, usize, String)> {
    (0..words.len()).find_map(|index| {
        let word = words.get(index)?.as_str();
        let next = words.get(index + 1).map(String::as_str);
        if matches!(word, "utc" | "gmt") && next.is_some_and(is_offset) && !is_shift_amount(words, index + 1)
        {
            return Some((index, 2, format!("{word}{}", next?)));
        }
        if is_name(word)
            || (index > 0
                && (is_offset(word) && !is_shift_amount(words, index) || zone::is_abbreviation(word)))
        {
            let count = 1 + usize::from(next == Some("time"));
            return Some((index, count, word.to_owned()));
        }
        by_city(words, index)
    })
}

/// Whether a word is a zone name and cannot be anything else.
fn is_name(word: &str) -> bool {
    let letters = |c: char| c.is_alphabetic();
    let with_sign = word.strip_prefix("utc").or_else(|| word.strip_prefix("gmt")).is_some_and(is_offset);
    matches!(word, "utc" | "gmt" | "z" | "zulu")
        || with_sign
        || (word.contains('/') && word.contains(letters))
}

fn is_offset(word: &str) -> bool {
    word.strip_prefix(['+', '-']).is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    })
}

/// Whether this is `+2` followed by `hours`, which is not an offset.
fn is_shift_amount(words: &[String], index: usize) -> bool {
    words.get(index + 1).is_some_and(|next| {
        vocabulary::unit(next).is_some() || matches!(next.as_str(), "business" | "working")
    })
}

/// `in tokyo`, `new york time`.
fn by_city(words: &[String], index: usize) -> Option<(usize, usize, String)> {
    (1..=3).rev().find_map(|count| {
        let (from, whole) = match words.get(index)?.as_str() {
            "in" => (index + 1, count + 1),
            _ if words.get(index + count).is_some_and(|word| word == "time") => (index, count + 1),
            _ => return None,
        };
        let name = words.get(from..from + count)?.join(" ");
        let with_time = words.get(index..index + whole)?.join(" ");
        let name = if zone::is_abbreviation(&with_time) { with_time } else { name };
        (!name.starts_with("local") && zone::resolve_exact(&name).is_some()).then_some((index, whole, name))
    })
}
