//! Serialization of values in paths, queries, headers and cookies.

use crate::document::request::percent_encoding;
use crate::operation::{Param, ParamLocation};
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    /// Version 2.0 only.
    TabDelimited,
    DeepObject,
}

impl Style {
    /// The named style, or the default of the location.
    pub(crate) fn from_name(name: Option<&str>, place: ParamLocation) -> Self {
        match (name, place) {
            (Some("label"), ParamLocation::Path) => Self::Label,
            (Some("matrix"), ParamLocation::Path) => Self::Matrix,
            (Some("spaceDelimited"), ParamLocation::Query) => Self::SpaceDelimited,
            (Some("pipeDelimited"), ParamLocation::Query) => Self::PipeDelimited,
            (Some("deepObject"), ParamLocation::Query) => Self::DeepObject,
            (_, ParamLocation::Query | ParamLocation::Cookie) => Self::Form,
            (_, ParamLocation::Path | ParamLocation::Header) => Self::Simple,
        }
    }

    /// Separator of list elements in one value.
    fn joint(self) -> &'static str {
        match self {
            Self::SpaceDelimited => "%20",
            Self::PipeDelimited => "%7C",
            Self::TabDelimited => "%09",
            _ => ",",
        }
    }
}

/// A plain value as text; arrays and objects as JSON.
pub(crate) fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The `name=value` pairs of a query, encoded.
pub(crate) fn query(param: &Param, value: &Value) -> Vec<String> {
    let name = percent_encoding::encode(&param.name);
    let encoded = |value: &Value| {
        let text = to_text(value);
        if param.allow_reserved {
            percent_encoding::encode_allow_reserved(&text)
        } else {
            percent_encoding::encode(&text)
        }
    };
    if param.is_json {
        return vec![format!("{name}={}", percent_encoding::encode(&value.to_string()))];
    }
    match value {
        Value::Array(items) if param.style == Style::DeepObject => items
            .iter()
            .enumerate()
            .flat_map(|(at, item)| deep_object_pairs(&param.name, &at.to_string(), item))
            .collect(),
        Value::Array(items) if param.explode => {
            items.iter().map(|item| format!("{name}={}", encoded(item))).collect()
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(encoded).collect();
            vec![format!("{name}={}", items.join(param.style.joint()))]
        }
        Value::Object(members) if param.style == Style::DeepObject => {
            members.iter().flat_map(|(key, value)| deep_object_pairs(&param.name, key, value)).collect()
        }
        Value::Object(members) if param.explode => members
            .iter()
            .map(|(key, value)| format!("{}={}", percent_encoding::encode(key), encoded(value)))
            .collect(),
        Value::Object(members) => {
            let parts: Vec<String> = members
                .iter()
                .flat_map(|(key, value)| [percent_encoding::encode(key), encoded(value)])
                .collect();
            vec![format!("{name}={}", parts.join(param.style.joint()))]
        }
        plain => vec![format!("{name}={}", encoded(plain))],
    }
}

/// `filter[price][from]=1`, at any depth.
pub(crate) fn deep_object_pairs(above: &str, key: &str, value: &Value) -> Vec<String> {
    let name = format!("{above}[{key}]");
    match value {
        Value::Object(members) => {
            members.iter().flat_map(|(key, value)| deep_object_pairs(&name, key, value)).collect()
        }
        Value::Array(items) => items
            .iter()
            .enumerate()
            .flat_map(|(at, item)| deep_object_pairs(&name, &at.to_string(), item))
            .collect(),
        plain_one => vec![format!(
            "{}={}",
            percent_encoding::encode(&name),
            percent_encoding::encode(&to_text(plain_one))
        )],
    }
}

/// Value of a path parameter, encoded.
pub(crate) fn path(param: &Param, value: &Value) -> String {
    let name = percent_encoding::encode(&param.name);
    let one = |value: &Value| percent_encoding::encode(&to_text(value));
    let pairs = |joint: &str, value: &Value| -> Vec<String> {
        let members = value.as_object().into_iter().flatten();
        members
            .map(|(key, value)| format!("{}{joint}{}", percent_encoding::encode(key), one(value)))
            .collect()
    };
    let list: Vec<String> = match value {
        Value::Array(items) => items.iter().map(one).collect(),
        Value::Object(_) if param.explode => pairs("=", value),
        Value::Object(_) => pairs(",", value),
        plain => vec![one(plain)],
    };
    match param.style {
        Style::Label => format!(".{}", list.join(if param.explode { "." } else { "," })),
        Style::Matrix if param.explode && value.is_array() => {
            list.iter().map(|item| format!(";{name}={item}")).collect()
        }
        Style::Matrix if param.explode && value.is_object() => {
            list.iter().map(|pair| format!(";{pair}")).collect()
        }
        Style::Matrix => format!(";{name}={}", list.join(",")),
        _ => list.join(","),
    }
}

