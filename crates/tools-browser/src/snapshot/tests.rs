use super::tree_fixture::{document, node, tree};
use super::*;
use std::collections::HashSet;
use std::fmt::Write as _;

fn render_text(tree: &PageTree, refs: &mut Refs, budget: Option<usize>) -> String {
    render(tree, RenderOptions { budget, part: None, from: 0 }, refs, &document()).text
}

fn render_full(outline: &str) -> String {
    render_text(&tree(outline), &mut Refs::default(), None)
}

#[test]
fn wrappers_go_and_texts_become_one() {
    let page = render_full(
        r#"
generic
  generic
    paragraph
      StaticText "Hello"
      strong
        StaticText "wide"
        InlineTextBox "wide"
      StaticText "world"
      StaticText "."
    none ignored
      button "Save"
        StaticText "Save""#,
    );
    assert_eq!(page, "- Hello wide world.\n- button \"Save\" [ref=e1]");
}

#[test]
fn headings_landmarks_tables_and_forms_are_legible() {
    let page = render_full(
        r#"
navigation "Main"
  list
    listitem
      link "Home" url=http://a/
        StaticText "Home"
    listitem
      link "News" url=http://a/news
main
  heading "Title" level=2
    link "Title" url=http://a/t
      StaticText "Title"
  form "Order"
    LabelText
      StaticText "Name"
    textbox "Name" value=Ada required focusable
    combobox "Country" value=Norway
      MenuListPopup
        option "Norway"
        option "Sweden"
    checkbox "I agree" checked="true"
  table "Prices"
    row "a b"
      columnheader "Item"
        StaticText "Item"
      columnheader "Price"
        StaticText "Price"
    row "x"
      cell "Tea"
        StaticText "Tea"
      cell ""
        StaticText "3"
        button "Buy""#,
    );
    let expected = r#"- navigation "Main"
  - list
    - link "Home" [ref=e1]
    - link "News" [ref=e2]
- main
  - h2 link "Title" [ref=e3]
  - form "Order"
    - textbox "Name" [ref=e4] (value: "Ada", required)
    - combobox "Country" [ref=e5] (value: "Norway", options: Norway; Sweden)
    - checkbox "I agree" [ref=e6] (checked)
  - table "Prices"
    - header: Item | Price
    - row: Tea | 3 button "Buy" [ref=e7]"#;
    assert_eq!(page, expected, "{page}");
}

#[test]
fn an_element_that_only_listens_can_be_clicked() {
    let page = render_full("generic clickable\n  StaticText \"Open\"\ngeneric clickable\n  button \"In\"");
    assert_eq!(page, "- clickable \"Open\" [ref=e1]\n- button \"In\" [ref=e2]");
}

#[test]
fn a_heading_needs_its_text_only_once() {
    assert_eq!(render_full("heading \"One\" level=1\n  StaticText \"One\""), "- h1 \"One\"");
}

/// A list with this many entries, some of which are in the viewport.
fn long_list(entries: usize, in_view: std::ops::Range<usize>) -> PageTree {
    let mut outline = String::from("main\n  list\n");
    for entry in 0..entries {
        let see = if in_view.contains(&entry) { " shown" } else { "" };
        let url = format!("url=http://a/{entry}{see}");
        writeln!(
            outline,
            "    listitem\n      link \"Story number {entry}\" {url}\n      StaticText \"by someone\"{see}"
        )
        .unwrap();
    }
    tree(&outline)
}

#[test]
fn a_long_list_is_folded_with_a_count_and_all_of_it_can_be_asked_for() {
    let tree = long_list(200, 0..8);
    let mut refs = Refs::default();
    let page = render_text(&tree, &mut refs, Some(400));
    assert!(tokens(&page) <= 400, "{page}");
    for entry in 0..8 {
        assert!(page.contains(&format!("Story number {entry}\" [ref=")), "{page}");
    }
    let fold = page.lines().find(|line| line.contains('…')).unwrap();
    assert!(fold.contains("more items: part=e"), "{fold}");
    // Follow the folds to the end.
    let mut seen: HashSet<String> = page.lines().filter_map(story).collect();
    let mut next = parse_fold(fold);
    for _ in 0..100 {
        let Some((part, from)) = next else { break };
        let part = tree.find(&refs.find(&part).unwrap().node.clone()).unwrap();
        let more = render(
            &tree,
            RenderOptions { budget: Some(400), part: Some(part), from },
            &mut refs,
            &document(),
        );
        seen.extend(more.text.lines().filter_map(story));
        next = more.text.lines().find(|line| line.contains('…')).and_then(parse_fold);
    }
    assert_eq!(seen.len(), 200);
}

fn story(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("Story number ")?;
    Some(rest.split('"').next().unwrap().to_owned())
}

