//! What sort of page it is, as far as the page says so.

use super::measure::Measure;
use super::meta::Meta;
use super::names;
use super::tree::Tree;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use url::Url;

/// What sort of page it is; decides what counts as its content.
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

/// How the text of a page lies.
pub struct Shape {
    /// Share of its prose in paragraphs side by side.
    pub running: f64,
    /// Characters of its prose outside cards.
    pub rest: usize,
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

pub fn kind(tree: &Tree, meta: &Meta, url: &Url, body: &Measure, shape: &Shape) -> PageType {
    let host: Vec<&str> = url.host_str().unwrap_or("").split('.').collect();
    let path = format!("{}/", url.path().to_ascii_lowercase().trim_end_matches('/'));
    let on =
        |paths: &[&str]| paths.iter().any(|part| path.contains(&format!("{}/", part.trim_end_matches('/'))));
    let at = |hosts: &[&str]| host.iter().any(|part| hosts.contains(part));
    let says = |kinds: &[&str]| meta.kinds.iter().any(|kind| kinds.contains(&kind.as_str()));
    let generator = meta.generator.to_ascii_lowercase();
    let prose = body.prose as f64 / body.chars.max(1) as f64;
    if says(&["discussionforumposting", "qapage"])
        || ["discourse", "xenforo", "vbulletin", "phpbb", "flarum", "invision"]
            .iter()
            .any(|name| generator.contains(name))
    {
        return PageType::Forum;
    }
    if (at(FORUM_HOSTS) || on(FORUM_PATHS)) && posts(tree) >= 2 {
        return PageType::Forum;
    }
    if says(&["product", "productgroup", "individualproduct"]) && meta.products < 4 {
        return PageType::Product;
    }
    if meta.og_type.contains("product") && !meta.og_type.contains("group") {
        return PageType::Product;
    }
    if says(&["techarticle", "apireference"])
        || DOC_GENERATORS.iter().any(|name| generator.contains(name))
        || at(DOC_HOSTS)
        || on(DOC_PATHS)
    {
        return PageType::Documentation;
    }
    let written = meta.dated
        || says(&[
            "article",
            "newsarticle",
            "blogposting",
            "reportagenewsarticle",
            "recipe",
            "socialmediaposting",
        ]);
    if written && !says(&["collectionpage", "itemlist"]) && shape.rest > 250 {
        return PageType::Article;
    }
    if says(&["collectionpage", "itemlist", "offercatalog", "searchresultspage"]) || meta.products >= 4 {
        let shop = meta.products > 0 || on(COLLECTION_PATHS) || on(PRODUCT_PATHS);
        return if shop { PageType::Collection } else { PageType::Listing };
    }
    if on(PRODUCT_PATHS) && !path.ends_with("/products/") {
        return PageType::Product;
    }
    if on(COLLECTION_PATHS) && prose < 0.5 {
        return PageType::Collection;
    }
    if meta.og_type == "article" && shape.rest > 400 && shape.running > 0.1 {
        return PageType::Article;
    }
    if on(LISTING_PATHS) && prose < 0.35 {
        return PageType::Listing;
    }
    if on(SERVICE_PATHS) || path == "/" {
        return PageType::Service;
    }
    // Paragraphs one after the other.
    if prose > 0.45 && shape.running > 0.5 && shape.rest > 250 {
        return PageType::Article;
    }
    if body.density() > 0.55 { PageType::Listing } else { PageType::Other }
}

/// Parts that are named as posts are.
fn posts(tree: &Tree) -> usize {
    let named = tree.elements().filter(|(_, element)| {
        element.named(&names::POSTS) && element.is(&["article", "div", "li", "section", "table", "tr"])
    });
    named.count()
}
