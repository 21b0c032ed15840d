//! Text templates: `{{name}}` is a parameter, `{{env.NAME}}` a variable of the hub, `\{{` two literal braces.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    Literal(String),
    Parameter(String),
    Variable(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText(pub Vec<TemplatePart>);

impl TemplateText {
    /// Fails on braces that are neither a name nor escaped.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            if let Some(before) = before.strip_suffix('\\') {
                literal.push_str(before);
                literal.push_str("{{");
                rest = after;
                continue;
            }
            let (name, tail) = after
                .split_once("}}")
                .ok_or_else(|| format!("`{text}` has a `{{{{` without a matching `}}}}`"))?;
            literal.push_str(before);
            if !literal.is_empty() {
                pieces.push(TemplatePart::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(parse_part(name.trim())?);
            rest = tail;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            pieces.push(TemplatePart::Literal(literal));
        }
        Ok(Self(pieces))
    }

    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Parameter(name) => Some(name.as_str()),
            _ => None,
        })
    }

    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePart::Variable(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The parameter, if the text consists of nothing else.
    pub fn single_parameter(&self) -> Option<&str> {
        match self.0.as_slice() {
            [TemplatePart::Parameter(name)] => Some(name),
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

fn parse_part(name: &str) -> Result<TemplatePart, String> {
    let word = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    match name.strip_prefix("env.") {
        Some(variable) if word(variable) => Ok(TemplatePart::Variable(variable.to_owned())),
        None if word(name) => Ok(TemplatePart::Parameter(name.to_owned())),
        _ => Err(format!("`{{{{{name}}}}}` is not a parameter; write \\{{{{ for literal braces")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_and_odd_braces_refused() {
        let literal = |text: &str| TemplatePart::Literal(text.to_owned());
        let parameter = |name: &str| TemplatePart::Parameter(name.to_owned());
        for (text, pieces) in [
            ("", vec![]),
            ("plain $x `y`", vec![literal("plain $x `y`")]),
            ("{{a}}", vec![parameter("a")]),
            ("--x={{ a }}!", vec![literal("--x="), parameter("a"), literal("!")]),
            ("Bearer {{env.TOKEN}}", vec![literal("Bearer "), TemplatePart::Variable("TOKEN".to_owned())]),
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
