//! Accessibility trees written as outlines: role, name, then properties.

use super::{LayoutView, PageTree};
use crate::engine::{AxNode, FrameTree, Node};
use serde_json::{Value, json};
use std::sync::Arc;

pub const SESSION: &str = "s";

pub fn node(id: i64) -> Node {
    Node { session: SESSION.into(), id }
}

/// Parses lines such as `link "Home" url=/ shown`, indented by two spaces. The id of a node is `#7`, otherwise its
/// line.
pub fn tree(outline: &str) -> PageTree {
    let mut view = LayoutView::default();
    let mut nodes = vec![AxNode { id: "0".to_owned(), role: "RootWebArea".to_owned(), ..AxNode::default() }];
    let mut path: Vec<(usize, usize)> = vec![(0, 0)];
    for (number, line) in outline.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let depth = (line.len() - line.trim_start().len()) / 2 + 1;
        path.retain(|(level, _)| *level < depth);
        let mut ax = parse_line(line.trim(), &mut view, i64::try_from(number).unwrap() + 1);
        let parent = path.last().unwrap().1;
        ax.id = format!("n{number}");
        ax.parent = Some(nodes[parent].id.clone());
        nodes[parent].children.push(ax.id.clone());
        path.push((depth, nodes.len()));
        nodes.push(ax);
    }
    let frame = FrameTree {
        session: SESSION.into(),
        frame: "f".to_owned(),
        url: "http://localhost/".to_owned(),
        owner: None,
        nodes,
    };
    PageTree::from_frames(&[frame], &view)
}

fn parse_line(line: &str, view: &mut LayoutView, number: i64) -> AxNode {
    let (role, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (name, facts) = match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((name, facts)) => (name, facts),
        None => ("", rest),
    };
    let mut ax = AxNode { role: role.to_owned(), name: name.to_owned(), ..AxNode::default() };
    let mut id = number;
    let (mut shown, mut clickable) = (false, false);
    for fact in facts.split_whitespace() {
        match fact.split_once('=') {
            Some(("value", value)) => ax.value = Some(value.to_owned()),
            Some((key, value)) => {
                let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                ax.properties.push((key.to_owned(), value));
            }
            None if fact == "shown" => shown = true,
            None if fact == "clickable" => clickable = true,
            None if fact == "ignored" => ax.ignored = true,
            None if fact.starts_with('#') => id = fact[1..].parse().unwrap(),
            None => ax.properties.push((fact.to_owned(), json!(true))),
        }
    }
    ax.backend = Some(id);
    if shown {
        view.visible.insert(node(id));
    }
    if clickable {
        view.clickable.insert(node(id));
    }
    ax
}

pub fn document() -> Arc<str> {
    "tab/doc".into()
}
