//! Templates: variables and conditions only; no loops, includes or code.

use handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use handlebars::{Handlebars, Path, Template, no_escape};
use octo_model::nearest;
use octo_model::{Kind, ToolError};
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Generous for text written by hand.
const MAX_TEMPLATE_BYTES: usize = 64 << 10;
const MAX_RENDERED_BYTES: usize = 4 << 20;

/// Block helpers, and helpers for their conditions: `{{#if (eq style "short")}}`.
const BLOCK_HELPERS: [&str; 2] = ["if", "unless"];
const CONDITION_HELPERS: [&str; 5] = ["eq", "ne", "and", "or", "not"];

/// A problem in a template, with its line.
#[derive(Debug, PartialEq, Eq)]
pub struct TemplateError {
    pub line: Option<usize>,
    pub what: String,
}

/// Returns whether a name has a special meaning in templates.
pub fn is_reserved(name: &str) -> bool {
    BLOCK_HELPERS.contains(&name)
        || CONDITION_HELPERS.contains(&name)
        || ["else", "this", "true", "false", "null"].contains(&name)
}

/// Compiles a template in which every variable must be an argument: an error is better than a gap in a
/// prompt.
pub fn compile(text: &str, arguments: &[&str]) -> Result<Template, TemplateError> {
    if text.len() > MAX_TEMPLATE_BYTES {
        return Err(TemplateError {
            line: None,
            what: format!("the template has more than {MAX_TEMPLATE_BYTES} bytes"),
        });
    }
    let template = Template::compile(text).map_err(|error| TemplateError {
        line: error.pos().map(|(line, _)| line),
        what: error.reason().to_string().lines().next().unwrap_or_default().to_owned(),
    })?;
    TemplateChecker { arguments }.template(&template, None)?;
    Ok(template)
}

struct TemplateChecker<'a> {
    arguments: &'a [&'a str],
}

impl TemplateChecker<'_> {
    fn template(&self, template: &Template, above: Option<usize>) -> Result<(), TemplateError> {
        for (at, element) in template.elements.iter().enumerate() {
            let line = template.mapping.get(at).map(|mapping| mapping.0).or(above);
            self.element(element, line).map_err(|what| match what {
                CheckError::Here(what) => TemplateError { line, what },
                CheckError::Nested(fault) => fault,
            })?;
        }
        Ok(())
    }

    fn element(&self, element: &TemplateElement, line: Option<usize>) -> Result<(), CheckError> {
        match element {
            TemplateElement::RawString(_) | TemplateElement::Comment(_) => Ok(()),
            TemplateElement::Expression(expression) | TemplateElement::HtmlExpression(expression) => {
                if !expression.params.is_empty() || !expression.hash.is_empty() {
                    return Err(CheckError::Here(format!(
                        "`{}` is not an argument; only {{{{name}}}} and {{{{#if name}}}} are supported",
                        name(&expression.name)
                    )));
                }
                self.variable(&expression.name)
            }
            TemplateElement::HelperBlock(block) => self.block(block, line),
            _ => Err(CheckError::Here("partials and decorators are not supported".to_owned())),
        }
    }

    fn block(&self, block: &HelperTemplate, line: Option<usize>) -> Result<(), CheckError> {
        let helper = name(&block.name);
        if !BLOCK_HELPERS.contains(&helper) {
            return Err(CheckError::Here(format!("unknown block `{helper}`; use if or unless")));
        }
        if block.params.len() != 1 || !block.hash.is_empty() || block.block_param.is_some() {
            return Err(CheckError::Here(format!("`{helper}` takes one condition")));
        }
        self.conditions(&block.params)?;
        for part in [&block.template, &block.inverse].into_iter().flatten() {
            self.template(part, line).map_err(CheckError::Nested)?;
        }
        Ok(())
    }

    fn conditions(&self, parameters: &[Parameter]) -> Result<(), CheckError> {
        for parameter in parameters {
            match parameter {
                Parameter::Literal(_) => {}
                Parameter::Subexpression(inner) => match inner.as_element() {
                    TemplateElement::Expression(asked) if CONDITION_HELPERS.contains(&name(&asked.name)) => {
                        self.conditions(&asked.params)?;
                    }
                    TemplateElement::Expression(asked) => {
                        return Err(CheckError::Here(format!("unknown condition `{}`", name(&asked.name))));
                    }
                    _ => return Err(CheckError::Here("unsupported condition".to_owned())),
                },
                other => self.variable(other)?,
            }
        }
        Ok(())
    }

    fn variable(&self, parameter: &Parameter) -> Result<(), CheckError> {
        let name = name(parameter);
        if self.arguments.contains(&name) {
            return Ok(());
        }
        let close = nearest(name, self.arguments.iter().copied());
        let close = close.map_or_else(String::new, |close| format!("; did you mean `{close}`?"));
        Err(CheckError::Here(format!("`{name}` is not an argument{close}")))
    }
}

enum CheckError {
    Here(String),
    Nested(TemplateError),
}

fn name(parameter: &Parameter) -> &str {
    match parameter {
        Parameter::Name(name) | Parameter::Path(Path::Relative((_, name)) | Path::Local((_, _, name))) => {
            name
        }
        _ => "",
    }
}

/// Renders templates. Values are inserted unescaped and never parsed as templates.
pub struct Engine(Handlebars<'static>);

impl Engine {
    pub fn new() -> Self {
        let mut engine = Handlebars::new();
        engine.register_escape_fn(no_escape);
        for helper in ["each", "with", "lookup", "raw", "log", "gt", "gte", "lt", "lte", "len"] {
            engine.unregister_helper(helper);
        }
        Self(engine)
    }

    pub fn add(&mut self, name: &str, template: Template) {
        self.0.register_template(name, template);
    }

    pub fn render(&self, name: &str, values: &Map<String, Value>) -> Result<String, ToolError> {
        let mut text = BoundedWriter(Vec::new());
        self.0.render_to_write(name, values, &mut text).map_err(|error| {
            if text.0.len() >= MAX_RENDERED_BYTES {
                return ToolError::new(
                    Kind::TooLarge,
                    format!("The prompt has more than {MAX_RENDERED_BYTES} bytes."),
                )
                .hint("Pass shorter arguments.");
            }
            ToolError::internal(error)
        })?;
        let text = String::from_utf8(text.0).map_err(ToolError::internal)?;
        Ok(text.trim_end().to_owned())
    }
}

struct BoundedWriter(Vec<u8>);

impl Write for BoundedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = MAX_RENDERED_BYTES - self.0.len();
        if bytes.len() > room {
            self.0.resize(MAX_RENDERED_BYTES, b' ');
            return Err(io::Error::other("too large"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
