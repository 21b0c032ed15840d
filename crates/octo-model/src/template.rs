//! Texts with placeholders: `{{ … }}` is a placeholder, `\{{` two literal braces.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart<P> {
    Literal(String),
    Placeholder(P),
}

/// Splits a text into literals and placeholders. `parse` gets the text after `{{` and returns the placeholder
/// and the text after its `}}`. No literal is empty, and no two are adjacent.
pub fn scan_template<'a, P, E>(
    text: &'a str,
    mut parse: impl FnMut(&'a str) -> Result<(P, &'a str), E>,
) -> Result<Vec<TemplatePart<P>>, E> {
    let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once("{{") {
        if let Some(before) = before.strip_suffix('\\') {
            literal.push_str(before);
            literal.push_str("{{");
            rest = after;
            continue;
        }
        literal.push_str(before);
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
        }
        let (placeholder, behind) = parse(after)?;
        parts.push(TemplatePart::Placeholder(placeholder));
        rest = behind;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(TemplatePart::Literal(literal));
    }
    Ok(parts)
}
