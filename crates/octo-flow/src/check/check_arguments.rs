//! Checks the arguments of a step against the schema of its tool.

use super::value_type::{ValueType, is_assignable, json_type_of, schema_types};
use super::{Checker, Scope, ToolUse};
use crate::compiled_workflow::Step;
use crate::expr::Template;
use octo_model::{EffectOrigin, nearest};
use serde_json::Value;

impl Checker<'_> {
    /// Checks a tool call; returns the type of its output.
    pub(super) fn check_tool(
        &mut self,
        step: &Step,
        name: &str,
        with: &[(String, Template)],
        scope: &Scope,
    ) -> Option<ValueType> {
        let facts = match self.tools.tool(name) {
            Ok(facts) => facts,
            Err(error) => {
                let hint = error.hint.map(|hint| hint.into_owned());
                self.error(&format!("{}/tool", step.pointer), error.message.into_owned(), hint);
                for (argument, template) in with {
                    let pointer =
                        format!("{}/with/{}", step.pointer, crate::spanned_yaml::escape_pointer(argument));
                    self.check_template(template, scope, &pointer);
                }
                return None;
            }
        };
        match self.report.tools.iter_mut().find(|used| used.name == name) {
            Some(used) => used.steps.push(step.id.clone()),
            None => self.report.tools.push(ToolUse {
                name: name.to_owned(),
                class: facts.effect.class(),
                repeatable: facts.is_repeatable(),
                steps: vec![step.id.clone()],
            }),
        }
        let none = serde_json::Map::new();
        let properties = facts.input.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let closed = facts.input.get("additionalProperties") == Some(&Value::Bool(false));
        for (argument, template) in with {
            let pointer = format!("{}/with/{}", step.pointer, crate::spanned_yaml::escape_pointer(argument));
            match properties.get(argument) {
                Some(schema) => {
                    self.check_argument(argument, template, schema, &facts.input, scope, &pointer)
                }
                None => {
                    self.check_template(template, scope, &pointer);
                    if closed {
                        self.unknown_argument(name, argument, properties, &pointer);
                    }
                }
            }
        }
        let required = facts.input.get("required").and_then(Value::as_array).into_iter().flatten();
        for need in required.filter_map(Value::as_str) {
            if !with.iter().any(|(given, _)| given == need) {
                let pointer = format!("{}/tool", step.pointer);
                self.error(
                    &pointer,
                    format!("{name} requires `{need}`."),
                    Some(format!("Add it to `with:`{}", type_hint(properties.get(need)))),
                );
            }
        }
        facts.output.map(|schema| ValueType::from_schema(schema, facts.effect_origin == EffectOrigin::Native))
    }

    fn unknown_argument(
        &mut self,
        tool: &str,
        argument: &str,
        known: &serde_json::Map<String, Value>,
        pointer: &str,
    ) {
        let names = || known.keys().map(String::as_str);
        let hint = match nearest(argument, names()) {
            Some(close) => format!("Did you mean `{close}`?"),
            None => format!("Parameters: {}.", names().collect::<Vec<_>>().join(", ")),
        };
        self.error(pointer, format!("{tool} has no parameter `{argument}`."), Some(hint));
    }

    fn check_argument(
        &mut self,
        name: &str,
        template: &Template,
        schema: &Value,
        root: &Value,
        scope: &Scope,
        pointer: &str,
    ) {
        self.check_template(template, scope, pointer);
        let given = match template {
            Template::Literal(value) => return self.check_literal(name, value, schema, root, pointer),
            // Problems of the expression itself have been reported already.
            Template::Expr(expr) => {
                match self.infer_silently(expr, scope).as_ref().and_then(ValueType::json_types) {
                    Some(given) => given,
                    None => return,
                }
            }
            Template::Text(_) => vec!["string".to_owned()],
            Template::List(_) => vec!["array".to_owned()],
            Template::Object(_) => vec!["object".to_owned()],
        };
        let Some(wanted) = schema_types(schema) else { return };
        if !is_assignable(&given, &wanted) {
            let message = format!(
                "`{name}` must be {}, but this is {}.",
                describe_types(&wanted),
                describe_types(&given)
            );
            self.error(pointer, message, None);
        }
    }

    /// Infers a type without reporting problems a second time.
    fn infer_silently(&mut self, expr: &crate::expr::Expr, scope: &Scope) -> Option<ValueType> {
        let before = self.report.errors.len();
        let form = self.infer_type(expr, scope, "");
        self.report.errors.truncate(before);
        form
    }

    fn check_literal(&mut self, name: &str, value: &Value, schema: &Value, root: &Value, pointer: &str) {
        let mut schema = schema.clone();
        if let (Value::Object(members), Some(parts)) = (&mut schema, root.get("$defs")) {
            members.insert("$defs".to_owned(), parts.clone());
        }
        // An invalid schema of an upstream tool is skipped; the tool validates its arguments itself.
        let Ok(validator) = jsonschema::options().build(&schema) else { return };
        let Some(error) = validator.iter_errors(value).next() else { return };
        let wanted = schema_types(&schema);
        let given = vec![json_type_of(value).to_owned()];
        let message = match wanted.filter(|wanted| !is_assignable(&given, wanted)) {
            Some(wanted) => {
                format!(
                    "`{name}` must be {}, but this is {}.",
                    describe_types(&wanted),
                    describe_types(&given)
                )
            }
            None => {
                format!("`{name}` is invalid: {}.", error.to_string().chars().take(200).collect::<String>())
            }
        };
        self.error(pointer, message, None);
    }
}

/// The type of a parameter, for hints.
fn type_hint(schema: Option<&Value>) -> String {
    match schema.and_then(schema_types) {
        Some(kinds) => format!(": {}.", describe_types(&kinds)),
        None => ".".to_owned(),
    }
}

/// Types with their articles.
fn describe_types(kinds: &[String]) -> String {
    let article = |kind: &String| match kind.as_str() {
        kind @ ("integer" | "array" | "object") => format!("an {kind}"),
        "null" => "null".to_owned(),
        kind => format!("a {kind}"),
    };
    kinds.iter().map(article).collect::<Vec<_>>().join(" or ")
}