fn parse_fold(fold: &str) -> Option<(String, usize)> {
    let part = fold.split_once("part=")?.1.split_whitespace().next()?.to_owned();
    Some((part, fold.split_once("from=")?.1.trim().parse().ok()?))
}

#[test]
fn what_the_viewport_shows_has_a_ref_whatever_the_budget() {
    let tree = long_list(500, 300..360);
    for budget in [100, 400, 1_000] {
        let page = render_text(&tree, &mut Refs::default(), Some(budget));
        let seen: HashSet<String> = page.lines().filter_map(story).collect();
        for entry in 300..360 {
            assert!(seen.contains(&entry.to_string()), "{entry} with {budget}: {page}");
        }
    }
}

#[test]
fn full_leaves_nothing_out() {
    let page = render_text(&long_list(500, 0..10), &mut Refs::default(), None);
    assert_eq!(page.lines().filter_map(story).count(), 500);
    assert!(!page.contains('…'));
}

#[test]
fn a_long_text_is_cut_and_its_ref_gives_the_rest() {
    let long = "word ".repeat(2_000);
    let tree = tree(&format!("main\n  paragraph\n    StaticText \"{long}\" shown\n    link \"x\" shown"));
    let mut refs = Refs::default();
    let page =
        render(&tree, RenderOptions { budget: Some(200), part: None, from: 0 }, &mut refs, &document());
    assert!(tokens(&page.text) <= 200 && page.truncated, "{}", page.text);
    let name = page.text.split_once("… [ref=").unwrap().1.split(']').next().unwrap();
    let node = refs.find(name).unwrap().node.clone();
    let part = tree.find(&node).unwrap();
    let rest =
        render(&tree, RenderOptions { budget: Some(200), part: Some(part), from: 0 }, &mut refs, &document());
    assert!(rest.text.len() >= long.trim().len());
}

#[test]
fn short_elements_share_a_line_and_marks_between_them_go() {
    let mut outline = String::from("navigation \"Main\"\n");
    for at in 1..=6 {
        writeln!(outline, "  link \"Page {at}\" shown\n  StaticText \"|\" shown").unwrap();
    }
    outline.push_str("  heading \"Done\" level=2 shown\n  StaticText \"✓\" shown\n");
    let page = render_text(&tree(&outline), &mut Refs::default(), Some(500));
    let expected = "- navigation \"Main\"\n  - link \"Page 1\" [ref=e1], link \"Page 2\" [ref=e2], link \"Page 3\" [ref=e3], link \"Page 4\" [ref=e4]\n  - link \"Page 5\" [ref=e5], link \"Page 6\" [ref=e6]\n  - h2 \"Done\"\n  - ✓";
    assert_eq!(page, expected);
    let full = render_full(&outline);
    assert_eq!(full.lines().filter(|line| line.contains("[ref=")).count(), 6, "{full}");
}

#[test]
fn a_link_that_says_nothing_is_told_by_its_address() {
    for (outline, wanted) in [
        ("link \"\" url=http://a/vote?id=1\n  generic", "- link [ref=e1] (to /vote?id=1)"),
        ("link \"\" url=http://a/", "- link [ref=e1] (to http://a/)"),
        ("button \"\"\n  generic ignored", "- button [ref=e1]"),
    ] {
        assert_eq!(render_full(outline), wanted);
    }
}

#[test]
fn a_title_that_repeats_the_name_is_left_out() {
    for (name, title, kept) in [
        ("Small steps (", "Small steps (#12)", false),
        ("Small steps", "steps", false),
        ("edit", "Edit section: History", true),
        ("Edit", "Edit the section about History", true),
        ("A long name that…", "A long name that the page cuts", true),
    ] {
        assert_eq!(!super::page_tree::is_redundant(title, name), kept, "{name} {title}");
    }
}

#[test]
fn refs_stay_with_their_elements() {
    let mut refs = Refs::default();
    let before = render_text(&tree("button \"A\" #1\nbutton \"B\" #2"), &mut refs, Some(500));
    assert_eq!(before, "- button \"A\" [ref=e1], button \"B\" [ref=e2]");
    let after =
        render_text(&tree("button \"New\" #9\nbutton \"B\" #2\nbutton \"A\" #1"), &mut refs, Some(500));
    assert_eq!(after, "- button \"New\" [ref=e3], button \"B\" [ref=e2], button \"A\" [ref=e1]");
    // The same numbers in another document are other elements.
    let other = tree("button \"A\" #1");
    let page =
        render(&other, RenderOptions { budget: None, part: None, from: 0 }, &mut refs, &"tab/other".into());
    assert_eq!(page.text, "- button \"A\" [ref=e4]");
    assert_eq!(refs.find("[ref=e2]").unwrap().name, "B");
    assert!(refs.find("e99").is_none() && refs.find("e0").is_none() && refs.find("x1").is_none());
}