/// Value of a header, not encoded: headers have no escapes.
pub(crate) fn header(param: &Param, value: &Value) -> String {
    if param.is_json {
        return value.to_string();
    }
    match value {
        Value::Array(items) => items.iter().map(to_text).collect::<Vec<_>>().join(","),
        Value::Object(members) => {
            let joint = if param.explode { "=" } else { "," };
            let pairs = members.iter().map(|(key, value)| format!("{key}{joint}{}", to_text(value)));
            pairs.collect::<Vec<_>>().join(",")
        }
        other => to_text(other),
    }
}

/// `name=value` for the Cookie header.
pub(crate) fn cookie(param: &Param, value: &Value) -> String {
    match value {
        // Most servers ignore repeated cookie names, so an array is one value.
        Value::Array(items) => {
            let items: Vec<String> =
                items.iter().map(|item| percent_encoding::encode(&to_text(item))).collect();
            format!("{}={}", percent_encoding::encode(&param.name), items.join(","))
        }
        value => query(param, value).join("; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn param(place: ParamLocation, style: Style, explode: bool) -> Param {
        Param {
            name: "c".into(),
            location: place,
            required: false,
            description: String::new(),
            schema: Value::Null,
            example: None,
            style,
            explode,
            allow_reserved: false,
            is_json: false,
        }
    }

    #[test]
    fn queries_in_every_style() {
        let list = json!(["a b", "c,d"]);
        let object = json!({"R": 100, "G": "x&y"});
        for (style, explode, value, expected) in [
            (Style::Form, true, &list, "c=a%20b&c=c%2Cd"),
            (Style::Form, false, &list, "c=a%20b,c%2Cd"),
            (Style::SpaceDelimited, false, &list, "c=a%20b%20c%2Cd"),
            (Style::PipeDelimited, false, &list, "c=a%20b%7Cc%2Cd"),
            (Style::TabDelimited, false, &list, "c=a%20b%09c%2Cd"),
            (Style::PipeDelimited, true, &list, "c=a%20b&c=c%2Cd"),
            (Style::Form, true, &object, "R=100&G=x%26y"),
            (Style::Form, false, &object, "c=R,100,G,x%26y"),
            (Style::DeepObject, true, &object, "c%5BR%5D=100&c%5BG%5D=x%26y"),
            (Style::DeepObject, true, &json!({"a": {"b": [1]}}), "c%5Ba%5D%5Bb%5D%5B0%5D=1"),
            (Style::Form, true, &json!("x=1&host=evil#"), "c=x%3D1%26host%3Devil%23"),
            (Style::Form, true, &json!(true), "c=true"),
        ] {
            assert_eq!(query(&param(ParamLocation::Query, style, explode), value).join("&"), expected);
        }
    }

    #[test]
    fn paths_headers_and_cookies() {
        let list = json!(["a", "b/c"]);
        let object = json!({"R": 100, "G": 200});
        for (style, explode, value, expected) in [
            (Style::Simple, false, &list, "a,b%2Fc"),
            (Style::Simple, true, &object, "R=100,G=200"),
            (Style::Simple, false, &object, "R,100,G,200"),
            (Style::Label, false, &json!(5), ".5"),
            (Style::Label, true, &list, ".a.b%2Fc"),
            (Style::Matrix, false, &json!(5), ";c=5"),
            (Style::Matrix, true, &list, ";c=a;c=b%2Fc"),
            (Style::Matrix, true, &object, ";R=100;G=200"),
            (Style::Matrix, false, &object, ";c=R,100,G,200"),
        ] {
            assert_eq!(path(&param(ParamLocation::Path, style, explode), value), expected);
        }
        assert_eq!(header(&param(ParamLocation::Header, Style::Simple, false), &list), "a,b/c");
        assert_eq!(header(&param(ParamLocation::Header, Style::Simple, true), &object), "R=100,G=200");
        assert_eq!(cookie(&param(ParamLocation::Cookie, Style::Form, true), &json!("a;b")), "c=a%3Bb");
        assert_eq!(cookie(&param(ParamLocation::Cookie, Style::Form, true), &list), "c=a,b%2Fc");
    }
}
