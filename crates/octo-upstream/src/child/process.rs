//! A running child: its streams are served by tasks that end with it.

use super::lines::{Lines, Next};
use super::queue::{Queue, write};
use super::rubbish::Rubbish;
use super::said::Said;
use crate::fail::Fail;
use crate::inbox::{Inbox, Origin};
use crate::lost::Lost;
use crate::read::read;
use crate::task::Owned;
use crate::wire::Wire;
use octo_grants::{Child, Group};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// So much of a line on standard error is kept.
const STDERR_LINE: usize = 2000;
/// How long a child may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);
/// So many lines are taken before the other servers are looked after.
const IN_A_ROW: u32 = 32;
const SORTING: Duration = Duration::from_millis(200);

pub(crate) struct Process {
    pub(crate) pid: Option<u32>,
    group: Group,
    queue: Queue,
    _writer: Owned,
    _reader: Owned,
    _stderr: Owned,
}

impl Process {
    /// Serves the streams of a child that has just been started.
    pub(crate) fn attend(
        child: Child,
        limit: usize,
        inbox: &Arc<Inbox>,
        lost: &Lost,
        said: &Arc<Said>,
    ) -> (Wire, Self) {
        let pid = child.id();
        let (stdin, stdout, stderr, group) = child.split();
        let (queue, lines) = Queue::new();
        let wire = Wire::Child(queue.clone());
        let (ended, (sorted, sorting)) = (CancellationToken::new(), oneshot::channel());
        let (its_inbox, its_lost, its_end) = (inbox.clone(), lost.clone(), ended.clone());
        let process = Self {
            pid,
            group,
            queue,
            _writer: tokio::spawn(async move {
                write(stdin, lines, its_inbox, its_lost, its_end).await;
                let _ = sorted.send(());
            })
            .into(),
            _stderr: tokio::spawn(hear(stderr, inbox.name.clone(), said.clone())).into(),
            _reader: tokio::spawn(follow(
                stdout,
                limit,
                inbox.clone(),
                wire.clone(),
                lost.clone(),
                said.clone(),
                Writer { ended, sorting },
            ))
            .into(),
        };
        (wire, process)
    }

    /// Closes the child's input, gives it a moment, and ends what is left of its group.
    pub(crate) async fn close(self) {
        self.queue.end();
        self.group.end_within(GRACE).await;
    }
}

/// How the reader tells the writer of the end, and hears that it has sorted out what was never read.
struct Writer {
    ended: CancellationToken,
    sorting: oneshot::Receiver<()>,
}

/// Reads messages until the child ends; then nothing that waits will be answered.
async fn follow(
    stdout: impl AsyncRead + Unpin,
    limit: usize,
    inbox: Arc<Inbox>,
    wire: Wire,
    lost: Lost,
    said: Arc<Said>,
    writer: Writer,
) {
    let mut lines = Lines::new(stdout, limit);
    let mut rubbish = Rubbish::default();
    let mut count = 0_u32;
    let why = loop {
        count = count.wrapping_add(1);
        if count.is_multiple_of(IN_A_ROW) {
            // What has been read already would be taken to its end before anybody else is heard.
            tokio::task::yield_now().await;
        }
        match lines.next().await {
            Next::Line(line) if line.is_empty() => {}
            Next::Line(line) => match read(line) {
                Ok(messages) => messages.into_iter().for_each(|one| inbox.take(one, Origin::Shared, &wire)),
                Err(broken) => rubbish.take(&inbox, broken).await,
            },
            // A single call that waits is the one that was being answered.
            Next::TooLong if inbox.calls.waiting() == 1 => break Fail::TooLarge(limit),
            Next::TooLong => break Fail::Lost(format!("it sent a line of more than {limit} bytes")),
            Next::End => break Fail::Lost(epitaph(&said).await),
        }
    };
    writer.ended.cancel();
    // A child that closed its output but does not read its input keeps the writer busy.
    let _ = tokio::time::timeout(SORTING, writer.sorting).await;
    inbox.calls.close(why.clone());
    lost.set(why);
}

async fn epitaph(said: &Said) -> String {
    // Standard error may lag behind a little.
    tokio::time::sleep(Duration::from_millis(10)).await;
    match said.last() {
        None => "the program has ended".to_owned(),
        Some(last) => format!("the program has ended; it said last: {last}"),
    }
}

async fn hear(stderr: impl AsyncRead + Unpin, name: Arc<str>, said: Arc<Said>) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    while let Some(line) = lines.next_cut().await {
        if !line.is_empty() {
            let line = said.hear(&line);
            tracing::debug!(target: "upstream", server = %name, "{line}");
        }
    }
}
