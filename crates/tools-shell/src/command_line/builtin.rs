//! Builtins that run commands implicitly: bash expands the index in a variable's name, `a[$(rm x)]`, even in quotes,
//! and evaluates the value of an integer as arithmetic.

use super::Word;

pub fn can_run_commands(name: &str, arguments: &[Word]) -> bool {
    let is_builtin = matches!(
        name,
        "test"
            | "["
            | "wait"
            | "printf"
            | "read"
            | "unset"
            | "getopts"
            | "export"
            | "readonly"
            | "local"
            | "hash"
            | "set"
    );
    // Braces and wildcards expand to words that are unknown here.
    if is_builtin && arguments.iter().any(|word| word.has_glob) {
        return true;
    }
    match name {
        "test" | "[" => names_variable(arguments, &["-v", "-R"]),
        "wait" => names_variable(arguments, &["-p"]) || arguments.iter().any(|word| has_flag(word, 'p')),
        "printf" => arguments.iter().find(|word| word.text != "--").is_some_and(|format| {
            format.has_expansion || format.text.starts_with("-v") || format.text.contains("%n")
        }),
        "read" => arguments.iter().any(|word| may_have_index(word) || has_flag(word, 'a')),
        "unset" | "getopts" => arguments.iter().any(may_have_index),
        "export" | "readonly" | "local" => arguments.iter().any(|word| {
            let name = word.text.split('=').next().unwrap_or_default();
            name.contains('[')
                || name.starts_with('-') && name != "-p"
                || word.may_split && !word.text.contains('=')
        }),
        "hash" => !arguments.is_empty(),
        "set" => arguments.iter().any(|word| {
            word.may_split || word.text == "keyword" || word.text.starts_with('-') && word.text.contains('k')
        }),
        _ => false,
    }
}

/// Whether a word contains a short option, possibly among others.
fn has_flag(word: &Word, flag: char) -> bool {
    word.text.starts_with('-') && word.text.contains(flag)
}

/// An option may be followed by a name with an index.
fn names_variable(arguments: &[Word], options: &[&str]) -> bool {
    let is_option = |word: &Word| word.has_expansion || options.contains(&word.text.as_str());
    arguments.iter().any(|word| word.may_split)
        || arguments
            .iter()
            .zip(arguments.iter().skip(1))
            .any(|(option, name)| is_option(option) && may_have_index(name))
}

fn may_have_index(word: &Word) -> bool {
    word.has_expansion || word.has_glob || word.text.contains('[')
}
