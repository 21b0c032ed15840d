//! Evaluation of jq expressions, for the process that runs them.

use jaq_core::load::{self, Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use octo_grants::jq::top_level_keys;
pub use octo_grants::jq::{Jq, JqRunner, MAX_OUTPUT_BYTES};

/// Maximum characters of an error, which may contain the input.
const MAX_ERROR_CHARS: usize = 300;

/// Evaluates on this thread without a time limit: for a process that can be killed. Returns one output per
/// line and stops after `limit` bytes.
pub fn evaluate(program: &str, input: &[u8], limit: usize) -> Result<String, String> {
    let input = read::parse_single(input).map_err(|error| format!("the input is not JSON: {error}"))?;
    let keys = keys_of(&input);
    let loader = Loader::new(jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
    let arena = Arena::default();
    let modules = loader.load(&arena, File { code: program, path: () }).map_err(|errors| {
        format!("the expression cannot be parsed: {}{keys}", parse_error_text(program, &errors))
    })?;
    let filter = Compiler::default()
        .with_funs(jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()))
        .compile(modules)
        .map_err(|errors| format!("the expression is invalid: {}{keys}", undefined_names(&errors)))?;
    let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut text = String::new();
    for output in filter.id.run((ctx, input)).map(unwrap_valr) {
        let output = output
            .map_err(|error| format!("the expression failed: {}{keys}", truncate(&error.to_string())))?;
        text.push_str(&output.to_string());
        text.push('\n');
        if text.len() > limit {
            break;
        }
    }
    Ok(text)
}

/// The keys of the input, appended to errors.
fn keys_of(input: &Val) -> String {
    let Val::Obj(members) = input else { return String::new() };
    let names = members.keys().map(|key| key.to_string().trim_matches('"').to_owned());
    top_level_keys(names, members.len()).map(|keys| format!(". {keys}")).unwrap_or_default()
}

fn truncate(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_ERROR_CHARS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Position and cause of a syntax error.
fn parse_error_text(program: &str, errors: &load::Errors<&str, ()>) -> String {
    let first = errors.first().map(|(_, error)| match error {
        load::Error::Io(errors) => errors.first().map(|(path, _)| format!("it refers to the file `{path}`")),
        load::Error::Lex(errors) => {
            errors.first().map(|(expected, at)| expected_text(program, expected.as_str(), at))
        }
        load::Error::Parse(errors) => {
            errors.first().map(|(expected, at)| expected_text(program, expected.as_str(), at))
        }
    });
    truncate(&first.flatten().unwrap_or_else(|| "it is incomplete".to_owned()))
}

fn expected_text(program: &str, expected: &str, at: &str) -> String {
    let offset = at.as_ptr().addr().checked_sub(program.as_ptr().addr()).filter(|at| *at <= program.len());
    let before = offset.and_then(|offset| program.get(..offset));
    let place = match before.map(|before| before.chars().count() + 1) {
        Some(column) if !at.is_empty() => format!("at character {column}"),
        _ => "at the end".to_owned(),
    };
    format!("expected {expected} {place}")
}

/// Undefined names that an expression uses.
fn undefined_names(errors: &jaq_core::compile::Errors<&str, ()>) -> String {
    let all = errors.iter().flat_map(|(_, errors)| errors);
    let names = all.take(3).map(|(name, undefined)| format!("there is no {} `{name}`", undefined.as_str()));
    truncate(&names.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_and_says_what_is_wrong() {
        assert_eq!(evaluate(".a[] | .+1", br#"{"a":[1,2]}"#, 100).unwrap(), "2\n3\n");
        assert_eq!(evaluate("map(select(.x)) | length", br#"[{"x":true},{"x":false}]"#, 100).unwrap(), "1\n");
        for (program, input) in [(".a[", "{}"), ("nosuch", "{}"), (".a.b", "3"), (".", "not json")] {
            assert!(evaluate(program, input.as_bytes(), 100).is_err(), "{program}");
        }
        let long = format!("\"{}\"", "x".repeat(1_000_000));
        for (program, input, wanted) in [
            (".a[", "{}", "the expression cannot be parsed: "),
            (".a | nosuch(1)", "{}", "there is no filter `nosuch`"),
            ("$x", "1", "there is no variable `$x`"),
            (". as [$a | 1", "1", "expected "),
            ("fromjson", long.as_str(), "the expression failed: "),
            (".a", long.as_str(), "the expression failed: "),
            (".items[", r#"{"items":[]}"#, "The top-level keys are `items`"),
            (".items[]", r#"{"json":{"items":[]},"status":200}"#, "The top-level keys are `json`, `status`"),
        ] {
            let error = evaluate(program, input.as_bytes(), 100).unwrap_err();
            assert!(error.contains(wanted) && !error.contains("Error"), "{program}: {error}");
            assert!(error.len() < 1_000, "{program}: {}", error.len());
        }
        assert!(evaluate("range(1e9)", b"null", 50).unwrap().len() < 80);
    }
}
