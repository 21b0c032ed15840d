//! Bundles documents that consist of several files. Only if the loader allows it, because all references are untrusted
//! URLs.

use crate::{document_text, json_pointer};
use octo_toolkit::{Kind, ToolError};
use serde_json::{Map, Value};
use std::collections::HashMap;
use url::Url;

/// Maximum files of one document.
const MAX_FILES: usize = 64;

/// The document with all its references, and the number of its files.
pub struct Bundle {
    pub text: String,
    pub files: usize,
}

/// Fetches external references of the document and adds them under `x-external`.
pub async fn bundle<F, R>(text: String, source: &Url, fetch: F) -> Result<Bundle, ToolError>
where
    F: Fn(Url) -> R,
    R: Future<Output = Result<String, ToolError>>,
{
    let mut known: HashMap<String, usize> = HashMap::from([(without_fragment(source), 0)]);
    let mut waiting: Vec<Url> = vec![source.clone()];
    let mut files: Vec<Value> = Vec::new();
    let mut size = 0;
    let mut first = Some(text);
    while let Some(url) = waiting.get(files.len()).cloned() {
        let text = match first.take() {
            Some(text) => text,
            None => fetch(url.clone()).await?,
        };
        size += text.len();
        if size > document_text::MAX_DOCUMENT_BYTES {
            return Err(ToolError::new(Kind::TooLarge, "The files of the document exceed 32 MB in total."));
        }
        let mut value: Value =
            serde_json::from_str(&document_text::to_json_text(text)?).map_err(|error| {
                ToolError::invalid(format!("A file of the document is not valid JSON: {error}."))
            })?;
        rewrite(&mut value, files.len(), &url, &mut |target: Url| {
            let next = known.len();
            *known.entry(without_fragment(&target)).or_insert_with(|| {
                waiting.push(target);
                next
            })
        });
        if waiting.len() > MAX_FILES {
            return Err(ToolError::new(Kind::TooLarge, "The document refers to more than 64 files.")
                .hint("Bundle it into one file first."));
        }
        files.push(value);
    }
    let count = files.len();
    let mut files = files.into_iter();
    let mut root = files.next().unwrap_or_default();
    if let (Some(members), true) = (root.as_object_mut(), count > 1) {
        let others: Map<String, Value> =
            files.enumerate().map(|(at, file)| ((at + 1).to_string(), file)).collect();
        members.insert("x-external".to_owned(), Value::Object(others));
    }
    Ok(Bundle { text: root.to_string(), files: count })
}

fn without_fragment(url: &Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.to_string()
}

/// Rewrites references of file `at` to references into the bundled document.
fn rewrite(value: &mut Value, at: usize, base: &Url, number: &mut impl FnMut(Url) -> usize) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                *reference = rewrite_ref(reference, at, base, number);
            }
            members.values_mut().for_each(|value| rewrite(value, at, base, number));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| rewrite(value, at, base, number)),
        _ => {}
    }
}

fn rewrite_ref(reference: &str, at: usize, base: &Url, number: &mut impl FnMut(Url) -> usize) -> String {
    let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let target = if file.is_empty() {
        at
    } else {
        let Ok(url) = base.join(file) else { return reference.to_owned() };
        number(url)
    };
    match target {
        0 => format!("#{fragment}"),
        target => {
            format!("#{}{fragment}", json_pointer::join(&["x-external".to_owned(), target.to_string()]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Document, RefInliner};
    use serde_json::json;

    #[tokio::test]
    async fn files_that_refer_to_each_other_become_one_document() {
        let root = json!({"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": {
            "/pets": {"$ref": "paths/pets.json"}}, "components": {"schemas": {"Id": {"type": "integer"}}}});
        let source: Url = "https://x.example/api/root.json".parse().unwrap();
        let files = |url: Url| async move {
            Ok(match url.path() {
                "/api/paths/pets.json" => json!({"get": {"operationId": "pets", "parameters": [
                    {"name": "id", "in": "query", "schema": {"$ref": "../root.json#/components/schemas/Id"}}],
                    "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "../pet.yaml#/Pet"}}}}}}}).to_string(),
                "/api/pet.yaml" => "Pet:\n  properties:\n    mother: {$ref: '#/Pet'}\n    id: {$ref: 'root.json#/components/schemas/Id'}\n".to_owned(),
                other => return Err(ToolError::not_found(other.to_owned())),
            })
        };
        let fetched = bundle(root.to_string(), &source, files).await.unwrap();
        assert_eq!(fetched.files, 3);
        let document = Document::parse(fetched.text).unwrap();
        assert_eq!(document.operations()[0].signature, "pets(id?: Id) -> Pet");
        let operation = document.operation("/pets", "get").unwrap();
        let schema = RefInliner::new(&document, 1_000, 5).inline(&operation.responses[0].media[0].schema);
        assert_eq!(schema["properties"]["id"]["type"], "integer");
        assert_eq!(schema["properties"]["mother"]["$ref"], "#/x-external/2/Pet");
    }
}
