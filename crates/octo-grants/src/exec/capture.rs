//! Captures the head and tail of a stream in constant memory, and the whole in a file.

use super::Captured;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;

/// Limit per stream.
const MAX_FULL_OUTPUT_BYTES: u64 = 64 << 20;

pub(super) struct Capture {
    state: PathBuf,
    max_bytes: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    full_output: Option<tokio::fs::File>,
    written: u64,
}

impl Capture {
    pub fn new(keep: usize, state: &Path) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        Self { state: state.to_owned(), max_bytes: keep, head, tail, total: 0, full_output: None, written: 0 }
    }

    pub async fn push(&mut self, bytes: &[u8]) {
        let before = self.total;
        self.total += bytes.len() as u64;
        let fits = self.total <= self.max_bytes as u64;
        if fits {
            self.head.extend_from_slice(bytes);
            return;
        }
        if before <= self.max_bytes as u64 {
            // The content so far is split into head and tail.
            self.open_full_output().await;
            self.copy_head().await;
            let half = self.max_bytes / 2;
            let missing = half.saturating_sub(self.head.len()).min(bytes.len());
            let (head, rest) = bytes.split_at(missing);
            self.head.extend_from_slice(head);
            let over = self.head.split_off(half.min(self.head.len()));
            self.push_tail(&over);
            self.push_tail(rest);
        } else {
            self.push_tail(bytes);
        }
        self.copy_to_file(bytes).await;
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let room = self.max_bytes - self.max_bytes / 2;
        let new = bytes.get(bytes.len().saturating_sub(room)..).unwrap_or_default();
        let excess = (self.tail.len() + new.len()).saturating_sub(room);
        self.tail.drain(..excess);
        self.tail.extend(new);
    }

    async fn open_full_output(&mut self) {
        let state = self.state.clone();
        let made = tokio::task::spawn_blocking(move || scratch_file(&state)).await;
        match made.map_err(io::Error::other).and_then(|made| made) {
            Ok(file) => self.full_output = Some(tokio::fs::File::from_std(file)),
            Err(error) => tracing::warn!(%error, "cannot store the full output of a program"),
        }
    }

    async fn copy_head(&mut self) {
        let head = std::mem::take(&mut self.head);
        self.copy_to_file(&head).await;
        self.head = head;
    }

    async fn copy_to_file(&mut self, bytes: &[u8]) {
        let room =
            usize::try_from(MAX_FULL_OUTPUT_BYTES - self.written).unwrap_or(usize::MAX).min(bytes.len());
        let Some(whole) = &mut self.full_output else { return };
        self.written += room as u64;
        if let Err(error) = whole.write_all(bytes.get(..room).unwrap_or_default()).await {
            tracing::warn!(%error, "cannot store the full output of a program");
            self.full_output = None;
        }
    }

    pub async fn finish(self) -> Captured {
        let whole = match self.full_output {
            Some(mut file) => match file.flush().await {
                Ok(()) => {
                    let mut file = file.into_std().await;
                    file.rewind().ok().map(|()| file)
                }
                Err(_) => None,
            },
            None => None,
        };
        Captured { head: self.head, tail: self.tail.into(), total: self.total, full_output: whole }
    }
}

/// An unnamed file that is removed with its last descriptor.
pub(super) fn scratch_file(folder: &Path) -> io::Result<File> {
    std::fs::create_dir_all(folder)?;
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(CWD, folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Ok(file) => Ok(file.into()),
        // Not every file system supports `O_TMPFILE`.
        Err(_) => {
            let path = folder.join(format!("output-{}", crate::random::hex::<6>()?));
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = openat(CWD, &path, flags, mode)?;
            std::fs::remove_file(path)?;
            Ok(file.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[tokio::test]
    async fn head_and_tail_are_exact_at_every_boundary() {
        let folder = tempfile::tempdir().unwrap();
        let text: Vec<u8> = (0..=255).collect();
        for keep in [0, 1, 2, 3, 10, 11, 255, 256, 300] {
            for total in [0, 1, 2, 9, 10, 11, 12, 20, 21, 22, 255, 256] {
                for step in [1, 3, 7, 256] {
                    let mut capture = Capture::new(keep, folder.path());
                    let all = &text[..total];
                    for chunk in all.chunks(step) {
                        capture.push(chunk).await;
                    }
                    let got = capture.finish().await;
                    let case = format!("keep {keep}, total {total}, step {step}");
                    assert_eq!(got.total, total as u64, "{case}");
                    if total <= keep {
                        assert_eq!((&got.head[..], got.tail.len()), (all, 0), "{case}");
                        assert!(got.full_output.is_none(), "{case}");
                        continue;
                    }
                    assert_eq!(got.head, all[..keep / 2], "{case}");
                    assert_eq!(got.tail, all[total - (keep - keep / 2)..], "{case}");
                    let mut whole = Vec::new();
                    got.full_output.unwrap().read_to_end(&mut whole).unwrap();
                    assert_eq!(whole, all, "{case}");
                }
            }
        }
    }
}
