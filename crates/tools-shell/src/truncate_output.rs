//! Truncates long output: how much of each stream is shown, without splitting characters or, if possible, lines.

use octo_toolkit::exec::Captured;
use octo_toolkit::json_len;

/// Minimum bytes shown of a stream.
const MIN_SHARE_BYTES: usize = 8;

/// The shown part of a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TruncatedStream {
    pub head: String,
    /// The end, if there is a gap before it.
    pub tail: Option<String>,
}

/// Splits a byte budget between two streams, so that neither starves the other.
pub fn split_budget(bound: usize, out: u64, err: u64) -> (usize, usize) {
    let (out, err) = (size(out), size(err));
    if out.saturating_add(err) <= bound {
        return (out, err);
    }
    let least = err.min(bound / 2);
    let first = out.min(bound - least);
    (first, err.min(bound - first))
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl TruncatedStream {
    /// Size in the reply.
    pub fn json_len(&self) -> usize {
        json_len(&self.head) + self.tail.as_deref().map_or(0, json_len)
    }
}

/// At most `share` bytes of a stream, and no more than fit `room` bytes in the reply.
pub fn truncate_to_reply(captured: &Captured, share: usize, room: usize) -> TruncatedStream {
    let mut share = share;
    loop {
        let shown = truncate(captured, share);
        let size = shown.json_len();
        if size <= room || share <= MIN_SHARE_BYTES {
            return shown;
        }
        // Proportional to what is shown, which may be less than the share.
        share = (share.min(usize::try_from(captured.total).unwrap_or(share)).saturating_mul(room) / size)
            .max(MIN_SHARE_BYTES);
    }
}

fn truncate(captured: &Captured, share: usize) -> TruncatedStream {
    if captured.total <= share as u64 && captured.full_output.is_none() {
        let all = [captured.head.as_slice(), captured.tail.as_slice()].concat();
        return TruncatedStream { head: String::from_utf8_lossy(&all).into_owned(), tail: None };
    }
    let (first, last) = (share / 2, share - share / 2);
    let end = if captured.tail.is_empty() { &captured.head } else { &captured.tail };
    let head = captured.head.get(..first.min(captured.head.len())).unwrap_or_default();
    // Includes the preceding byte, to detect a line start.
    let before = usize::from(end.len() > last);
    let tail = end.get(end.len().saturating_sub(last + before)..).unwrap_or_default();
    TruncatedStream {
        head: String::from_utf8_lossy(whole_lines(head)).into_owned(),
        tail: Some(String::from_utf8_lossy(from_line(tail, before)).into_owned()),
    }
}

/// Ends after a line if that drops less than half, else after a character.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let line = bytes.iter().rposition(|byte| *byte == b'\n').filter(|at| *at >= bytes.len() / 2);
    match line {
        Some(at) => bytes.get(..=at).unwrap_or(bytes),
        None => bytes.get(..bytes.len() - partial_char_len(bytes)).unwrap_or(bytes),
    }
}

/// Starts at a line if that drops less than half, else at a character; the first bytes only provide context.
fn from_line(bytes: &[u8], before: usize) -> &[u8] {
    let line = bytes.iter().position(|byte| *byte == b'\n').filter(|at| *at < bytes.len() / 2);
    let torn =
        || bytes.iter().skip(before).take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
    let start = line.map_or_else(|| before + torn(), |at| at + 1);
    bytes.get(start..).unwrap_or_default()
}

/// Number of bytes at the end that form an incomplete character.
pub fn partial_char_len(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let Some(byte) = bytes.get(bytes.len() - back) else { return 0 };
        let needs = match byte {
            0b1100_0000..=0b1101_1111 => 2,
            0b1110_0000..=0b1110_1111 => 3,
            0b1111_0000..=0b1111_0111 => 4,
            0b1000_0000..=0b1011_1111 => continue,
            _ => return 0,
        };
        return if needs > back { back } else { 0 };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(text: &str) -> Captured {
        Captured { head: text.into(), total: text.len() as u64, ..Captured::default() }
    }

    #[test]
    fn both_streams_share_the_bound() {
        let rows = [
            ((100, 30, 20), (30, 20)),
            ((100, 1_000, 20), (80, 20)),
            ((100, 20, 1_000), (20, 80)),
            ((100, 1_000, 1_000), (50, 50)),
            ((0, 1, 1), (0, 0)),
            ((100, u64::MAX, u64::MAX), (50, 50)),
        ];
        for ((bound, out, err), shares) in rows {
            assert_eq!(super::split_budget(bound, out, err), shares, "{bound} {out} {err}");
        }
    }

    #[test]
    fn what_fits_is_whole_and_the_rest_is_its_beginning_and_end() {
        let rows = [
            ("abc", 3, "abc", None),
            ("abcdef", 4, "ab", Some("ef")),
            ("1\n2\n3\n4\n5\n6\n", 8, "1\n2\n", Some("5\n6\n")),
            ("1\n2\n3\n4\n5\n6\n", 7, "1\n", Some("5\n6\n")),
            ("ääää", 6, "ä", Some("ä")),
            ("", 0, "", None),
            ("abc", 0, "", Some("")),
        ];
        for (text, share, head, tail) in rows {
            let shown = super::truncate(&captured(text), share);
            assert_eq!((shown.head.as_str(), shown.tail.as_deref()), (head, tail), "{text:?} in {share}");
        }
    }

    #[test]
    fn torn_characters_are_counted() {
        let rows: &[(&[u8], usize)] = &[
            (b"abc", 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"\xe2\x82", 2),
            (b"\xf0\x9f\x98", 3),
            (b"\xff", 0),
            (b"\x80\x80\x80\x80", 0),
            (b"", 0),
        ];
        for (bytes, torn) in rows {
            assert_eq!(partial_char_len(bytes), *torn, "{bytes:?}");
        }
    }
}
