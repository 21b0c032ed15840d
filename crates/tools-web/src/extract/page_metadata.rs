//! Metadata of a page from its head, its JSON-LD and its body.

use super::class_names;
use super::flat_dom::FlatDom;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Default)]
pub struct PageMetadata {
    pub title: String,
    pub byline: Option<String>,
    pub published: Option<String>,
    pub excerpt: Option<String>,
    pub lang: Option<String>,
    pub og_type: String,
    pub generator: String,
    /// Canonical URL.
    pub canonical: Option<String>,
    /// `@type`s of the JSON-LD, in lower case.
    pub schema_types: Vec<String>,
    pub products: usize,
    /// Whether the head has a publication date, as articles do.
    pub has_publish_date: bool,
    /// Text of the article, if the page repeats it as data.
    pub body: Option<String>,
}

/// Maximum number of JSON-LD nodes that are visited.
const MAX_JSON_LD_NODES: usize = 20_000;

pub fn read_metadata(tree: &FlatDom) -> PageMetadata {
    let mut heads: HashMap<&str, &str> = HashMap::new();
    let mut meta = PageMetadata::default();
    let mut title = None;
    for (at, element) in tree.elements() {
        match &*element.tag {
            "html" => {
                meta.lang = element.attribute("lang").map(str::to_owned).filter(|lang| !lang.is_empty())
            }
            "title" if title.is_none() => title = Some(tree.text_content(at)),
            "meta" => {
                let name = element.attribute("property").or_else(|| element.attribute("name"));
                let name = name.or_else(|| element.attribute("itemprop"));
                if let (Some(name), Some(content)) = (name, element.attribute("content"))
                    && !content.trim().is_empty()
                {
                    heads.entry(name).or_insert(content);
                }
            }
            "link" if element.attribute("rel") == Some("canonical") => {
                meta.canonical = element.attribute("href").map(str::to_owned);
            }
            _ => {}
        }
    }
    let head =
        |names: &[&str]| names.iter().find_map(|name| heads.get(name)).map(|text| text.trim().to_owned());
    meta.canonical = meta.canonical.take().or_else(|| head(&["og:url"]));
    meta.og_type = head(&["og:type"]).unwrap_or_default().to_ascii_lowercase();
    meta.generator = head(&["generator"]).unwrap_or_default();
    meta.excerpt = head(&["description", "og:description", "twitter:description"]);
    meta.byline = head(&[
        "author",
        "article:author_name",
        "parsely-author",
        "sailthru.author",
        "dc.creator",
        "twitter:data1",
    ])
    .filter(|name| !name.starts_with("http") && name.len() < 120);
    meta.has_publish_date =
        head(&["article:published_time", "parsely-pub-date", "og:published_time"]).is_some();
    meta.published = head(&[
        "article:published_time",
        "datePublished",
        "date",
        "dc.date",
        "parsely-pub-date",
        "og:published_time",
    ]);
    read_json_ld(&tree.json_ld, &mut meta);
    let h1 = tree.first("h1").map(|at| tree.text_content(at)).unwrap_or_default();
    meta.title = best_title(
        &title.unwrap_or_default(),
        &head(&["og:title", "twitter:title"]).unwrap_or_default(),
        &h1,
    );
    if meta.byline.is_none() || meta.published.is_none() {
        read_body_marks(tree, &mut meta);
    }
    meta
}

/// Returns the heading if title or og:title contains it with the site's name around it.
fn best_title(title: &str, og: &str, h1: &str) -> String {
    let (title, og, h1) = (title.trim(), og.trim(), h1.trim());
    if h1.chars().count() > 8 && (title.contains(h1) || og.contains(h1)) {
        return h1.to_owned();
    }
    let best = [og, title, h1].into_iter().find(|text| !text.is_empty()).unwrap_or("");
    best.chars().take(300).collect()
}

fn read_json_ld(data: &[String], meta: &mut PageMetadata) {
    let parsed: Vec<Value> = data.iter().filter_map(|text| serde_json::from_str(text.trim()).ok()).collect();
    let mut left: Vec<&Value> = parsed.iter().rev().collect();
    let mut seen = 0;
    while let Some(value) = left.pop() {
        seen += 1;
        if seen > MAX_JSON_LD_NODES {
            return;
        }
        match value {
            Value::Array(values) => left.extend(values.iter().rev()),
            Value::Object(members) => {
                let kinds: Vec<String> = match members.get("@type") {
                    Some(Value::String(kind)) => vec![kind.to_ascii_lowercase()],
                    Some(Value::Array(kinds)) => {
                        kinds.iter().filter_map(Value::as_str).map(str::to_ascii_lowercase).collect()
                    }
                    _ => Vec::new(),
                };
                if kinds.iter().any(|kind| kind == "product") {
                    meta.products += 1;
                }
                let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::trim);
                if let Some(body) = text("articleBody").filter(|body| body.len() > 200) {
                    meta.body.get_or_insert_with(|| body.to_owned());
                }
                if kinds.iter().any(|kind| kind.ends_with("article") || kind.ends_with("posting")) {
                    if let Some(date) = text("datePublished") {
                        meta.published.get_or_insert_with(|| date.to_owned());
                    }
                    if let Some(name) = members.get("author").and_then(author) {
                        meta.byline.get_or_insert(name);
                    }
                }
                meta.schema_types.extend(kinds);
                left.extend(members.iter().rev().map(|(_, value)| value).filter(|value| !value.is_string()));
            }
            _ => {}
        }
    }
}

fn author(value: &Value) -> Option<String> {
    match value {
        Value::String(name) => Some(name.clone()),
        Value::Object(members) => members.get("name").and_then(Value::as_str).map(str::to_owned),
        Value::Array(all) => {
            let names: Vec<&str> =
                all.iter().filter_map(|one| one.get("name").or(Some(one))?.as_str()).take(8).collect();
            (!names.is_empty()).then(|| names.join(", "))
        }
        _ => None,
    }
    .map(|name| name.trim().to_owned())
    .filter(|name| !name.is_empty() && !name.starts_with("http") && name.len() < 200)
}

/// Reads byline and date from the body.
fn read_body_marks(tree: &FlatDom, meta: &mut PageMetadata) {
    for (at, element) in tree.elements() {
        let prop = element.attribute("itemprop").unwrap_or("");
        if meta.byline.is_none()
            && (prop == "author"
                || element.attribute("rel") == Some("author")
                || element.has_name_in(&class_names::BYLINES))
        {
            let name = tree.text_content(at);
            let name = name
                .strip_prefix("By ")
                .or_else(|| name.strip_prefix("by "))
                .unwrap_or(&name)
                .trim()
                .to_owned();
            if !name.is_empty() && name.chars().count() < 100 {
                meta.byline = Some(name);
            }
        }
        if meta.published.is_none() && (prop == "datePublished" || &*element.tag == "time") {
            let date = element.attribute("datetime").or_else(|| element.attribute("content"));
            meta.published =
                date.map(str::trim).filter(|date| date.len() >= 8 && date.len() < 60).map(str::to_owned);
        }
    }
}
