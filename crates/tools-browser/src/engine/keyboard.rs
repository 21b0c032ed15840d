//! Keys and their names.

use octo_toolkit::ToolError;
use serde_json::{Value, json};

/// Properties of a key event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    key: String,
    code: String,
    key_code: u32,
    text: Option<String>,
}

/// A key with its modifiers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyCombination {
    pub modifiers: Vec<(u32, Key)>,
    pub key: Key,
}

const ALT: u32 = 1;
const CONTROL: u32 = 2;
const META: u32 = 4;
const SHIFT: u32 = 8;

/// Name, aliases, code, key code, text.
type NamedKey = (&'static str, &'static [&'static str], &'static str, u32, Option<&'static str>);

const NAMED_KEYS: [NamedKey; 25] = [
    ("Enter", &["Return"], "Enter", 13, Some("\r")),
    ("Tab", &[], "Tab", 9, None),
    ("Escape", &["Esc"], "Escape", 27, None),
    ("Backspace", &[], "Backspace", 8, None),
    ("Delete", &["Del"], "Delete", 46, None),
    ("Insert", &[], "Insert", 45, None),
    (" ", &["Space", "Spacebar"], "Space", 32, Some(" ")),
    ("ArrowLeft", &["Left"], "ArrowLeft", 37, None),
    ("ArrowUp", &["Up"], "ArrowUp", 38, None),
    ("ArrowRight", &["Right"], "ArrowRight", 39, None),
    ("ArrowDown", &["Down"], "ArrowDown", 40, None),
    ("Home", &[], "Home", 36, None),
    ("End", &[], "End", 35, None),
    ("PageUp", &[], "PageUp", 33, None),
    ("PageDown", &[], "PageDown", 34, None),
    ("CapsLock", &[], "CapsLock", 20, None),
    ("ContextMenu", &["Menu"], "ContextMenu", 93, None),
    ("Pause", &[], "Pause", 19, None),
    ("ScrollLock", &[], "ScrollLock", 145, None),
    ("NumLock", &[], "NumLock", 144, None),
    ("PrintScreen", &[], "PrintScreen", 44, None),
    ("Alt", &[], "AltLeft", 18, None),
    ("Control", &["Ctrl", "ControlOrMeta"], "ControlLeft", 17, None),
    ("Meta", &["Command", "Cmd", "Super"], "MetaLeft", 91, None),
    ("Shift", &[], "ShiftLeft", 16, None),
];

/// Characters of a US keyboard without and with Shift, with code and key code.
const CHAR_KEYS: [(char, char, &str, u32); 21] = [
    ('1', '!', "Digit1", 49),
    ('2', '@', "Digit2", 50),
    ('3', '#', "Digit3", 51),
    ('4', '$', "Digit4", 52),
    ('5', '%', "Digit5", 53),
    ('6', '^', "Digit6", 54),
    ('7', '&', "Digit7", 55),
    ('8', '*', "Digit8", 56),
    ('9', '(', "Digit9", 57),
    ('0', ')', "Digit0", 48),
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
    ('`', '~', "Backquote", 192),
];

impl Key {
    fn from_name(name: &str) -> Option<Self> {
        if let Some(number) = name.strip_prefix(['F', 'f']).and_then(|number| number.parse::<u32>().ok()) {
            let name = format!("F{number}");
            let fine = (1..=24).contains(&number);
            return fine.then(|| Self { key: name.clone(), code: name, key_code: 111 + number, text: None });
        }
        let fits = |known: &str| known.eq_ignore_ascii_case(name);
        let (key, _, code, number, text) = NAMED_KEYS
            .iter()
            .find(|(key, others, ..)| fits(key) || others.iter().any(|other| fits(other)))?;
        Some(Self {
            key: (*key).to_owned(),
            code: (*code).to_owned(),
            key_code: *number,
            text: text.map(str::to_owned),
        })
    }

    /// Key of a character on a US keyboard.
    pub fn from_char(sign: char) -> Option<Self> {
        let char_key = |code: String, number| {
            Some(Self { key: sign.to_string(), code, key_code: number, text: Some(sign.to_string()) })
        };
        if sign.is_ascii_alphabetic() {
            let upper = sign.to_ascii_uppercase();
            return char_key(format!("Key{upper}"), u32::from(upper));
        }
        if sign == '\n' {
            return Self::from_name("Enter");
        }
        if sign == ' ' || sign == '\t' {
            return Self::from_name(if sign == ' ' { "Space" } else { "Tab" });
        }
        let (.., code, number) =
            CHAR_KEYS.iter().find(|(plain, shifted, ..)| sign == *plain || sign == *shifted)?;
        char_key((*code).to_owned(), *number)
    }

    /// Parameters of `Input.dispatchKeyEvent`.
    pub fn event(&self, down: bool, modifiers: u32) -> Value {
        // With Control, Alt or Meta a key is a command and produces no text.
        let text = self.text.as_ref().filter(|_| down && modifiers & (ALT | CONTROL | META) == 0);
        let kind = match (down, text) {
            (true, Some(_)) => "keyDown",
            (true, None) => "rawKeyDown",
            (false, _) => "keyUp",
        };
        let mut event = json!({
            "type": kind,
            "key": self.key,
            "code": self.code,
            "windowsVirtualKeyCode": self.key_code,
            "modifiers": modifiers,
        });
        if let (Some(text), Value::Object(members)) = (text, &mut event) {
            members.insert("text".to_owned(), text.as_str().into());
        }
        event
    }
}

impl KeyCombination {
    pub fn parse(text: &str) -> Result<Self, ToolError> {
        let unknown = || {
            ToolError::invalid(format!("Unknown key: `{text}`.")).hint(
                "Use names such as Enter, Tab, Escape, ArrowDown, F5, a, or combinations such as Control+A.",
            )
        };
        // The last `+` may be the key itself.
        let (before, last) = match text.char_indices().rev().skip(1).find(|(_, c)| *c == '+') {
            Some((at, _)) => (text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()),
            None => ("", text),
        };
        let mut modifiers = Vec::new();
        for name in before.split('+').filter(|name| !name.is_empty()) {
            let key = Key::from_name(name.trim()).ok_or_else(unknown)?;
            let bit = match key.key.as_str() {
                "Alt" => ALT,
                "Control" => CONTROL,
                "Meta" => META,
                "Shift" => SHIFT,
                _ => return Err(unknown()),
            };
            modifiers.push((bit, key));
        }
        let last = if last.len() > 1 { last.trim() } else { last };
        let mut signs = last.chars();
        let mut key = match (signs.next(), signs.next()) {
            (Some(sign), None) => {
                let other =
                    || Key { key: last.into(), code: String::new(), key_code: 0, text: Some(last.into()) };
                Key::from_char(sign).unwrap_or_else(other)
            }
            _ => Key::from_name(last).ok_or_else(unknown)?,
        };
        if modifiers.iter().any(|(bit, _)| *bit == SHIFT)
            && key.text.is_some()
            && key.key.chars().count() == 1
        {
            let shifted = |sign: char| {
                let pair = CHAR_KEYS.iter().find(|(plain, ..)| *plain == sign);
                pair.map_or(sign.to_ascii_uppercase(), |(_, shifted, ..)| *shifted)
            };
            key.key = key.key.chars().map(shifted).collect();
            key.text = Some(key.key.clone());
        }
        Ok(Self { modifiers, key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_by_name_sign_and_combination() {
        for (text, modifiers, key, code) in [
            ("Enter", 0, "Enter", "Enter"),
            ("enter", 0, "Enter", "Enter"),
            ("Return", 0, "Enter", "Enter"),
            ("Esc", 0, "Escape", "Escape"),
            ("a", 0, "a", "KeyA"),
            ("A", 0, "A", "KeyA"),
            ("?", 0, "?", "Slash"),
            ("ü", 0, "ü", ""),
            ("+", 0, "+", "Equal"),
            (" ", 0, " ", "Space"),
            ("Space", 0, " ", "Space"),
            ("F5", 0, "F5", "F5"),
            ("f", 0, "f", "KeyF"),
            ("Control+A", CONTROL, "A", "KeyA"),
            ("Ctrl+Shift+t", CONTROL | SHIFT, "T", "KeyT"),
            ("Shift+Tab", SHIFT, "Tab", "Tab"),
            ("Shift+1", SHIFT, "!", "Digit1"),
            ("Control++", CONTROL, "+", "Equal"),
            ("Shift", 0, "Shift", "ShiftLeft"),
        ] {
            let stroke = KeyCombination::parse(text).unwrap();
            let bits: u32 = stroke.modifiers.iter().map(|(bit, _)| bit).sum();
            assert_eq!(
                (bits, stroke.key.key.as_str(), stroke.key.code.as_str()),
                (modifiers, key, code),
                "{text}"
            );
        }
        for text in ["", "Bogus", "Control+Bogus", "Enter+a", "F99"] {
            assert!(KeyCombination::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_command_carries_no_text() {
        let key = Key::from_char('a').unwrap();
        assert_eq!(key.event(true, 0)["text"], "a");
        assert_eq!(key.event(true, CONTROL)["type"], "rawKeyDown");
        assert!(key.event(true, CONTROL).get("text").is_none() && key.event(false, 0).get("text").is_none());
    }
}
