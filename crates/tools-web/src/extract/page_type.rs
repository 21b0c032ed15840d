//! Page type detection.

use super::class_names;
use super::flat_dom::FlatDom;
use super::measure::TextMeasure;
use super::page_metadata::PageMetadata;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// Type of the page; decides what counts as its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageType {
    Article,
    Documentation,
    Forum,
    Listing,
    Product,
    Collection,
    Service,
    Other,
}

impl PageType {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::Documentation => "documentation",
            Self::Forum => "forum",
            Self::Listing => "listing",
            Self::Product => "product",
            Self::Collection => "collection",
            Self::Service => "service",
            Self::Other => "other",
        }
    }
}

/// Distribution of the page's text.
pub struct PageShape {
    /// Share of the prose in sibling paragraphs.
    pub paragraph_share: f64,
    /// Characters of prose outside of cards.
    pub prose_outside_cards: usize,
}

const FORUM_PATHS: &[&str] = &[
    "/t/",
    "/threads/",
    "/thread/",
    "/topic/",
    "/topics/",
    "/questions/",
    "/viewtopic",
    "/showthread",
    "/forum/",
    "/forums/",
    "/discussion/",
    "/discussions/",
    "/comments/",
    "/community/",
    "/qa/",
];
const FORUM_HOSTS: &[&str] = &[
    "forum",
    "forums",
    "community",
    "discuss",
    "discourse",
    "reddit",
    "stackexchange",
    "stackoverflow",
    "answers",
];
const DOC_HOSTS: &[&str] = &[
    "docs",
    "doc",
    "developer",
    "developers",
    "devdocs",
    "readthedocs",
    "learn",
    "help",
    "support",
    "wiki",
    "man7",
];
const DOC_PATHS: &[&str] =
    &["/docs/", "/doc/", "/documentation/", "/reference/", "/manual/", "/guide/", "/api/", "/man-pages/"];
const DOC_GENERATORS: &[&str] = &[
    "sphinx",
    "mkdocs",
    "docusaurus",
    "hugo docs",
    "gitbook",
    "mdbook",
    "vuepress",
    "doxygen",
    "javadoc",
    "antora",
];
const PRODUCT_PATHS: &[&str] = &["/product/", "/products/", "/dp/", "/p/", "/item/", "/itm/", "/pd/"];
const COLLECTION_PATHS: &[&str] =
    &["/collections/", "/collection/", "/shop/", "/c/", "/category/", "/categories/", "/store/"];
const LISTING_PATHS: &[&str] = &[
    "/tag/", "/tags/", "/topics/", "/topic/", "/author/", "/search", "/archive", "/news/", "/blog/", "/jobs",
];
const SERVICE_PATHS: &[&str] =
    &["/services/", "/service/", "/solutions/", "/features/", "/pricing", "/about", "/locations/"];

pub fn classify(
    tree: &FlatDom,
    meta: &PageMetadata,
    url: &Url,
    body: &TextMeasure,
    shape: &PageShape,
) -> PageType {
    let host: Vec<&str> = url.host_str().unwrap_or("").split('.').collect();
    let path = format!("{}/", url.path().to_ascii_lowercase().trim_end_matches('/'));
    let path_has =
        |paths: &[&str]| paths.iter().any(|part| path.contains(&format!("{}/", part.trim_end_matches('/'))));
    let host_has = |hosts: &[&str]| host.iter().any(|part| hosts.contains(part));
    let has_schema_type =
        |kinds: &[&str]| meta.schema_types.iter().any(|kind| kinds.contains(&kind.as_str()));
    let generator = meta.generator.to_ascii_lowercase();
    let prose = body.prose as f64 / body.chars.max(1) as f64;
    if has_schema_type(&["discussionforumposting", "qapage"])
        || ["discourse", "xenforo", "vbulletin", "phpbb", "flarum", "invision"]
            .iter()
            .any(|name| generator.contains(name))
    {
        return PageType::Forum;
    }
    if (host_has(FORUM_HOSTS) || path_has(FORUM_PATHS)) && count_posts(tree) >= 2 {
        return PageType::Forum;
    }
    if has_schema_type(&["product", "productgroup", "individualproduct"]) && meta.products < 4 {
        return PageType::Product;
    }
    if meta.og_type.contains("product") && !meta.og_type.contains("group") {
        return PageType::Product;
    }
    if has_schema_type(&["techarticle", "apireference"])
        || DOC_GENERATORS.iter().any(|name| generator.contains(name))
        || host_has(DOC_HOSTS)
        || path_has(DOC_PATHS)
    {
        return PageType::Documentation;
    }
    let is_article = meta.has_publish_date
        || has_schema_type(&[
            "article",
            "newsarticle",
            "blogposting",
            "reportagenewsarticle",
            "recipe",
            "socialmediaposting",
        ]);
    if is_article && !has_schema_type(&["collectionpage", "itemlist"]) && shape.prose_outside_cards > 250 {
        return PageType::Article;
    }
    if has_schema_type(&["collectionpage", "itemlist", "offercatalog", "searchresultspage"])
        || meta.products >= 4
    {
        let shop = meta.products > 0 || path_has(COLLECTION_PATHS) || path_has(PRODUCT_PATHS);
        return if shop { PageType::Collection } else { PageType::Listing };
    }
    if path_has(PRODUCT_PATHS) && !path.ends_with("/products/") {
        return PageType::Product;
    }
    if path_has(COLLECTION_PATHS) && prose < 0.5 {
        return PageType::Collection;
    }
    if meta.og_type == "article" && shape.prose_outside_cards > 400 && shape.paragraph_share > 0.1 {
        return PageType::Article;
    }
    if path_has(LISTING_PATHS) && prose < 0.35 {
        return PageType::Listing;
    }
    if path_has(SERVICE_PATHS) || path == "/" {
        return PageType::Service;
    }
    // Consecutive paragraphs.
    if prose > 0.45 && shape.paragraph_share > 0.5 && shape.prose_outside_cards > 250 {
        return PageType::Article;
    }
    if body.link_density() > 0.55 { PageType::Listing } else { PageType::Other }
}

/// Counts elements with class names of posts.
fn count_posts(tree: &FlatDom) -> usize {
    let named = tree.elements().filter(|(_, element)| {
        element.has_name_in(&class_names::POSTS)
            && element.is(&["article", "div", "li", "section", "table", "tr"])
    });
    named.count()
}
