//! Selects the element that contains the content of a page.

use super::class_names::NameSet;
use super::flat_dom::FlatDom;
use super::measure::TextMeasure;
use super::page_type::PageType;

static CONTENT_CLASS_NAMES: NameSet = NameSet::new(&[
    "article body",
    "entry content",
    "post content",
    "story body",
    "article content",
    "post body",
    "article text",
    "body copy",
    "story content",
    "content body",
    "article main",
    "post entry",
    "post text",
    "single content",
    "blog content",
    "news content",
    "richtext",
]);

pub fn select_root(tree: &FlatDom, all: &[TextMeasure], kind: PageType) -> usize {
    let body = tree.first("body").unwrap_or(0);
    let text = matches!(kind, PageType::Article | PageType::Documentation);
    if text { prose_root(tree, all, body) } else { wide_root(tree, all, body) }
}

fn wide_root(tree: &FlatDom, all: &[TextMeasure], body: usize) -> usize {
    let weigh = |at: usize| all.get(at).map_or(0, |size| size.chars);
    let whole = weigh(body);
    let main = tree
        .elements()
        .filter(|(_, element)| {
            &*element.tag == "main" || element.role() == "main" || element.attribute("id") == Some("main")
        })
        .map(|(at, _)| at)
        .max_by_key(|at| weigh(*at));
    if let Some(main) = main.filter(|at| weigh(*at) * 2 > whole) {
        return main;
    }
    let heaviest = |at: usize| {
        let children = tree.children(at).filter(|child| tree.element(*child).is_some());
        let most = children.max_by_key(|child| weigh(*child));
        most.filter(|child| whole > 0 && weigh(*child) as f64 >= 0.9 * whole as f64)
    };
    let is = |at: usize, tags: &[&str]| tree.element(at).is_some_and(|element| element.is(tags));
    let mut root = body;
    while let Some(child) = heaviest(root) {
        if !is(child, STRUCTURES) {
            root = child;
            continue;
        }
        // A table or list with all its text in one cell is layout.
        let layout = std::iter::successors(heaviest(child), |at| heaviest(*at)).find(|at| is(*at, CELLS));
        if let Some(cell) = layout {
            root = cell;
            continue;
        }
        // Text around the structure belongs to it: take the nearest ancestor with more text.
        let around = tree.ancestors(child).find(|above| *above == body || weigh(*above) > weigh(child));
        return around.unwrap_or(body);
    }
    root
}

/// Elements whose parts mean little without the whole.
const STRUCTURES: &[&str] = &["table", "ul", "ol", "dl", "pre"];
const CELLS: &[&str] = &["td", "th", "li", "dd"];

fn prose_root(tree: &FlatDom, all: &[TextMeasure], body: usize) -> usize {
    let weigh = |at: usize| all.get(at).map_or(0, |size| size.prose);
    let whole = weigh(body);
    let named = tree
        .elements()
        .filter(|(_, element)| {
            element.attribute("itemprop") == Some("articleBody") || element.has_name_in(&CONTENT_CLASS_NAMES)
        })
        .map(|(at, _)| at)
        .max_by_key(|at| weigh(*at));
    // The article that contains the page's heading.
    let headed = tree.first("h1").and_then(|at| {
        tree.ancestors(at)
            .find(|above| tree.element(*above).is_some_and(|element| &*element.tag == "article"))
    });
    let named =
        named.filter(|at| weigh(*at) as f64 > 0.5 * whole as f64).or(headed.filter(|at| weigh(*at) > 300));
    let mut root = named.unwrap_or(body);
    loop {
        let here = weigh(root);
        let mut best = (0, root);
        let mut direct = 0;
        for child in tree.children(root) {
            let Some(element) = tree.element(child) else { continue };
            if element.is(&["p", "blockquote", "pre", "ul", "ol", "dl", "table", "h2", "h3"]) {
                direct += weigh(child);
            } else if weigh(child) > best.0 {
                best = (weigh(child), child);
            }
        }
        if here == 0 || direct * 5 > here || (best.0 as f64) < 0.75 * here as f64 {
            return root;
        }
        root = best.1;
    }
}

/// Largest share of the page's prose in sibling paragraphs.
pub fn paragraph_share(tree: &FlatDom, all: &[TextMeasure]) -> f64 {
    let weigh = |at: usize| all.get(at).map_or(0, |size: &TextMeasure| size.prose);
    let beneath = |at: usize| {
        let paragraphs = tree.children(at).filter(|child| {
            tree.element(*child).is_some_and(|element| element.is(&["p", "blockquote", "ul", "ol", "pre"]))
        });
        paragraphs.map(weigh).sum::<usize>()
    };
    let most = tree.elements().map(|(at, _)| beneath(at)).max().unwrap_or(0);
    most as f64 / weigh(0).max(1) as f64
}
