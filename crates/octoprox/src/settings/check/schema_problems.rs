//! Schema validation of the settings, to report all problems at once.

use crate::settings::check::settings_problem::SettingsProblem;
use crate::settings::load::settings_layers::Layers;
use crate::settings::model::secret_masking::is_secret_name;
use crate::settings::model::settings_model::settings_schema;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use octo_model::{MASK, abbreviate, nearest};
use serde_json::Value;

pub fn schema_problems(layers: &Layers) -> Vec<SettingsProblem> {
    let (schema, tree) = (settings_schema(), layers.tree());
    let Ok(validator) = jsonschema::options().build(&schema) else {
        return Vec::new();
    };
    validator.iter_errors(&tree).flat_map(|error| problems(&error, &schema, layers)).collect()
}

fn problems(error: &ValidationError<'_>, schema: &Value, layers: &Layers) -> Vec<SettingsProblem> {
    let path = dotted_path(error.instance_path().as_str());
    let problem = |path: String, what: String, remedy: String| {
        SettingsProblem::new(layers.origin(&path), path, what, remedy)
    };
    let secret = path.rsplit('.').next().is_some_and(is_secret_name);
    let shown =
        if secret { MASK.to_owned() } else { abbreviate(&error.instance().to_string(), 60).into_owned() };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let known = known_properties(schema, error.schema_path().as_str());
            unexpected
                .iter()
                .map(|name| {
                    let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    problem(at, "unknown setting.".to_owned(), suggestion(name, &known))
                })
                .collect()
        }
        ValidationErrorKind::Required { property } => {
            vec![problem(
                path,
                format!("`{}` is missing.", property.as_str().unwrap_or_default()),
                "Add it.".to_owned(),
            )]
        }
        ValidationErrorKind::Type { kind } => {
            let wanted = expected_types(kind);
            vec![problem(
                path,
                format!("`{shown}` is not {}.", with_article(&wanted)),
                type_hint(&wanted).to_owned(),
            )]
        }
        ValidationErrorKind::Enum { options } => vec![problem(
            path,
            format!("`{shown}` is not a valid value."),
            format!("Use one of: {}.", choices(options)),
        )],
        ValidationErrorKind::Maximum { limit } => {
            vec![problem(path, format!("`{shown}` is too large."), format!("The maximum is {limit}."))]
        }
        ValidationErrorKind::Minimum { limit } => {
            vec![problem(path, format!("`{shown}` is too small."), format!("The minimum is {limit}."))]
        }
        ValidationErrorKind::AnyOf { context } => match context.first().and_then(|errors| errors.first()) {
            Some(inner) => problems(inner, schema, layers),
            None => vec![problem(
                path,
                format!("`{shown}` is not valid."),
                "See `octoprox config schema`.".to_owned(),
            )],
        },
        _ => vec![problem(path, format!("{error}."), "See `octoprox config schema`.".to_owned())],
    }
}

/// Converts a JSON pointer (`/servers/notion/args/0`) to a setting path (`servers.notion.args[0]`).
fn dotted_path(pointer: &str) -> String {
    pointer.split('/').skip(1).fold(String::new(), |path, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        match part.parse::<usize>() {
            Ok(at) => format!("{path}[{at}]"),
            Err(_) if path.is_empty() => part,
            Err(_) => format!("{path}.{part}"),
        }
    })
}

/// Returns the properties next to the `additionalProperties` that failed.
fn known_properties(schema: &Value, keyword: &str) -> Vec<String> {
    let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
    let place = schema.pointer(parent).and_then(|object| object.get("properties")).and_then(Value::as_object);
    place.into_iter().flat_map(|fields| fields.keys().cloned()).collect()
}

/// Settings that had another name before 1.0.
const RENAMED: [(&str, &str); 6] = [
    ("idle_seconds", "idle_timeout_seconds"),
    ("start_seconds", "start_timeout_seconds"),
    ("in_flight", "max_concurrent"),
    ("pass_variables", "env_passthrough"),
    ("outside", "host_path"),
    ("shipped", "builtin"),
];

fn suggestion(name: &str, known: &[String]) -> String {
    let renamed = RENAMED.iter().find(|(old, new)| *old == name && known.iter().any(|known| known == new));
    if let Some((_, new)) = renamed {
        return format!("It was renamed to `{new}`.");
    }
    match nearest(name, known.iter().map(String::as_str)) {
        Some(close) => format!("Did you mean `{close}`?"),
        None => format!("Known settings: {}.", known.join(", ")),
    }
}

fn expected_types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(only) => only.to_string(),
        TypeKind::Multiple(several) => {
            let words = several.iter().map(|kind| kind.to_string()).filter(|word| word != "null");
            words.collect::<Vec<_>>().join(" or ")
        }
    }
}

fn with_article(word: &str) -> String {
    let vowel = word.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {word}", if vowel { "an" } else { "a" })
}

fn type_hint(wanted: &str) -> &'static str {
    match wanted {
        "boolean" => "Write true or false.",
        "integer" => "Write an integer.",
        "number" => "Write a number.",
        "string" => "Put it in quotes.",
        "array" => "Write a list: [one, two].",
        "object" => "Write a map of keys and values.",
        _ => "See `octoprox config schema`.",
    }
}

fn choices(options: &Value) -> String {
    let words = options.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(", ")
}
