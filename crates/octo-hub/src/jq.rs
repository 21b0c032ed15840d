//! jq expressions over kept results. They may loop for ever, so they run where they can be killed.

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use octo_model::{Json, ToolError};
use octo_toolkit::BoxFuture;

/// Runs a jq expression somewhere that can be ended at any time.
pub trait Jq: Send + Sync {
    fn run<'a>(&'a self, program: &'a str, input: Json) -> BoxFuture<'a, Result<String, ToolError>>;
}

/// Evaluates in this thread, without any bound on time: for the process that may be killed.
/// Gives one output per line, and stops past `limit` bytes.
pub fn evaluate(program: &str, input: &[u8], limit: usize) -> Result<String, String> {
    let input = read::parse_single(input).map_err(|error| format!("the kept result is not JSON: {error}"))?;
    let loader = Loader::new(jaq_core::defs().chain(jaq_std::defs()).chain(jaq_json::defs()));
    let arena = Arena::default();
    let modules = loader
        .load(&arena, File { code: program, path: () })
        .map_err(|errors| format!("the expression cannot be read: {}", first_line(&format!("{errors:?}"))))?;
    let filter = Compiler::default()
        .with_funs(jaq_core::funs().chain(jaq_std::funs()).chain(jaq_json::funs()))
        .compile(modules)
        .map_err(|errors| format!("the expression cannot be used: {}", first_line(&format!("{errors:?}"))))?;
    let ctx = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let mut text = String::new();
    for output in filter.id.run((ctx, input)).map(unwrap_valr) {
        let output = output.map_err(|error| format!("the expression failed: {error}"))?;
        text.push_str(&output.to_string());
        text.push('\n');
        if text.len() > limit {
            break;
        }
    }
    Ok(text)
}

fn first_line(text: &str) -> String {
    text.chars().take_while(|c| *c != '\n').take(300).collect()
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
        assert!(evaluate("range(1e9)", b"null", 50).unwrap().len() < 80);
    }
}
