//! Words in class names and ids that indicate the purpose of an element.

/// Set of words or word sequences, such as `related posts`, to match against the words of a class or id.
pub struct NameSet {
    all: &'static [&'static str],
    /// Bloom filter on the first letters: rejects most words of a page immediately.
    starts: [u64; 16],
}

impl NameSet {
    pub const fn new(all: &'static [&'static str]) -> Self {
        let mut starts = [0; 16];
        let mut at = 0;
        while at < all.len() {
            #[expect(clippy::indexing_slicing, reason = "runs when it is compiled")]
            let bytes = all[at].as_bytes();
            let (place, bit) = bloom_slot(bytes);
            #[expect(clippy::indexing_slicing, reason = "a place is less than 16")]
            {
                starts[place] |= bit;
            }
            at += 1;
        }
        Self { all, starts }
    }

    /// Whether one of the names occurs. `words` has a space before and after each word.
    pub fn matches(&self, words: &str) -> bool {
        let mut from = 0;
        for word in words.split_terminator(' ') {
            let (place, bit) = bloom_slot(word.as_bytes());
            if self.starts.get(place).is_some_and(|bits| bits & bit != 0) {
                let rest = words.get(from..).unwrap_or_default();
                let begins = |name: &&str| {
                    rest.strip_prefix(*name).is_some_and(|after| after.is_empty() || after.starts_with(' '))
                };
                if self.all.iter().any(begins) {
                    return true;
                }
            }
            from += word.len() + 1;
        }
        false
    }
}

/// Slot by the first three bytes; for a shorter word the space after it counts as its end.
const fn bloom_slot(word: &[u8]) -> (usize, u64) {
    let mut sum = 0_usize;
    let mut at = 0;
    while at < 3 && at < word.len() {
        #[expect(clippy::indexing_slicing, reason = "runs up to the length")]
        let byte = word[at];
        if byte == b' ' {
            break;
        }
        sum = sum * 37 + byte as usize;
        at += 1;
    }
    ((sum >> 6) & 15, 1 << (sum & 63))
}

/// Never content, on any page.
pub static BOILERPLATE: NameSet = NameSet::new(&[
    "nav",
    "navbar",
    "navigation",
    "navi",
    "menu",
    "submenu",
    "megamenu",
    "mega menu",
    "topbar",
    "footer",
    "site footer",
    "page footer",
    "global footer",
    "breadcrumb",
    "breadcrumbs",
    "crumbs",
    "cookie",
    "cookies",
    "consent",
    "gdpr",
    "cookiebanner",
    "onetrust",
    "popup",
    "modal",
    "lightbox",
    "newsletter",
    "subscribe",
    "signup",
    "sign up",
    "social",
    "share",
    "sharing",
    "sharebar",
    "share buttons",
    "sharedaddy",
    "addthis",
    "addtoany",
    "socials",
    "advert",
    "advertisement",
    "ads",
    "ad container",
    "ad slot",
    "ad wrapper",
    "ad unit",
    "adsbygoogle",
    "dfp",
    "outbrain",
    "taboola",
    "skip link",
    "skip to content",
    "skiplink",
    "login",
    "toolbar",
    "pagination",
    "pager",
    "paging",
    "sr only",
    "visually hidden",
    "screen reader text",
    "screenreader",
    "noprint",
    "no print",
    "print only",
    "back to top",
    "language switcher",
    "lang switcher",
    "search form",
    "searchform",
    "site search",
    "mobile menu",
    "offcanvas",
    "drawer",
    "toast",
    "snackbar",
    "tooltip",
    "site header",
    "masthead",
    "global header",
    "header nav",
    "announcement bar",
    "minicart",
    "mini cart",
    "cart drawer",
    "recaptcha",
]);

