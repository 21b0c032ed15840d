//! The messages of one call between two nodes: in order, of any size, in both directions.
//!
//! A message that fits into a frame is sent at once. Of a larger one, the receiver gets the beginning, reserves memory
//! for all of it, and grants credit for the parts; the last part has the hash of the whole.

use crate::frame::{Frame, FrameError, HASH_LEN, MAX_HEADER_LEN, VERSION, encode_whole};
use crate::inbox::ReplyAddress;
use crate::node::Node;
use crate::{BusError, Message, Subject};
use aws_lc_rs::digest::{self, SHA256};
use bytes::{BufMut, Bytes, BytesMut};
use octo_admission::ReceiveBudget;
use octo_model::JsonObject;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{timeout, timeout_at};

/// Parts that may be on their way.
const WINDOW: u32 = 8;
/// Maximum bytes of large messages of one source that are received at the same time.
pub(crate) const RECEIVE_BYTES: usize = 128 << 20;
/// Maximum bytes of a message.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Messages that were received while a large one was sent.
const MAX_READY_MESSAGES: usize = 1024;
/// How long the other node may take to receive a part, or to find memory for the message.
const CREDIT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the sender of a large message may take for the next part.
const PART_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a message of a running call waits for the bus.
const RECONNECT_TIMEOUT: Duration = Duration::from_secs(8);

pub(crate) struct CallStream {
    node: Arc<Node>,
    budget: ReceiveBudget,
    /// Opened for the first message that may be answered.
    own: Option<ReplyAddress>,
    remote: Option<Subject>,
    next_sent: u32,
    next_received: u32,
    /// Parts that may be sent.
    credit: u32,
    /// Parts that were received since the last grant.
    consumed: u32,
    due: VecDeque<Frame>,
    ready: VecDeque<CallMessage>,
    assembly: Option<Assembly>,
    last_received: Option<Instant>,
    is_complete: bool,
}

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallMessage {
    pub(crate) kind: u8,
    pub(crate) body: Bytes,
}

/// A message to send: some bytes, and then an object, which is written where it is sent from.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingMessage {
    pub(crate) kind: u8,
    pub(crate) head: Bytes,
    pub(crate) object: Option<JsonObject>,
}

impl OutgoingMessage {
    /// At most as many bytes as the body has, unless keys of the object need escapes.
    fn size(&self) -> usize {
        self.head.len() + self.object.as_ref().map_or(0, JsonObject::size)
    }

    fn write(&self, into: &mut Vec<u8>) {
        into.put_slice(&self.head);
        if let Some(object) = &self.object {
            object.write(into);
        }
    }

    /// The message in one frame, for which it must be small enough.
    pub(crate) fn to_frame(&self, sequence: u32) -> Bytes {
        encode_whole(sequence, self.kind, self.size(), |text| self.write(text))
    }

    pub(crate) fn to_body(&self) -> Bytes {
        let mut body = Vec::with_capacity(self.size());
        self.write(&mut body);
        body.into()
    }
}

struct Assembly {
    kind: u8,
    len: usize,
    text: BytesMut,
    last_part: Instant,
    permit: Option<OwnedSemaphorePermit>,
}

/// Why a stream ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StreamError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("nobody received the message")]
    NoResponders,
    #[error("the other node does not know the call any more")]
    Gone,
    #[error("a message was lost")]
    Lost,
    #[error("the message of {0} bytes is too large")]
    TooLarge(u64),
    #[error("the other node supports version {0} of the protocol")]
    Version(u8),
    #[error("the other node sent {0}")]
    Malformed(&'static str),
}

impl CallStream {
    /// A stream to whoever receives the first message, or to the sender of one.
    pub(crate) fn new(node: &Arc<Node>, budget: &ReceiveBudget, remote: Option<Subject>) -> Self {
        Self {
            budget: budget.clone(),
            own: None,
            node: Arc::clone(node),
            remote,
            next_sent: 0,
            next_received: 0,
            credit: 0,
            consumed: 0,
            due: VecDeque::new(),
            ready: VecDeque::new(),
            assembly: None,
            last_received: None,
            is_complete: false,
        }
    }

    /// Sends the first message to a subject; the further ones go to whoever answers it.
    pub(crate) async fn open(&mut self, to: &Subject, message: OutgoingMessage) -> Result<(), StreamError> {
        self.send_to(Some(to), message, true).await
    }

