//! Layout information: which elements are in the viewport, and which are clickable.

use crate::engine::Node;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Elements of the main process; elements of other frames are visible if the element that contains the frame is.
#[derive(Debug, Default)]
pub struct LayoutView {
    pub visible: HashSet<Node>,
    pub clickable: HashSet<Node>,
    /// Elements that are draggable.
    pub draggable: HashSet<Node>,
    /// File inputs.
    pub file_inputs: HashSet<Node>,
}

/// Position of a document's top left corner in the viewport.
type FrameOrigin = (f64, f64);

impl LayoutView {
    /// Parses the result of `DOMSnapshot.captureSnapshot`.
    pub fn from_dom_snapshot(answer: &Value, session: &Arc<str>, size: (f64, f64)) -> Self {
        let mut view = Self::default();
        let mut corners: HashMap<usize, FrameOrigin> = HashMap::from([(0, (0.0, 0.0))]);
        let words = StringIndexes::find(answer);
        let documents =
            answer.get("documents").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // Parents come before the documents of their frames.
        for (index, document) in documents.iter().enumerate() {
            if let Some(&corner) = corners.get(&index) {
                view.read(document, session, size, corner, &mut corners);
                view.read_attributes(document, session, &words);
            }
        }
        view
    }

    fn read(
        &mut self,
        document: &Value,
        session: &Arc<str>,
        size: (f64, f64),
        corner: FrameOrigin,
        corners: &mut HashMap<usize, FrameOrigin>,
    ) {
        let ids = numbers(document.pointer("/nodes/backendNodeId"));
        let node = |at: usize| ids.get(at).map(|&id| Node { session: Arc::clone(session), id });
        for at in numbers(document.pointer("/nodes/isClickable/index")) {
            self.clickable.extend(usize::try_from(at).ok().and_then(node));
        }
        let frames: HashMap<i64, i64> = numbers(document.pointer("/nodes/contentDocumentIndex/index"))
            .into_iter()
            .zip(numbers(document.pointer("/nodes/contentDocumentIndex/value")))
            .collect();
        let scroll = |name: &str| document.get(name).and_then(Value::as_f64).unwrap_or_default();
        let (left, top) = (corner.0 - scroll("scrollOffsetX"), corner.1 - scroll("scrollOffsetY"));
        let places = numbers(document.pointer("/layout/nodeIndex"));
        let bounds = document.pointer("/layout/bounds").and_then(Value::as_array);
        for (at, bounds) in places.into_iter().zip(bounds.into_iter().flatten()) {
            let side = |side: usize| bounds.get(side).and_then(Value::as_f64).unwrap_or_default();
            let (x, y, width, height) = (side(0) + left, side(1) + top, side(2), side(3));
            if let Some(inner) = frames.get(&at).and_then(|&inner| usize::try_from(inner).ok()) {
                corners.insert(inner, (x, y));
            }
            let inside = x < size.0 && y < size.1 && x + width > 0.0 && y + height > 0.0;
            if inside && width >= 1.0 && height >= 1.0 {
                self.visible.extend(usize::try_from(at).ok().and_then(node));
            }
        }
    }
}

/// Indexes of the relevant words in the string table of a page.
#[derive(Default)]
struct StringIndexes {
    draggable: Option<i64>,
    true_value: Option<i64>,
    type_name: Option<i64>,
    file: Option<i64>,
    input: Option<i64>,
}

impl StringIndexes {
    fn find(answer: &Value) -> Self {
        let mut words = Self::default();
        let strings = answer.get("strings").and_then(Value::as_array).into_iter().flatten();
        for (at, string) in (0..).zip(strings) {
            let word = match string.as_str() {
                Some("draggable") => &mut words.draggable,
                Some("true") => &mut words.true_value,
                Some("type") => &mut words.type_name,
                Some("file") => &mut words.file,
                Some("INPUT") => &mut words.input,
                _ => continue,
            };
            word.get_or_insert(at);
        }
        words
    }
}

impl LayoutView {
    /// Reads the attributes of the elements.
    fn read_attributes(&mut self, document: &Value, session: &Arc<str>, words: &StringIndexes) {
        if words.draggable.is_none() && words.file.is_none() {
            return;
        }
        let ids = numbers(document.pointer("/nodes/backendNodeId"));
        let names = numbers(document.pointer("/nodes/nodeName"));
        let all = document.pointer("/nodes/attributes").and_then(Value::as_array).into_iter().flatten();
        for ((id, name), attributes) in ids.into_iter().zip(names).zip(all) {
            let pairs = numbers(Some(attributes));
            let has = |name: Option<i64>, value: Option<i64>| match (name, value) {
                (Some(name), Some(value)) => pairs.chunks(2).any(|pair| pair == [name, value]),
                _ => false,
            };
            let node = || Node { session: Arc::clone(session), id };
            if has(words.draggable, words.true_value) {
                self.draggable.insert(node());
            }
            if Some(name) == words.input && has(words.type_name, words.file) {
                self.file_inputs.insert(node());
            }
        }
    }
}

fn numbers(list: Option<&Value>) -> Vec<i64> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_viewport_shows_is_known_through_scrolling_and_frames() {
        let answer = json!({"strings": ["LI", "draggable", "true", "INPUT", "type", "file", "#document"], "documents": [
            {
                "scrollOffsetX": 0, "scrollOffsetY": 1000,
                "nodes": {
                    "backendNodeId": [1, 2, 3, 4],
                    "nodeName": [6, 0, 3, 0],
                    "attributes": [[], [1, 2], [4, 5], [4, 5]],
                    "isClickable": {"index": [2]},
                    "contentDocumentIndex": {"index": [3], "value": [1]},
                },
                "layout": {
                    "nodeIndex": [1, 2, 3],
                    "bounds": [[0, 0, 100, 50], [0, 1100, 100, 20], [0, 1500, 300, 300]],
                },
            },
            {
                "scrollOffsetX": 0, "scrollOffsetY": 0,
                "nodes": {"backendNodeId": [10, 11]},
                "layout": {"nodeIndex": [0, 1], "bounds": [[0, 0, 50, 50], [0, 250, 50, 50]]},
            },
        ]});
        let session: Arc<str> = "s".into();
        let view = LayoutView::from_dom_snapshot(&answer, &session, (1280.0, 720.0));
        let ids = |set: &HashSet<Node>| {
            let mut ids: Vec<i64> = set.iter().map(|node| node.id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(&view.visible), [3, 4, 10]);
        assert_eq!(ids(&view.clickable), [3]);
        assert_eq!((ids(&view.draggable), ids(&view.file_inputs)), (vec![2], vec![3]));
    }
}
