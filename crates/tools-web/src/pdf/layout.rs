//! Converts positioned glyphs to lines of text. A PDF has no words, lines or paragraphs, only glyphs at positions.

/// A glyph on the page, in points; y grows downwards.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacedGlyph {
    pub text: String,
    pub x: f64,
    pub y: f64,
    /// Advance width along its line.
    pub advance: f64,
    /// Font size.
    pub size: f64,
    /// Unit vector of its line's direction.
    pub along: (f64, f64),
}

/// Gap that counts as a space, relative to the font size.
const MIN_WORD_GAP: f64 = 0.16;
/// Distance that counts as another line, relative to the font size; subscripts and superscripts are closer.
const MIN_LINE_STEP: f64 = 0.55;
/// Line distance that starts a paragraph, relative to the font size.
const MIN_PARAGRAPH_STEP: f64 = 1.75;
/// Shift below which a repeated glyph is fake bold, relative to the font size.
const MAX_FAKE_BOLD_SHIFT: f64 = 0.12;

/// Text of a page, written glyph by glyph in file order, which nearly always is reading order.
#[derive(Default)]
pub struct PageText {
    text: String,
    last: Option<PlacedGlyph>,
    max_bytes: usize,
}

impl PageText {
    /// Creates a text of about this many bytes at most.
    pub fn new(max_bytes: usize) -> Self {
        Self { max_bytes, ..Self::default() }
    }

    pub fn is_full(&self) -> bool {
        self.text.len() >= self.max_bytes
    }

    pub fn push_glyph(&mut self, glyph: PlacedGlyph) {
        let sane = [glyph.x, glyph.y, glyph.advance, glyph.size].iter().all(|number| number.is_finite());
        if !sane || self.is_full() {
            return;
        }
        if let Some(last) = &self.last {
            if last.text == glyph.text && distance(last, &glyph) < MAX_FAKE_BOLD_SHIFT * glyph.size {
                return;
            }
            self.text.push_str(separator(last, &glyph));
        }
        push_expanded(&glyph.text, &mut self.text);
        self.last = Some(glyph);
    }

    /// Returns the text with normalized lines.
    pub fn finish(self) -> String {
        let mut out = String::with_capacity(self.text.len());
        let mut blank = true;
        for line in self.text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match (words.is_empty(), blank) {
                (true, true) => {}
                (true, false) => out.push('\n'),
                (false, _) => {
                    out.push_str(&words.join(" "));
                    out.push('\n');
                }
            }
            blank = words.is_empty();
        }
        out.truncate(out.trim_end().len());
        out
    }
}

fn distance(one: &PlacedGlyph, other: &PlacedGlyph) -> f64 {
    (one.x - other.x).hypot(one.y - other.y)
}

/// Separator between two consecutive glyphs.
fn separator(last: &PlacedGlyph, next: &PlacedGlyph) -> &'static str {
    let size = last.size.max(next.size).max(f64::MIN_POSITIVE);
    let (dx, dy) = (next.x - last.x, next.y - last.y);
    let (ax, ay) = last.along;
    let gap = dx * ax + dy * ay - last.advance;
    let step = (dy * ax - dx * ay).abs();
    let turned = ax * next.along.0 + ay * next.along.1 < 0.9;
    if turned || step > MIN_PARAGRAPH_STEP * size {
        return "\n\n";
    }
    if step > MIN_LINE_STEP * size {
        return "\n";
    }
    // Back to the left on nearly the same line: another column, or a cell that was written later.
    if gap < -size && step > MIN_WORD_GAP * size {
        return "\n";
    }
    if gap > MIN_WORD_GAP * size || gap < -size { " " } else { "" }
}

/// Expands ligatures and drops characters that do not belong to text.
fn push_expanded(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '\u{fb00}' => out.push_str("ff"),
            '\u{fb01}' => out.push_str("fi"),
            '\u{fb02}' => out.push_str("fl"),
            '\u{fb03}' => out.push_str("ffi"),
            '\u{fb04}' => out.push_str("ffl"),
            '\u{fb05}' | '\u{fb06}' => out.push_str("st"),
            '\u{ad}' => out.push('-'),
            other if other.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Glyphs of 10 points, 5 wide, at these positions.
    fn page(glyphs: &[(&str, f64, f64)]) -> String {
        let mut page = PageText::new(1_000);
        for (text, x, y) in glyphs {
            let (x, y, along) = (*x, *y, (1.0, 0.0));
            page.push_glyph(PlacedGlyph { text: (*text).to_owned(), x, y, advance: 5.0, size: 10.0, along });
        }
        page.finish()
    }

    #[test]
    fn places_tell_words_lines_and_paragraphs() {
        for (what, glyphs, text) in [
            ("letters of a word", &[("a", 0.0, 0.0), ("b", 5.0, 0.0), ("c", 9.5, 0.0)][..], "abc"),
            ("a gap", &[("a", 0.0, 0.0), ("b", 7.5, 0.0)], "a b"),
            ("a gap beside a space", &[("a", 0.0, 0.0), (" ", 5.0, 0.0), ("b", 13.0, 0.0)], "a b"),
            ("a power", &[("x", 0.0, 10.0), ("2", 5.0, 6.0), ("y", 10.0, 10.0)], "x2y"),
            ("the next line", &[("a", 50.0, 0.0), ("b", 0.0, 12.0)], "a\nb"),
            ("a paragraph", &[("a", 50.0, 0.0), ("b", 0.0, 30.0)], "a\n\nb"),
            ("drawn twice to be bold", &[("a", 0.0, 0.0), ("a", 0.3, 0.0), ("b", 5.3, 0.0)], "ab"),
            ("twice the same letter", &[("l", 0.0, 0.0), ("l", 5.0, 0.0)], "ll"),
            ("back on the same line", &[("b", 50.0, 0.0), ("a", 0.0, 0.0)], "b a"),
            ("joined letters", &[("o", 0.0, 0.0), ("\u{fb03}", 5.0, 0.0)], "offi"),
            ("no number", &[("a", f64::NAN, 0.0), ("b", 0.0, 0.0)], "b"),
        ] {
            assert_eq!(page(glyphs), text, "{what}");
        }
    }

    #[test]
    fn text_that_runs_upwards_is_text() {
        let mut page = PageText::new(1_000);
        for (at, letter) in ["u", "p"].into_iter().enumerate() {
            let y = 100.0 - 5.0 * at as f64;
            let along = (0.0, -1.0);
            page.push_glyph(PlacedGlyph {
                text: letter.to_owned(),
                x: 9.0,
                y,
                advance: 5.0,
                size: 10.0,
                along,
            });
        }
        assert_eq!(page.finish(), "up");
    }

    #[test]
    fn a_page_does_not_grow_for_ever() {
        let mut page = PageText::new(100);
        for at in 0..1_000 {
            let x = f64::from(at) * 5.0;
            let text = at.to_string();
            page.push_glyph(PlacedGlyph { text, x, y: 0.0, advance: 5.0, size: 10.0, along: (1.0, 0.0) });
        }
        assert!((100..120).contains(&page.finish().len()));
    }
}
