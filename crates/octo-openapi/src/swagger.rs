//! Version 2.0 in the words of version 3.

use crate::document::{Document, written};
use crate::member::Member;
use crate::operation::{Body, Media, Param, Place, object, place};
use crate::style::Style;
use serde_json::{Map, Value};

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// What an operation takes or gives; its own list, or the document's.
pub(crate) fn kinds(document: &Document, said: &Value, which: &str) -> Vec<String> {
    let own = said.get(which).cloned().or_else(|| document.at(&[which]));
    let own = own.as_ref().and_then(Value::as_array).into_iter().flatten();
    own.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

pub(crate) fn param(given: &Value) -> Option<Param> {
    let place = place(given)?;
    let (style, explode) = match (given.member("collectionFormat").as_str(), place) {
        (Some("multi"), Place::Query) => (Style::Form, true),
        (Some("ssv"), Place::Query) => (Style::Space, false),
        (Some("pipes"), Place::Query) => (Style::Pipe, false),
        (Some("tsv"), Place::Query) => (Style::Tab, false),
        _ => (Style::named(None, place), false),
    };
    Some(Param {
        name: given.member("name").as_str()?.to_owned(),
        place,
        required: place == Place::Path || given.member("required") == true,
        description: written(given.member("description")),
        schema: schema(given),
        example: given.get("x-example").cloned(),
        style,
        explode,
        reserved: false,
        json: false,
    })
}

/// The parameter named `body`, or those of a form as one object.
pub(crate) fn body(given: &[Value], consumes: &[String]) -> Option<Body> {
    if let Some(body) = given.iter().find(|given| given.member("in") == "body") {
        let kinds = if consumes.is_empty() { vec!["application/json".to_owned()] } else { consumes.to_vec() };
        return Some(Body {
            required: body.member("required") == true,
            description: written(body.member("description")),
            media: kinds.into_iter().map(|kind| plain(kind, body.member("schema").clone())).collect(),
        });
    }
    let fields: Vec<&Value> = given.iter().filter(|given| given.member("in") == "formData").collect();
    if fields.is_empty() {
        return None;
    }
    let has_file = fields.iter().any(|field| field.member("type") == "file");
    let forms = consumes.iter().filter(|kind| [FORM, MULTIPART].contains(&kind.as_str()));
    let mut kinds: Vec<String> = forms.filter(|kind| !has_file || *kind == MULTIPART).cloned().collect();
    if kinds.is_empty() {
        kinds.push(if has_file { MULTIPART } else { FORM }.to_owned());
    }
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        let Some(name) = field.member("name").as_str() else { continue };
        properties.insert(name.to_owned(), schema(field));
        if field.member("required") == true {
            required.push(Value::from(name));
        }
    }
    let needed = !required.is_empty();
    let form = object(properties, required);
    let media = kinds.into_iter().map(|kind| plain(kind, form.clone())).collect();
    Some(Body { required: needed, description: String::new(), media })
}

pub(crate) fn media(answer: &Value, produces: &[String]) -> Vec<Media> {
    let Some(schema) = answer.get("schema") else { return Vec::new() };
    let json = vec!["application/json".to_owned()];
    let kinds = if produces.is_empty() { &json } else { produces };
    kinds.iter().map(|kind| plain(kind.clone(), schema.clone())).collect()
}

fn plain(kind: String, schema: Value) -> Media {
    Media { kind, schema, example: None, encoding: Value::Null }
}

/// The schema that stands among the parameter's own members.
fn schema(given: &Value) -> Value {
    let beside =
        ["name", "in", "required", "description", "collectionFormat", "allowEmptyValue", "x-example"];
    let members = given.as_object().into_iter().flatten();
    let mut schema: Map<String, Value> = members
        .filter(|(name, _)| !beside.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if schema.get("type").is_some_and(|kind| kind == "file") {
        schema.insert("type".to_owned(), "string".into());
        schema.insert("format".to_owned(), "binary".into());
    }
    Value::Object(schema)
}