/// Beside the content of articles and documentation.
pub static ARTICLE_ASIDES: NameSet = NameSet::new(&[
    "sidebar",
    "side bar",
    "rail",
    "right rail",
    "related",
    "related posts",
    "related articles",
    "recommended",
    "recommendations",
    "recirc",
    "read next",
    "more stories",
    "more from",
    "most read",
    "most popular",
    "trending",
    "popular posts",
    "latest news",
    "widget area",
    "sidebar widget",
    "promo",
    "promoted",
    "sponsored",
    "teaser",
    "teasers",
    "author bio",
    "author box",
    "about author",
    "author info",
    "bio box",
    "byline",
    "post meta",
    "entry meta",
    "article meta",
    "meta info",
    "tags",
    "tag list",
    "taglist",
    "post tags",
    "entry tags",
    "article tags",
    "topics list",
    "post nav",
    "post navigation",
    "nav links",
    "next post",
    "prev post",
    "previous post",
    "caption credit",
    "photo credit",
    "print",
    "rating",
    "ratings",
    "follow us",
    "email signup",
    "paywall",
    "subscription",
    "donate",
    "donation",
    "toc",
    "table of contents",
    "feedback",
    "helpful",
    "was this helpful",
    "edit page",
    "edit this page",
    "prev next",
    "infobox nav",
    "navbox",
    "catlinks",
    "mw editsection",
    "editsection",
    "headerlink",
    "printfooter",
    "jump to nav",
    "site sub",
    "disclaimer box",
    "utility bar",
    "story tools",
    "hatnote",
    "mbox small",
    "sistersitebox",
    "affiliate disclosure",
    "dateline",
    "timestamp",
    "publish date",
    "read time",
    "reading time",
    "article tools",
    "article footer",
]);

/// Reader comments.
pub static COMMENTS: NameSet = NameSet::new(&[
    "comments",
    "comment",
    "comment list",
    "commentlist",
    "comments area",
    "respond",
    "disqus",
    "discussion thread",
]);

/// Around the posts of a forum.
pub static FORUM_CHROME: NameSet = NameSet::new(&[
    "signature",
    "postprofile",
    "post profile",
    "user info",
    "userinfo",
    "user details",
    "author stats",
    "post controls",
    "post menu",
    "reactions",
    "reaction bar",
    "similar topics",
    "suggested topics",
    "related topics",
    "who is online",
    "online list",
    "quick reply",
    "quickreply",
    "topic map",
    "user extras",
    "message user extras",
    "post buttons",
    "jumpbox",
    "topic actions",
    "topic tools",
    "forum stats",
    "member card",
    "crawler linkback list",
    "vote cell",
    "js voting container",
    "post signature",
    "comments link",
    "post taglist",
    "user gravatar32",
    "badges",
]);

/// Beside a product.
pub static PRODUCT_ASIDES: NameSet = NameSet::new(&[
    "related",
    "related products",
    "recommended",
    "recommendations",
    "you may also like",
    "also bought",
    "also viewed",
    "recently viewed",
    "cross sell",
    "crosssell",
    "upsell",
    "up sell",
    "reviews",
    "review list",
    "customer reviews",
    "yotpo",
    "bazaarvoice",
    "questions answers",
    "gallery thumbs",
    "sticky bar",
    "sticky add",
    "size guide",
    "size chart",
    "wishlist",
    "add to cart",
    "quantity",
    "payment",
    "facets",
    "facet",
    "filters",
    "filter",
    "refine",
    "refinements",
    "sort by",
    "sorting",
    "quick view",
    "quickview",
    "quick add",
    "compare",
    "swatches",
    "blog posts",
    "instagram",
]);

/// Beside the content of any page.
pub static GENERIC_ASIDES: NameSet = NameSet::new(&[
    "sidebar",
    "side bar",
    "right rail",
    "related posts",
    "related articles",
    "related products",
    "related content",
    "recommended",
    "recommendations",
    "most read",
    "most popular",
    "trending",
    "recently viewed",
    "filters",
    "facets",
    "facet",
    "refinements",
    "sort by",
    "sponsored",
    "promoted",
    "feedback",
    "table of contents",
]);

/// Messages of a thread.
pub static POSTS: NameSet = NameSet::new(&["post", "message", "comment", "answer", "topic post", "reply"]);

/// Author names.
pub static BYLINES: NameSet = NameSet::new(&["byline", "author name"]);

/// Captions of images.
pub static CAPTIONS: NameSet = NameSet::new(&["caption", "wp caption text", "image caption"]);

/// Elements styled as headings.
pub static HEADINGS: NameSet = NameSet::new(&["title", "heading", "headline"]);

/// Line numbers beside code.
pub static LINE_NUMBERS: NameSet =
    NameSet::new(&["lineno", "linenos", "line number", "line numbers", "gutter", "linenumber"]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_words_in_a_row() {
        let names = NameSet::new(&["ad", "related posts", "menu"]);
        for (words, found) in [
            (" ad ", true),
            (" head ", false),
            (" adverb ", false),
            (" my related posts ", true),
            (" related my posts ", false),
            (" related ", false),
            (" x menu", true),
            (" x menus ", false),
            (" ", false),
            ("", false),
        ] {
            assert_eq!(names.matches(words), found, "{words:?}");
        }
    }
}
