//! Tables: rows and cells with their spans; layout tables are rendered as blocks.

use super::{MarkdownWalker, attribute};
use dom_query::{Element, NodeRef};

const MAX_COLUMNS: usize = 200;
const MAX_CELLS: usize = 50_000;
/// A cell that spans rows is repeated in each of them if it is not longer than this.
const MAX_REPEATED_LEN: usize = 120;

/// A cell of the page.
struct Cell {
    text: String,
    columns: usize,
    rows: usize,
}

impl MarkdownWalker<'_> {
    pub(super) fn table(&mut self, node: NodeRef<'_>) {
        let parts = TableParts::collect(node);
        if self.writer.is_folded() || parts.is_layout {
            return self.block(node, 2);
        }
        let caption = parts.caption;
        let rows: Vec<Vec<Cell>> = parts.rows.iter().map(|row| self.cells(*row)).collect();
        let grid = build_grid(rows);
        let width = grid.iter().map(Vec::len).max().unwrap_or(0);
        if width == 0 || grid.iter().flatten().all(String::is_empty) {
            return;
        }
        if let Some(caption) = caption {
            self.block(caption, 2);
        }
        self.writer.end_line(2);
        for (at, row) in grid.iter().enumerate() {
            if self.writer.is_full() {
                break;
            }
            self.row(row, width);
            if at == 0 && !self.style.plain {
                self.writer.push_raw(&format!("|{}", " --- |".repeat(width)));
                self.writer.end_line(1);
            }
        }
        self.writer.end_line(2);
    }

    fn row(&mut self, row: &[String], width: usize) {
        let cells = (0..width).map(|at| row.get(at).map(String::as_str).unwrap_or_default());
        let line = if self.style.plain {
            cells.collect::<Vec<_>>().join("\t")
        } else {
            cells.fold("|".to_owned(), |line, cell| {
                line + " " + cell + if cell.is_empty() { "|" } else { " |" }
            })
        };
        self.writer.push_raw(line.trim_end());
        self.writer.end_line(1);
    }

    fn cells(&mut self, row: NodeRef<'_>) -> Vec<Cell> {
        let cells = row.element_children();
        let cells =
            cells.into_iter().filter(|cell| cell.has_name("td") || cell.has_name("th")).take(MAX_COLUMNS);
        cells
            .filter_map(|cell| Some((cell, cell.element_ref()?)))
            .map(|(cell, element)| self.cell(cell, &element))
            .collect()
    }

    fn cell(&mut self, node: NodeRef<'_>, element: &Element) -> Cell {
        let span = |name: &str, max_span: usize| {
            attribute(element, name)
                .and_then(|span| span.trim().parse::<usize>().ok())
                .unwrap_or(1)
                .clamp(1, max_span)
        };
        let part = self.writer.sub_writer(true);
        let outer = std::mem::replace(&mut self.writer, part);
        self.children(node);
        let inner = std::mem::replace(&mut self.writer, outer);
        Cell { text: inner.finish(), columns: span("colspan", MAX_COLUMNS), rows: span("rowspan", 1_000) }
    }
}

/// Grid of cells: a cell that spans columns is in the first of them, one that spans rows in each.
fn build_grid(rows: Vec<Vec<Cell>>) -> Vec<Vec<String>> {
    let mut grid: Vec<Vec<String>> = Vec::with_capacity(rows.len());
    // For every column: the number of rows that the cell above still covers, and its text.
    let mut above: Vec<(usize, String)> = Vec::new();
    let mut placed = 0;
    for row in rows {
        let mut line: Vec<String> = Vec::new();
        for cell in row {
            fill_from_above(&mut line, &mut above);
            for at in 0..cell.columns.min(MAX_COLUMNS.saturating_sub(line.len())) {
                let text = if at == 0 { cell.text.clone() } else { String::new() };
                let repeated = if text.len() <= MAX_REPEATED_LEN { text.clone() } else { String::new() };
                if above.len() <= line.len() {
                    above.resize(line.len() + 1, (0, String::new()));
                }
                if let Some(slot) = above.get_mut(line.len()) {
                    *slot = (cell.rows - 1, repeated);
                }
                line.push(text);
            }
        }
        fill_from_above(&mut line, &mut above);
        placed += line.len();
        grid.push(line);
        if placed > MAX_CELLS {
            break;
        }
    }
    let used = |line: &Vec<String>| line.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
    let width = grid.iter().map(used).max().unwrap_or(0);
    grid.iter_mut().for_each(|line| line.truncate(width));
    grid.retain(|line| line.iter().any(|cell| !cell.is_empty()));
    grid
}

fn fill_from_above(line: &mut Vec<String>, above: &mut [(usize, String)]) {
    while let Some((rows, text)) = above.get_mut(line.len()).filter(|(rows, _)| *rows > 0) {
        *rows -= 1;
        line.push(text.clone());
    }
}

/// Parts of a table.
struct TableParts<'a> {
    caption: Option<NodeRef<'a>>,
    rows: Vec<NodeRef<'a>>,
    /// Whether it is used for layout.
    is_layout: bool,
}

impl<'a> TableParts<'a> {
    fn collect(table: NodeRef<'a>) -> Self {
        let mut parts = Self { caption: None, rows: Vec::new(), is_layout: false };
        for child in table.element_children() {
            match child.node_name().as_deref() {
                Some("caption") => parts.caption = Some(child),
                Some("tr") => parts.rows.push(child),
                Some("thead" | "tbody" | "tfoot") => {
                    parts.rows.extend(child.element_children().into_iter().filter(|row| row.has_name("tr")));
                }
                _ => {}
            }
        }
        let role = table.attr("role");
        let is_presentation = matches!(role.as_deref(), Some("presentation" | "none"));
        let cells = |row: &NodeRef<'_>| row.element_children().len();
        let narrow = parts.rows.iter().all(|row| cells(row) <= 1);
        let headed = table.descendants_it().any(|inner| inner.has_name("th"));
        parts.is_layout = is_presentation || (narrow && !headed) || has_block_content(table, headed);
        parts
    }
}

/// Whether cells contain whole blocks of a page, as in layout tables.
fn has_block_content(table: NodeRef<'_>, headed: bool) -> bool {
    table.descendants_it().any(|inner| {
        inner.element_ref().is_some_and(|element| match &*element.name.local {
            "table" | "article" | "section" | "form" | "h1" | "h2" => true,
            "pre" | "blockquote" | "h3" | "ul" | "ol" => !headed,
            _ => false,
        })
    })
}
