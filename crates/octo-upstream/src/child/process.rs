//! A running child: its streams are served by tasks that end with it.

use super::lines::{Lines, Next};
use super::queue::{Queue, write};
use crate::fail::{Fail, Outcome};
use crate::inbox::{Inbox, Origin};
use crate::lost::Lost;
use crate::read::{Broken, read};
use crate::task::Owned;
use crate::wire::Wire;
use octo_grants::{Command, Group};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncRead;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// So much of a line on standard error is kept.
const STDERR_LINE: usize = 2000;
/// How long a child may take to end by itself.
const GRACE: Duration = Duration::from_secs(1);
const SORTING: Duration = Duration::from_millis(200);

pub(crate) struct Process {
    group: Group,
    queue: Queue,
    _writer: Owned,
    _reader: Owned,
    _stderr: Owned,
}

/// The last thing that a child said on standard error: it often tells why it ended.
type LastWords = Arc<Mutex<String>>;

impl Process {
    pub(crate) fn start(
        command: &Command,
        limit: usize,
        inbox: &Arc<Inbox>,
        lost: &Lost,
    ) -> Outcome<(Wire, Self)> {
        let child =
            command.spawn().map_err(|error| Fail::NotSent(format!("{}: {error}", command.program)))?;
        let (stdin, stdout, stderr, group) = child.split();
        let (queue, lines) = Queue::new();
        let wire = Wire::Child(queue.clone());
        let words = LastWords::default();
        let (ended, (sorted, sorting)) = (CancellationToken::new(), oneshot::channel());
        let (its_inbox, its_lost, its_end) = (inbox.clone(), lost.clone(), ended.clone());
        let process = Self {
            group,
            queue,
            _writer: tokio::spawn(async move {
                write(stdin, lines, its_inbox, its_lost, its_end).await;
                let _ = sorted.send(());
            })
            .into(),
            _stderr: tokio::spawn(hear(stderr, inbox.name.clone(), words.clone())).into(),
            _reader: tokio::spawn(follow(
                Lines::new(stdout, limit),
                inbox.clone(),
                wire.clone(),
                lost.clone(),
                words,
                Writer { ended, sorting },
            ))
            .into(),
        };
        Ok((wire, process))
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
    mut lines: Lines<impl AsyncRead + Unpin>,
    inbox: Arc<Inbox>,
    wire: Wire,
    lost: Lost,
    words: LastWords,
    writer: Writer,
) {
    let why = loop {
        match lines.next().await {
            Next::Line(line) if line.is_empty() => {}
            Next::Line(line) => match read(line) {
                Ok(messages) => messages.into_iter().for_each(|one| inbox.take(one, Origin::Shared, &wire)),
                Err(broken) => refuse(&inbox, broken),
            },
            Next::TooLong => break Fail::Lost("it sent a line over the limit".to_owned()),
            Next::End => break Fail::Lost(epitaph(&words).await),
        }
    };
    writer.ended.cancel();
    // A child that closed its output but does not read its input keeps the writer busy.
    let _ = tokio::time::timeout(SORTING, writer.sorting).await;
    inbox.calls.close(why.clone());
    lost.set(why);
}

fn refuse(inbox: &Inbox, broken: Broken) {
    tracing::warn!(target: "upstream", server = %inbox.name, fault = %broken.fault, "a line that is not a message");
    if let Some(id) = broken.id {
        inbox.calls.settle(id, Err(Fail::Garbled(broken.fault.to_string())));
    }
}

async fn epitaph(words: &LastWords) -> String {
    // Standard error may lag behind a little.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let words = words.lock().unwrap_or_else(PoisonError::into_inner);
    if words.is_empty() {
        "the program has ended".to_owned()
    } else {
        format!("the program has ended; it said last: {words}")
    }
}

async fn hear(stderr: impl AsyncRead + Unpin, name: Arc<str>, words: LastWords) {
    let mut lines = Lines::new(stderr, STDERR_LINE);
    while let Some(line) = lines.next_cut().await {
        tracing::debug!(target: "upstream", server = %name, "{line}");
        if !line.is_empty() {
            let mut last = words.lock().unwrap_or_else(PoisonError::into_inner);
            last.clear();
            last.extend(line.chars().take(200));
        }
    }
}
