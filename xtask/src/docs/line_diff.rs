//! Line diff of two texts without their common beginning and end.

const MAX_DIFF_LINES: usize = 40;

pub fn line_diff(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let shorter = old.len().min(new.len()) - head;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(|(old, new)| old == new).count();
    let removed = side('-', &old, head, tail);
    let added = side('+', &new, head, tail);
    format!("@@ line {} @@\n{removed}{added}", head + 1)
}

fn side(mark: char, lines: &[&str], head: usize, tail: usize) -> String {
    let changed = lines.get(head..lines.len() - tail).unwrap_or_default();
    let mut text: String =
        changed.iter().take(MAX_DIFF_LINES).map(|line| format!("{mark}{line}\n")).collect();
    if changed.len() > MAX_DIFF_LINES {
        text.push_str(&format!("{mark}… {} more lines\n", changed.len() - MAX_DIFF_LINES));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::line_diff;

    #[test]
    fn only_what_changed() {
        for (old, new, shown) in [
            ("a\nb\nc\n", "a\nx\nc\n", "@@ line 2 @@\n-b\n+x\n"),
            ("", "a\n", "@@ line 1 @@\n+a\n"),
            ("a\n", "", "@@ line 1 @@\n-a\n"),
            ("a\na\n", "a\na\na\n", "@@ line 3 @@\n+a\n"),
        ] {
            assert_eq!(line_diff(old, new), shown);
        }
    }
}
