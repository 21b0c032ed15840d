//! Converts version 2.0 to the model of version 3.

use crate::document::request::param_style::Style;
use crate::document::{Document, text_of};
use crate::operation::{Body, MediaType, Param, ParamLocation, object, parse_location};
use crate::value_ext::ValueExt;
use serde_json::{Map, Value};

const FORM_URLENCODED: &str = "application/x-www-form-urlencoded";
const MULTIPART_FORM: &str = "multipart/form-data";

/// Media types that an operation consumes or produces; its own list, or the document's.
pub(crate) fn media_types(document: &Document, said: &Value, which: &str) -> Vec<String> {
    let own = said.get(which).cloned().or_else(|| document.value_at(&[which]));
    let own = own.as_ref().and_then(Value::as_array).into_iter().flatten();
    own.filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

pub(crate) fn param(given: &Value) -> Option<Param> {
    let place = parse_location(given)?;
    let (style, explode) = match (given.member("collectionFormat").as_str(), place) {
        (Some("multi"), ParamLocation::Query) => (Style::Form, true),
        (Some("ssv"), ParamLocation::Query) => (Style::SpaceDelimited, false),
        (Some("pipes"), ParamLocation::Query) => (Style::PipeDelimited, false),
        (Some("tsv"), ParamLocation::Query) => (Style::TabDelimited, false),
        _ => (Style::from_name(None, place), false),
    };
    Some(Param {
        name: given.member("name").as_str()?.to_owned(),
        location: place,
        required: place == ParamLocation::Path || given.member("required") == true,
        description: text_of(given.member("description")),
        schema: schema(given),
        example: given.get("x-example").cloned(),
        style,
        explode,
        allow_reserved: false,
        is_json: false,
    })
}

/// The parameter in `body`, or those of a form as one object.
pub(crate) fn body(given: &[Value], consumes: &[String]) -> Option<Body> {
    if let Some(body) = given.iter().find(|given| given.member("in") == "body") {
        let kinds = if consumes.is_empty() { vec!["application/json".to_owned()] } else { consumes.to_vec() };
        return Some(Body {
            required: body.member("required") == true,
            description: text_of(body.member("description")),
            media: kinds
                .into_iter()
                .map(|kind| bare_media_type(kind, body.member("schema").clone()))
                .collect(),
        });
    }
    let fields: Vec<&Value> = given.iter().filter(|given| given.member("in") == "formData").collect();
    if fields.is_empty() {
        return None;
    }
    let has_file = fields.iter().any(|field| field.member("type") == "file");
    let forms = consumes.iter().filter(|kind| [FORM_URLENCODED, MULTIPART_FORM].contains(&kind.as_str()));
    let mut kinds: Vec<String> = forms.filter(|kind| !has_file || *kind == MULTIPART_FORM).cloned().collect();
    if kinds.is_empty() {
        kinds.push(if has_file { MULTIPART_FORM } else { FORM_URLENCODED }.to_owned());
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
    let media = kinds.into_iter().map(|kind| bare_media_type(kind, form.clone())).collect();
    Some(Body { required: needed, description: String::new(), media })
}

pub(crate) fn media(answer: &Value, produces: &[String]) -> Vec<MediaType> {
    let Some(schema) = answer.get("schema") else { return Vec::new() };
    let json = vec!["application/json".to_owned()];
    let kinds = if produces.is_empty() { &json } else { produces };
    kinds.iter().map(|kind| bare_media_type(kind.clone(), schema.clone())).collect()
}

fn bare_media_type(kind: String, schema: Value) -> MediaType {
    MediaType { content_type: kind, schema, example: None, encoding: Value::Null }
}

/// The schema among the parameter's own members.
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
