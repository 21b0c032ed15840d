//! Requests that an exited child did not read: the kernel still has them in the pipe.

use super::stdin_line::StdinLine;
use std::collections::VecDeque;
use tokio::net::unix::pipe::Sender;

/// Maximum size of a pipe.
const MAX_PIPE_BYTES: u64 = 1 << 20;

/// Offsets of recent requests in the stream.
#[derive(Default)]
pub(super) struct UnreadRequests {
    written: u64,
    requests: VecDeque<(u64, u64)>,
}

impl UnreadRequests {
    pub(super) fn record_written(&mut self, batch: &[StdinLine]) {
        for line in batch {
            let StdinLine::Text(request, text) = line else { continue };
            if let Some(id) = request {
                self.requests.push_back((self.written, *id));
            }
            self.written += text.len() as u64 + 1;
        }
        while self.requests.front().is_some_and(|(begin, _)| begin + MAX_PIPE_BYTES < self.written) {
            self.requests.pop_front();
        }
    }

    /// Requests of which the child has read nothing. A partially read one counts as read.
    pub(super) fn unread_in(&self, pipe: &Sender) -> Vec<u64> {
        let left = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        let read = self.written.saturating_sub(left);
        self.requests.iter().filter(|(begin, _)| *begin >= read && left > 0).map(|(_, id)| *id).collect()
    }
}
