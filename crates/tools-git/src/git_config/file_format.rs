//! git's configuration file format: parsed by git's rules, printed in one plain form.

use super::ConfigEntry;
use octo_toolkit::ToolError;
use std::iter::Peekable;
use std::str::Chars;

/// Settings of a configuration file in order. Included files are not read.
pub fn parse(text: &str) -> Result<Vec<ConfigEntry>, ToolError> {
    if text.contains('\0') {
        return Err(unreadable(0));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = ConfigReader { chars: text.chars().peekable(), line: 1 };
    let (mut entries, mut section) = (Vec::new(), None);
    while let Some(c) = reader.next() {
        match c {
            c if c.is_ascii_whitespace() => {}
            '#' | ';' => reader.comment(),
            '[' => section = Some(reader.section()?),
            c if c.is_ascii_alphabetic() => {
                let section = section.as_ref().ok_or_else(|| unreadable(reader.line))?;
                let (name, value) = reader.variable(c)?;
                entries.push(ConfigEntry { key: format!("{section}.{name}"), value });
            }
            _ => return Err(unreadable(reader.line)),
        }
    }
    Ok(entries)
}

/// A file that git parses as exactly these settings.
pub fn print(entries: &[ConfigEntry]) -> String {
    let mut out = String::new();
    for ConfigEntry { key, value } in entries {
        let (section, rest) = key.split_once('.').unwrap_or((key, ""));
        let (sub, name) = rest.rsplit_once('.').map_or((None, rest), |(sub, name)| (Some(sub), name));
        let sub = sub.map(|sub| format!(" \"{}\"", sub.replace('\\', "\\\\").replace('"', "\\\"")));
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        out.push_str(&format!("[{section}{}]\n\t{name} = \"{value}\"\n", sub.unwrap_or_default()));
    }
    out
}

fn unreadable(line: usize) -> ToolError {
    ToolError::invalid(format!("The repository's configuration is malformed: line {line}."))
        .hint("Fix .git/config; `git config --list` in a terminal shows the error.")
}

struct ConfigReader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl ConfigReader<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.next();
        self.line += usize::from(c == Some('\n'));
        c
    }

    fn comment(&mut self) {
        while self.chars.next_if(|c| *c != '\n').is_some() {}
    }

    /// `[section]`, `[section.sub]` or `[section "sub"]`, after the opening bracket.
    fn section(&mut self) -> Result<String, ToolError> {
        let mut name = String::new();
        loop {
            match self.next() {
                Some(']') if !name.is_empty() => return Ok(name),
                Some(c) if c.is_ascii_alphanumeric() || c == '-' || c == '.' => {
                    name.push(c.to_ascii_lowercase());
                }
                Some(' ' | '\t') if !name.is_empty() => return self.subsection(name),
                _ => return Err(unreadable(self.line)),
            }
        }
    }

    fn subsection(&mut self, mut name: String) -> Result<String, ToolError> {
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        if self.next() != Some('"') {
            return Err(unreadable(self.line));
        }
        name.push('.');
        loop {
            match self.next() {
                Some('"') if self.next() == Some(']') => return Ok(name),
                Some('\\') => match self.next() {
                    Some(c) if c != '\n' => name.push(c),
                    _ => return Err(unreadable(self.line)),
                },
                Some(c) if c != '\n' && c != '"' => name.push(c),
                _ => return Err(unreadable(self.line)),
            }
        }
    }

    fn variable(&mut self, first: char) -> Result<(String, String), ToolError> {
        let mut name = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '-') {
            name.push(c.to_ascii_lowercase());
        }
        while self.chars.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.next() {
            // A name without a value means true.
            None | Some('\n') => Ok((name, "true".to_owned())),
            Some('=') => Ok((name, self.value()?)),
            // A comment must not follow a name without a value.
            Some(_) => Err(unreadable(self.line)),
        }
    }

    fn value(&mut self) -> Result<String, ToolError> {
        // Blanks count only between other characters or within quotes.
        let (mut value, mut kept, mut quoted) = (String::new(), 0, false);
        while let Some(c) = self.next() {
            match c {
                '\n' if quoted => return Err(unreadable(self.line)),
                '\n' => break,
                '#' | ';' if !quoted => {
                    self.comment();
                    continue;
                }
                c if c.is_ascii_whitespace() && !quoted => {
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                '"' => quoted = !quoted,
                '\\' => match self.next() {
                    Some('\n') => continue,
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some('b') => value.push('\u{8}'),
                    Some(c @ ('"' | '\\')) => value.push(c),
                    _ => return Err(unreadable(self.line)),
                },
                c => value.push(c),
            }
            kept = value.len();
        }
        if quoted {
            return Err(unreadable(self.line));
        }
        value.truncate(kept);
        Ok(value)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests prepare files by hand")]
mod tests {
    use super::*;
    use crate::tests::git;

    fn pairs(entries: &[ConfigEntry]) -> Vec<(&str, &str)> {
        entries.iter().map(|entry| (entry.key.as_str(), entry.value.as_str())).collect()
    }

    #[test]
    fn files_are_read_as_git_reads_them() {
        let texts = [
            "[core]\n\tbare = false ; no\n  FileMode=true\n[user] name = \"A  b\" c # d\n",
            "[remote \"a.b\\\"c\"]\n\turl = x\\ty\\\\z\n\turl = \"two # lines\\n\"  \n[Branch.Main]\nmerge=refs/heads/x\n",
            "# only\n;\n[a]b\n[a \"B\"] c-d = 1\\\n 2\n\te =\n",
            "\u{feff}[x]\r\n\ty = z\r\n[empty]\n[x \"\"]\n\tq = \"\"\n",
        ];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for text in texts {
            let entries = parse(text).unwrap();
            std::fs::write(&path, text).unwrap();
            let told = git(folder.path(), &["config", "--file", "config", "--list", "-z"]);
            let mut expected = super::super::parse_listing(told.as_bytes());
            // git lists a name without a value.
            for (entry, ours) in expected.iter_mut().zip(&entries) {
                if entry.value.is_empty() && ours.value == "true" {
                    entry.value = "true".to_owned();
                }
            }
            assert_eq!(pairs(&entries), pairs(&expected), "{text:?}");
            assert_eq!(parse(&print(&entries)).unwrap(), entries, "{text:?}");
            std::fs::write(&path, print(&entries)).unwrap();
            let again = git(folder.path(), &["config", "--file", "config", "--list", "-z"]);
            assert_eq!(pairs(&super::super::parse_listing(again.as_bytes())), pairs(&entries), "{text:?}");
        }
    }

    #[test]
    fn what_git_does_not_understand_is_refused() {
        for text in [
            "a = b\n",
            "[a\n",
            "[a] 1 = 2\n",
            "[a]\nb = \"x\n",
            "[a \"b\n\"]\n",
            "[a]\nb = \\q\n",
            "[a]\nb # c\n",
            "[a]\nb;\n",
            "]",
            "[]",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
        assert!(parse("[a]\nb = \0\n").is_err());
    }

    proptest::proptest! {
        #[test]
        fn every_value_survives(sub in "[^\0\n\r\"]{0,8}", value in "[^\0\r]{0,12}", text: String) {
            let entries = [ConfigEntry { key: format!("a.{sub}.b"), value }];
            proptest::prop_assert_eq!(parse(&print(&entries)).unwrap(), entries);
            let _ = parse(&text);
        }
    }
}
