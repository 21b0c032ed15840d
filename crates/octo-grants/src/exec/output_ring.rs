//! Ring buffer of the last megabytes of a session's output, in an unnamed file.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Stores the last `room` bytes; the position of a byte follows from its offset.
pub(super) struct OutputRing {
    file: File,
    capacity: u64,
    total: u64,
}

impl OutputRing {
    pub fn new(file: File, room: u64) -> Self {
        Self { file, capacity: room, total: 0 }
    }

    pub fn append(&mut self, bytes: &[u8]) -> io::Result<u64> {
        // Counted even if the disk is full, so that reported offsets stay correct.
        let mut at = self.total;
        self.total += bytes.len() as u64;
        for part in self.parts(bytes.len() as u64, at) {
            let from = usize::try_from(at - (self.total - bytes.len() as u64)).map_err(io::Error::other)?;
            let piece = bytes.get(from..).and_then(|rest| rest.get(..part)).unwrap_or_default();
            self.file.write_all_at(piece, at % self.capacity)?;
            at += part as u64;
        }
        Ok(self.total)
    }

    /// Bytes from an offset, or from the oldest stored byte; returns their offset and the total written.
    pub fn read(&self, from: u64, max: usize) -> io::Result<(u64, Vec<u8>, u64)> {
        let from = from.max(self.total.saturating_sub(self.capacity)).min(self.total);
        let count = (self.total - from).min(max as u64);
        let (mut bytes, mut at) = (Vec::new(), from);
        for part in self.parts(count, from) {
            let mut piece = vec![0; part];
            self.file.read_exact_at(&mut piece, at % self.capacity)?;
            bytes.extend(piece);
            at += part as u64;
        }
        Ok((from, bytes, self.total))
    }

    /// Lengths of the parts of a range, split where the ring wraps around.
    fn parts(&self, mut count: u64, mut at: u64) -> Vec<usize> {
        let mut parts = Vec::new();
        while count > 0 {
            let part = count.min(self.capacity - at % self.capacity);
            parts.push(usize::try_from(part).unwrap_or(usize::MAX));
            at += part;
            count -= part;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::OutputRing;

    #[test]
    fn the_last_bytes_stay_whatever_the_pieces() {
        let text: Vec<u8> = (0..200).collect();
        for step in [1, 3, 10, 16, 17, 40, 200] {
            let mut log = OutputRing::new(tempfile::tempfile().unwrap(), 16);
            let mut written = 0;
            for piece in text.chunks(step) {
                written += piece.len();
                assert_eq!(log.append(piece).unwrap(), written as u64);
                let kept = written.saturating_sub(16);
                for from in [0, kept, written.saturating_sub(5), written, written + 9] {
                    for max in [0, 4, 100] {
                        let begin = from.clamp(kept, written);
                        let end = (begin + max).min(written);
                        let want = (begin as u64, text[begin..end].to_vec(), written as u64);
                        assert_eq!(
                            log.read(from as u64, max).unwrap(),
                            want,
                            "step {step}, from {from}, max {max}"
                        );
                    }
                }
            }
        }
    }
}