    /// Takes the first message, which another node sent to a subject of this one.
    pub(crate) fn accept(&mut self, message: Message) -> Result<(), StreamError> {
        self.handle(message)
    }

    pub(crate) async fn send(&mut self, message: OutgoingMessage) -> Result<(), StreamError> {
        self.send_to(None, message, true).await
    }

    /// Sends the last message of a call.
    pub(crate) async fn send_last(&mut self, message: OutgoingMessage) -> Result<(), StreamError> {
        self.send_to(None, message, false).await?;
        self.is_complete = true;
        Ok(())
    }

    /// The other node is not to be notified when this stream is dropped.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// Reports that the call runs. Does not wait for the bus: the next report follows soon.
    pub(crate) async fn send_alive(&mut self) -> Result<(), StreamError> {
        let to = self.remote.clone().ok_or(StreamError::Gone)?;
        let reply = self.reply_subject(&to)?;
        let message = Message::new(to, Some(reply), Frame::Alive.encode());
        match self.node.bus().publish(message).await {
            Ok(()) | Err(BusError::Disconnected | BusError::Busy) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a message is being received in parts.
    pub(crate) fn is_receiving(&self) -> bool {
        self.assembly.is_some()
    }

    /// What the addresses of all streams of the other node begin with.
    pub(crate) fn remote_prefix(&self) -> &str {
        let remote = self.remote.as_ref().map_or("", Subject::as_str);
        remote.rsplit_once('.').map_or(remote, |(prefix, _)| prefix)
    }

    /// When the other node was last heard of.
    pub(crate) fn last_received(&self) -> Option<Instant> {
        self.last_received
    }

    /// The next message. May be dropped and called again.
    pub(crate) async fn receive(&mut self) -> Result<CallMessage, StreamError> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Ok(message);
            }
            self.step().await?;
        }
    }

    async fn send_to(
        &mut self,
        to: Option<&Subject>,
        message: OutgoingMessage,
        expects_reply: bool,
    ) -> Result<(), StreamError> {
        let part_len = self.node.part_len();
        let frame = (message.size() <= part_len).then(|| message.to_frame(self.next_sent));
        if let Some(frame) = frame.filter(|frame| frame.len() <= part_len + MAX_HEADER_LEN) {
            self.next_sequence();
            return self.publish(to, frame, expects_reply).await;
        }
        let (kind, body) = (message.kind, message.to_body());
        if body.len() > MAX_MESSAGE_BYTES {
            return Err(StreamError::TooLarge(body.len() as u64));
        }
        let hash = hash_of(&body);
        let mut rest = body.clone();
        // Something is left for the last part, which has the hash.
        let first = rest.split_to(part_len.min(rest.len().saturating_sub(1)));
        let sequence = self.next_sequence();
        let first = Frame::First { sequence, kind, len: body.len() as u64, body: first };
        // Credit comes with the address of the other node.
        self.credit = 0;
        self.publish(to, first.encode(), true).await?;
        while !rest.is_empty() {
            while self.credit == 0 {
                if to.is_some() && !self.ready.is_empty() {
                    // It was answered, so it is refused, before it was read.
                    return Ok(());
                }
                timeout(CREDIT_TIMEOUT, self.step()).await.map_err(|_| StreamError::Lost)??;
                if self.ready.len() > MAX_READY_MESSAGES {
                    return Err(StreamError::Malformed("too many messages"));
                }
            }
            self.credit -= 1;
            let part = rest.split_to(part_len.min(rest.len()));
            let sequence = self.next_sequence();
            let frame = match rest.is_empty() {
                true => Frame::Last { sequence, hash, body: part },
                false => Frame::Part { sequence, body: part },
            };
            self.publish(None, frame.encode(), true).await?;
        }
        Ok(())
    }

    fn next_sequence(&mut self) -> u32 {
        let sequence = self.next_sent;
        self.next_sent = sequence.wrapping_add(1);
        sequence
    }

    /// Where the other node sends further messages.
    fn reply_subject(&mut self, to: &Subject) -> Result<Subject, BusError> {
        let own = match self.own.take() {
            Some(own) => own,
            None => self.node.reply_address(to)?,
        };
        Ok(self.own.insert(own).subject.clone())
    }

    async fn publish(
        &mut self,
        to: Option<&Subject>,
        frame: Bytes,
        expects_reply: bool,
    ) -> Result<(), StreamError> {
        let is_running = to.is_none();
        let to = to.or(self.remote.as_ref()).ok_or(StreamError::Gone)?.clone();
        let reply = expects_reply.then(|| self.reply_subject(&to)).transpose()?;
        let message = Message::new(to, reply, frame);
        match self.node.bus().publish(message.clone()).await {
            // A call that runs survives a restart of the bus.
            Err(BusError::Disconnected)
                if is_running && self.node.connects_within(RECONNECT_TIMEOUT).await =>
            {
                Ok(self.node.bus().publish(message).await?)
            }
            sent => Ok(sent?),
        }
    }

    /// Sends a frame that is due, or handles one that was received. May be dropped and called again: a frame that is due
    /// is then sent twice, which grants some more credit.
    async fn step(&mut self) -> Result<(), StreamError> {
        if let Some(frame) = self.due.front() {
            let frame = frame.encode();
            self.publish(None, frame, true).await?;
            self.due.pop_front();
            return Ok(());
        }
        let own = &mut self.own;
        let received = async {
            match own {
                Some(own) => own.receiver.recv().await,
                // Nobody knows an address of this stream.
                None => std::future::pending().await,
            }
        };
        let message = match &mut self.assembly {
            None => received.await,
            Some(Assembly { permit: Some(_), last_part, .. }) => {
                let silence_end = tokio::time::Instant::from_std(*last_part + PART_TIMEOUT);
                timeout_at(silence_end, received).await.map_err(|_| StreamError::Lost)?
            }
            Some(assembly) => tokio::select! {
                permit = self.budget.reserve(assembly.len) => {
                    assembly.permit = Some(permit.ok_or(StreamError::Lost)?);
                    assembly.last_part = Instant::now();
                    self.due.push_back(Frame::Credit(WINDOW));
                    return Ok(());
                }
                message = received => message,
            },
        };
        self.handle(message.ok_or(StreamError::Lost)?)
    }

    fn handle(&mut self, message: Message) -> Result<(), StreamError> {
        if message.no_responders {
            let is_first = self.last_received.is_none();
            return Err(if is_first { StreamError::NoResponders } else { StreamError::Gone });
        }
        self.last_received = Some(Instant::now());
        if self.remote.is_none() {
            self.remote = message.reply;
        }
        let frame = Frame::decode(message.payload).map_err(|error| match error {
            FrameError::Version(version) => StreamError::Version(version),
            FrameError::Malformed => StreamError::Malformed("a malformed frame"),
        })?;
        match frame {
            Frame::Whole { sequence, kind, body } => {
                self.check_sequence(sequence)?;
                self.ready.push_back(CallMessage { kind, body });
            }
            Frame::First { sequence, kind, len, body } => {
                self.check_sequence(sequence)?;
                self.begin_assembly(kind, len, &body)?;
            }
            Frame::Part { sequence, body } => {
                self.check_sequence(sequence)?;
                self.append(&body)?;
                self.consumed += 1;
                if self.consumed >= WINDOW / 2 {
                    self.due.push_back(Frame::Credit(self.consumed));
                    self.consumed = 0;
                }
            }
            Frame::Last { sequence, hash, body } => {
                self.check_sequence(sequence)?;
                self.append(&body)?;
                self.end_assembly(&hash)?;
            }
            Frame::Credit(count) => self.credit = self.credit.saturating_add(count),
            Frame::Alive => self.due.push_back(Frame::AliveAck),
            Frame::AliveAck => {}
            Frame::Gone => return Err(StreamError::Gone),
            Frame::Version(version) => return Err(StreamError::Version(version)),
        }
        Ok(())
    }

    fn check_sequence(&mut self, sequence: u32) -> Result<(), StreamError> {
        if sequence != self.next_received {
            return Err(StreamError::Lost);
        }
        self.next_received = sequence.wrapping_add(1);
        Ok(())
    }

    fn begin_assembly(&mut self, kind: u8, len: u64, body: &[u8]) -> Result<(), StreamError> {
        if self.assembly.is_some() {
            return Err(StreamError::Malformed("two large messages at once"));
        }
        let size = usize::try_from(len).ok().filter(|size| *size <= MAX_MESSAGE_BYTES);
        let len = size.ok_or(StreamError::TooLarge(len))?;
        self.consumed = 0;
        self.assembly =
            Some(Assembly { kind, len, text: BytesMut::new(), last_part: Instant::now(), permit: None });
        self.append(body)
    }

    fn append(&mut self, body: &[u8]) -> Result<(), StreamError> {
        let assembly = self.assembly.as_mut().ok_or(StreamError::Malformed("a part of no message"))?;
        if assembly.text.len() + body.len() > assembly.len {
            return Err(StreamError::Malformed("more than it announced"));
        }
        assembly.last_part = Instant::now();
        assembly.text.extend_from_slice(body);
        Ok(())
    }

    fn end_assembly(&mut self, hash: &[u8; HASH_LEN]) -> Result<(), StreamError> {
        let assembly = self.assembly.take().ok_or(StreamError::Malformed("a part of no message"))?;
        if assembly.text.len() != assembly.len || hash_of(&assembly.text) != *hash {
            return Err(StreamError::Malformed("a message that differs from its hash"));
        }
        self.ready.push_back(CallMessage { kind: assembly.kind, body: assembly.text.freeze() });
        Ok(())
    }

    /// Answers a frame of another version, so that its sender need not wait.
    pub(crate) fn refuse_version(&mut self) {
        self.notify(&Frame::Version(VERSION));
        self.is_complete = true;
    }

    /// Sends a frame in the background.
    fn notify(&self, frame: &Frame) {
        let (Some(remote), Ok(runtime)) = (self.remote.clone(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        let (node, message) = (Arc::clone(&self.node), Message::new(remote, None, frame.encode()));
        runtime.spawn(async move {
            // The other node notices by itself, if later.
            let _ = node.bus().publish(message).await;
        });
    }
}

impl Drop for CallStream {
    fn drop(&mut self) {
        if !self.is_complete {
            self.notify(&Frame::Gone);
        }
    }
}

fn hash_of(text: &[u8]) -> [u8; HASH_LEN] {
    let mut hash = [0; HASH_LEN];
    hash.copy_from_slice(digest::digest(&SHA256, text).as_ref());
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bus, InProcessBus};
    use futures_util::StreamExt;
    use octo_model::Json;

    /// Sends a message in both directions; returns how it arrived.
    async fn echo(node: &Arc<Node>, message: OutgoingMessage) -> [Bytes; 2] {
        let (budget, subject) = (ReceiveBudget::new(RECEIVE_BYTES), Subject::new("echo"));
        let mut requests = node.bus().subscribe(&subject, None).await.unwrap();
        let answer = async {
            let request = requests.next().await.unwrap();
            let mut stream = CallStream::new(node, &budget, request.reply.clone());
            stream.accept(request).unwrap();
            let received = stream.receive().await.unwrap();
            stream.send_last(message.clone()).await.unwrap();
            received.body
        };
        let ask = async {
            let mut stream = CallStream::new(node, &budget, None);
            stream.open(&subject, message.clone()).await.unwrap();
            let received = stream.receive().await.unwrap();
            stream.complete();
            received.body
        };
        timeout(Duration::from_secs(20), async { tokio::join!(answer, ask) }).await.unwrap().into()
    }

    #[tokio::test]
    async fn messages_about_as_long_as_a_frame_arrive_whole() {
        let bus: Arc<dyn Bus> = Arc::new(InProcessBus::default());
        let node = Node::open("one", bus).await.unwrap();
        // Keys that need escapes are longer than `size` says.
        for key in ["key".to_owned(), "\n".repeat(48)] {
            let object = JsonObject::new().with(&key, Json::of(&1));
            let rest = object.to_json().bytes().len();
            for len in node.part_len() - 3..=node.part_len() + 3 {
                let head = Bytes::from(vec![b'x'; len - rest]);
                let message = OutgoingMessage { kind: 9, head, object: Some(object.clone()) };
                let body = message.to_body();
                assert_eq!(body.len(), len);
                for received in echo(&node, message).await {
                    assert!(received == body, "{len} {key:?}");
                }
            }
        }
    }
}
