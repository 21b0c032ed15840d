//! `file:line:column: error: message`, the format of gcc, clang, javac and many more; go omits the word, and make and
//! the linker have formats of their own.

use super::{Diagnostic, Severity};

pub fn read(line: &str) -> Option<(Severity, Diagnostic)> {
    parse_make(line).or_else(|| parse_linker(line)).or_else(|| parse_located(line))
}

fn parse_located(line: &str) -> Option<(Severity, Diagnostic)> {
    let words: &[(&str, Severity)] = &[
        (": error: ", Severity::Error),
        (": fatal error: ", Severity::Error),
        (" - error ", Severity::Error),
        (": warning: ", Severity::Warning),
        (" - warning ", Severity::Warning),
    ];
    for (word, weight) in words {
        if let Some((spot, message)) = line.split_once(word) {
            let found = parse_location(spot.trim())?;
            return Some((*weight, Diagnostic { message: message.to_owned(), ..found }));
        }
    }
    coded(line).or_else(|| parse_go(line))
}

/// Short format of rustc: `src/main.rs:3:18: error[E0308]: mismatched types`.
fn coded(line: &str) -> Option<(Severity, Diagnostic)> {
    let (weight, (spot, rest)) = match line.split_once(": error[") {
        Some(parts) => (Severity::Error, parts),
        None => (Severity::Warning, line.split_once(": warning[")?),
    };
    let (code, message) = rest.split_once("]: ")?;
    Some((weight, Diagnostic { message: format!("{message} [{code}]"), ..parse_location(spot)? }))
}

/// `./a.go:3:5: undefined: x`; vet adds its name in front.
fn parse_go(line: &str) -> Option<(Severity, Diagnostic)> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let line = line.strip_prefix("vet: ").unwrap_or(line);
    let end = line.find(".go:")? + 3;
    let (spot, message) = line.get(end..)?.split_once(": ")?;
    let found = parse_location(&format!("{}{spot}", line.get(..end)?))?;
    Some((Severity::Error, Diagnostic { message: message.to_owned(), ..found }))
}

/// `make: *** [Makefile:3: all] Error 1`.
fn parse_make(line: &str) -> Option<(Severity, Diagnostic)> {
    let (maker, rest) = line.split_once(": *** ")?;
    if !maker.contains("make") {
        return None;
    }
    let spot = rest.strip_prefix('[').and_then(|rest| rest.split(": ").next()).and_then(parse_location);
    Some((Severity::Error, Diagnostic { message: rest.to_owned(), ..spot.unwrap_or_default() }))
}

/// `a.c:(.text+0x5): undefined reference to ...`.
fn parse_linker(line: &str) -> Option<(Severity, Diagnostic)> {
    let (spot, symbol) = line.split_once(": undefined reference to ")?;
    let spot = spot.rsplit(": ").next().unwrap_or(spot);
    let file = spot.split(":(").next().unwrap_or(spot);
    let message = format!("undefined reference to {symbol}");
    Some((Severity::Error, Diagnostic { file: Some(file.to_owned()), message, ..Diagnostic::default() }))
}

/// `file:line:column` or `file:line`.
pub fn parse_location(spot: &str) -> Option<Diagnostic> {
    let (head, last) = spot.rsplit_once(':')?;
    let last: u64 = last.parse().ok()?;
    let (file, line, column) =
        match head.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
            Some((file, line)) => (file, line, Some(last)),
            None => (head, last, None),
        };
    if file.is_empty() || file.contains(['"', '<', '>']) {
        return None;
    }
    Some(Diagnostic { file: Some(file.to_owned()), line: Some(line), column, message: String::new() })
}
