//! The arguments of a step held against the schema of its tool.

use super::form::{Form, fits, kind_of, kinds};
use super::{Checker, Scope, Used};
use crate::expr::Template;
use crate::plan::Step;
use octo_model::nearest;
use serde_json::Value;

impl Checker<'_> {
    /// Checks the call of a tool; gives the form of what it answers.
    pub(super) fn tool(
        &mut self,
        step: &Step,
        name: &str,
        with: &[(String, Template)],
        scope: &Scope,
    ) -> Option<Form> {
        let facts = match self.world.tool(name) {
            Ok(facts) => facts,
            Err(error) => {
                let hint = error.hint.map(|hint| hint.into_owned());
                self.wrong(&format!("{}/tool", step.pointer), error.message.into_owned(), hint);
                for (argument, template) in with {
                    let pointer = format!("{}/with/{}", step.pointer, crate::source::escaped(argument));
                    self.template(template, scope, &pointer);
                }
                return None;
            }
        };
        match self.found.tools.iter_mut().find(|used| used.name == name) {
            Some(used) => used.steps.push(step.id.clone()),
            None => self.found.tools.push(Used {
                name: name.to_owned(),
                class: facts.effect.class(),
                repeatable: facts.is_repeatable(),
                steps: vec![step.id.clone()],
            }),
        }
        let none = serde_json::Map::new();
        let known = facts.input.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let closed = facts.input.get("additionalProperties") == Some(&Value::Bool(false));
        for (argument, template) in with {
            let pointer = format!("{}/with/{}", step.pointer, crate::source::escaped(argument));
            match known.get(argument) {
                Some(schema) => self.argument(argument, template, schema, &facts.input, scope, &pointer),
                None => {
                    self.template(template, scope, &pointer);
                    if closed {
                        self.unknown(name, argument, known, &pointer);
                    }
                }
            }
        }
        let required = facts.input.get("required").and_then(Value::as_array).into_iter().flatten();
        for need in required.filter_map(Value::as_str) {
            if !with.iter().any(|(given, _)| given == need) {
                let pointer = format!("{}/tool", step.pointer);
                self.wrong(
                    &pointer,
                    format!("{name} needs `{need}`."),
                    Some(format!("Add it to `with:`{}", sort(known.get(need)))),
                );
            }
        }
        facts.output.map(|schema| Form::of(schema, facts.vouched))
    }

    fn unknown(&mut self, tool: &str, argument: &str, known: &serde_json::Map<String, Value>, pointer: &str) {
        let names = || known.keys().map(String::as_str);
        let hint = match nearest(argument, names()) {
            Some(close) => format!("Did you mean `{close}`?"),
            None => format!("It takes: {}.", names().collect::<Vec<_>>().join(", ")),
        };
        self.wrong(pointer, format!("{tool} has no parameter `{argument}`."), Some(hint));
    }

    fn argument(
        &mut self,
        name: &str,
        template: &Template,
        schema: &Value,
        root: &Value,
        scope: &Scope,
        pointer: &str,
    ) {
        self.template(template, scope, pointer);
        let given = match template {
            Template::Literal(value) => return self.literal(name, value, schema, root, pointer),
            // What is wrong with the expression itself has been said.
            Template::Expr(expr) => match self.quietly(expr, scope).as_ref().and_then(Form::kinds) {
                Some(given) => given,
                None => return,
            },
            Template::Text(_) => vec!["string".to_owned()],
            Template::List(_) => vec!["array".to_owned()],
            Template::Members(_) => vec!["object".to_owned()],
        };
        let Some(wanted) = kinds(schema) else { return };
        if !fits(&given, &wanted) {
            let message = format!("`{name}` takes {}, and this is {}.", told(&wanted), told(&given));
            self.wrong(pointer, message, None);
        }
    }

    /// What is known of an expression, without telling what is wrong with it a second time.
    fn quietly(&mut self, expr: &crate::expr::Expr, scope: &Scope) -> Option<Form> {
        let before = self.found.errors.len();
        let form = self.form(expr, scope, "");
        self.found.errors.truncate(before);
        form
    }

    fn literal(&mut self, name: &str, value: &Value, schema: &Value, root: &Value, pointer: &str) {
        let mut schema = schema.clone();
        if let (Value::Object(members), Some(parts)) = (&mut schema, root.get("$defs")) {
            members.insert("$defs".to_owned(), parts.clone());
        }
        // A schema of somebody else's that cannot be used checks nothing; the tool checks for itself.
        let Ok(validator) = jsonschema::options().build(&schema) else { return };
        let Some(error) = validator.iter_errors(value).next() else { return };
        let wanted = kinds(&schema);
        let given = vec![kind_of(value).to_owned()];
        let message = match wanted.filter(|wanted| !fits(&given, wanted)) {
            Some(wanted) => format!("`{name}` takes {}, and this is {}.", told(&wanted), told(&given)),
            None => {
                format!("`{name}` does not fit: {}.", error.to_string().chars().take(200).collect::<String>())
            }
        };
        self.wrong(pointer, message, None);
    }
}

/// The type of a parameter, for hints.
fn sort(schema: Option<&Value>) -> String {
    match schema.and_then(kinds) {
        Some(kinds) => format!(": {}.", told(&kinds)),
        None => ".".to_owned(),
    }
}

/// Types with their articles.
fn told(kinds: &[String]) -> String {
    let article = |kind: &String| match kind.as_str() {
        kind @ ("integer" | "array" | "object") => format!("an {kind}"),
        "null" => "null".to_owned(),
        kind => format!("a {kind}"),
    };
    kinds.iter().map(article).collect::<Vec<_>>().join(" or ")
}
