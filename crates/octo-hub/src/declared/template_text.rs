//! Text templates: `{{name}}` is a parameter, `{{env.NAME}}` a variable of the hub, `\{{` two literal braces.

use octo_model::{TemplatePart, scan_template};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placeholder {
    Parameter(String),
    Variable(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText(pub Vec<TemplatePart<Placeholder>>);

impl TemplateText {
    /// Fails on braces that are neither a name nor escaped.
    pub fn parse(text: &str) -> Result<Self, String> {
        let parts = scan_template(text, |rest| {
            let (name, behind) = rest
                .split_once("}}")
                .ok_or_else(|| format!("`{text}` has a `{{{{` without a matching `}}}}`"))?;
            parse_placeholder(name.trim()).map(|placeholder| (placeholder, behind))
        })?;
        Ok(Self(parts))
    }

    fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        self.0.iter().filter_map(|part| match part {
            TemplatePart::Placeholder(placeholder) => Some(placeholder),
            TemplatePart::Literal(_) => None,
        })
    }

    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.placeholders().filter_map(|placeholder| match placeholder {
            Placeholder::Parameter(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.placeholders().filter_map(|placeholder| match placeholder {
            Placeholder::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The parameter, if the text consists of nothing else.
    pub fn single_parameter(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePart::Placeholder(Placeholder::Parameter(name))] => Some(name),
            _ => None,
        }
    }

    /// The text, if it contains no placeholders.
    pub fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TemplatePart::Literal(text)] => Some(text),
            _ => None,
        }
    }
}

fn parse_placeholder(name: &str) -> Result<Placeholder, String> {
    let word = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match name.strip_prefix("env.") {
        Some(variable) if word(variable) => Ok(Placeholder::Variable(variable.to_owned())),
        None if word(name) => Ok(Placeholder::Parameter(name.to_owned())),
        _ => Err(format!("`{{{{{name}}}}}` is not a parameter; write \\{{{{ for literal braces")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_and_odd_braces_refused() {
        let literal = |text: &str| TemplatePart::Literal(text.to_owned());
        let parameter = |name: &str| TemplatePart::Placeholder(Placeholder::Parameter(name.to_owned()));
        let variable = |name: &str| TemplatePart::Placeholder(Placeholder::Variable(name.to_owned()));
        for (text, pieces) in [
            ("", vec![]),
            ("plain $x `y`", vec![literal("plain $x `y`")]),
            ("{{a}}", vec![parameter("a")]),
            ("--x={{ a }}!", vec![literal("--x="), parameter("a"), literal("!")]),
            ("Bearer {{env.TOKEN}}", vec![literal("Bearer "), variable("TOKEN")]),
            (r"\{{.Names}} {{a}}", vec![literal("{{.Names}} "), parameter("a")]),
            ("{single}", vec![literal("{single}")]),
        ] {
            assert_eq!(TemplateText::parse(text), Ok(TemplateText(pieces)), "{text}");
        }
        for text in ["{{", "{{a", "{{.Names}}", "{{a b}}", "{{}}", "{{#if a}}", "{{env.}}", "{{1a}}"] {
            assert!(TemplateText::parse(text).is_err(), "{text}");
        }
    }
}