#[test]
fn only_what_changed_is_told() {
    let (mut refs, document) = (Refs::default(), document());
    let old = tree(
        "heading \"Cart\" level=1 #1\ntextbox \"Amount\" value=1 #2\nbutton \"Pay\" #3\nlink \"Help\" #4\nlink \"Home\" #7",
    );
    render_text(&old, &mut refs, Some(500));
    let before = flatten(&old, &document);
    let new = tree(
        "heading \"Cart\" level=1 #1\ntextbox \"Amount\" value=2 focused #2\nalert \"\" #5\n  StaticText \"Saved\" #6\nbutton \"Pay\" #8\nlink \"Home\" focused #7",
    );
    let diff = changes(&before, &new, &mut refs, &document, 400);
    let expected = "~ textbox \"Amount\" [ref=e1] (value: \"2\", focused)\n+ alert\n+ Saved\n~ button \"Pay\" [ref=e5] (was e2)\n- link \"Help\" [e3]";
    assert_eq!(diff.text, expected);
    assert!(!diff.is_other_page && !diff.truncated);
    let same = changes(&flatten(&new, &document), &new, &mut refs, &document, 400);
    assert_eq!(same.text, "");
}

#[test]
fn many_changes_are_bounded_and_another_page_is_known_as_such() {
    let (mut refs, document) = (Refs::default(), document());
    let old = long_list(50, 0..10);
    let outline: String = (0..300).map(|at| format!("button \"New {at}\" #{}\n", 10_000 + at)).collect();
    let diff = changes(&flatten(&old, &document), &tree(&outline), &mut refs, &document, 100);
    assert!(diff.truncated && diff.is_other_page);
    assert!(tokens(&diff.text) < 150, "{}", diff.text);
    assert!(diff.text.contains("more changes"));
}

#[test]
fn the_nearest_element_has_the_role_and_a_like_name() {
    let page = tree("link \"Save draft\" #1\nbutton \"Save changes\" #2\nbutton \"Cancel\" #3");
    let near = closest_items(&page, "button", "Save change", 1);
    assert_eq!(near[0].item.node, Some(node(2)));
    assert!(closest_items(&page, "button", "Zebra", 1).is_empty());
}

#[test]
fn elements_are_found_by_text_and_role() {
    let page = tree("heading \"Sign in\" level=1 #1\nbutton \"Sign in\" #2\nlink \"Sign in with a key\" #3");
    let ids = |text, role| -> Vec<i64> {
        find_items(&page, text, role).iter().map(|near| near.item.node.as_ref().unwrap().id).collect()
    };
    assert_eq!(ids(Some("sign in"), None), [2, 1, 3]);
    assert_eq!(ids(Some("sign in"), Some("link")), [3]);
    assert_eq!(ids(None, Some("heading")), [1]);
    assert!(ids(Some("sign out"), None).is_empty());
}

#[test]
fn text_becomes_markdown_without_what_stands_around_it() {
    let page = tree(
        r#"
banner
  link "Logo" url=http://a/
  link "Menu" url=http://a/m
main
  heading "Title" level=1
    StaticText "Title"
  paragraph
    StaticText "See"
    link "this" url=http://a/this
    StaticText "."
  list
    listitem
      StaticText "one"
    listitem
      link "two" url=http://a/two
  table
    row
      columnheader "A"
      columnheader "B"
    row
      cell "1"
      cell "2""#,
    );
    let text = markdown(&page, true);
    let expected = "# Title\n\nSee [this](http://a/this).\n\n- one\n- [two](http://a/two)\n\n| A | B |\n| --- | --- |\n| 1 | 2 |";
    assert_eq!(text, expected);
    assert!(markdown(&page, false).starts_with("[Logo](http://a/)"));
    let links: Vec<String> = links(&page, true).into_iter().map(|link| link.url).collect();
    assert_eq!(links, ["http://a/this", "http://a/two"]);
    assert!(!plain_text(&page, true).contains("http"));
}

#[test]
fn a_page_nested_without_end_is_read_as_far_as_it_goes() {
    let mut outline = String::from("button \"Top\"\n");
    for depth in 0..2_000 {
        writeln!(outline, "{}generic", " ".repeat(depth * 2)).unwrap();
    }
    assert_eq!(render_full(&outline), "- button \"Top\" [ref=e1]");
}

#[test]
fn hidden_characters_of_a_page_do_not_reach_the_model() {
    let page = render_full("button \"Pay\u{202e}\u{e0041} now\u{200b}\"");
    assert_eq!(page, "- button \"Pay now\" [ref=e1]");
}
