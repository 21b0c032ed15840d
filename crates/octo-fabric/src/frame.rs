//! Frames: the form of every message on the bus.
//!
//! A frame begins with the version of the protocol, its kind, and a sequence number. Kinds that carry data add the kind
//! of the message.

use bytes::{BufMut, Bytes, BytesMut};

/// Version of the protocol. A node refuses frames of a newer one, and its answer names the version that it knows.
pub(crate) const VERSION: u8 = 2;
/// Bytes in front of the data of any frame.
pub(crate) const MAX_HEADER_LEN: usize = 1 + 1 + 4 + 1 + HASH_LEN;
pub(crate) const HASH_LEN: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A whole message.
    Whole {
        sequence: u32,
        kind: u8,
        body: Bytes,
    },
    /// The beginning of a message of `len` bytes.
    First {
        sequence: u32,
        kind: u8,
        len: u64,
        body: Bytes,
    },
    /// A further part.
    Part {
        sequence: u32,
        body: Bytes,
    },
    /// The last part, with the SHA-256 of the whole message.
    Last {
        sequence: u32,
        hash: [u8; HASH_LEN],
        body: Bytes,
    },
    /// The sender may send this number of further parts.
    Credit(u32),
    /// The sender of this frame is running the call, and requires an acknowledgement.
    Alive,
    AliveAck,
    /// The receiver does not know the call (any more).
    Gone,
    /// The receiver knows this version of the protocol only.
    Version(u8),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("version {0} of the protocol is not supported")]
    Version(u8),
    #[error("a malformed frame")]
    Malformed,
}

mod tag {
    pub(super) const WHOLE: u8 = 1;
    pub(super) const FIRST: u8 = 2;
    pub(super) const PART: u8 = 3;
    pub(super) const LAST: u8 = 4;
    pub(super) const CREDIT: u8 = 5;
    pub(super) const ALIVE: u8 = 6;
    pub(super) const ALIVE_ACK: u8 = 7;
    pub(super) const GONE: u8 = 8;
    pub(super) const VERSION: u8 = 9;
}

impl Frame {
    pub(crate) fn encode(&self) -> Bytes {
        let mut text = BytesMut::with_capacity(MAX_HEADER_LEN + self.body().len());
        text.put_u8(VERSION);
        match self {
            Self::Whole { sequence, kind, body } => {
                return encode_whole(*sequence, *kind, body.len(), |text| text.put_slice(body));
            }
            Self::First { sequence, kind, len, body } => {
                text.put_u8(tag::FIRST);
                text.put_u32(*sequence);
                text.put_u8(*kind);
                text.put_u64(*len);
                text.put_slice(body);
            }
            Self::Part { sequence, body } => {
                text.put_u8(tag::PART);
                text.put_u32(*sequence);
                text.put_slice(body);
            }
            Self::Last { sequence, hash, body } => {
                text.put_u8(tag::LAST);
                text.put_u32(*sequence);
                text.put_slice(hash);
                text.put_slice(body);
            }
            Self::Credit(count) => {
                text.put_u8(tag::CREDIT);
                text.put_u32(*count);
            }
            Self::Alive => text.put_u8(tag::ALIVE),
            Self::AliveAck => text.put_u8(tag::ALIVE_ACK),
            Self::Gone => text.put_u8(tag::GONE),
            Self::Version(version) => {
                text.put_u8(tag::VERSION);
                text.put_u8(*version);
            }
        }
        text.freeze()
    }

    fn body(&self) -> &[u8] {
        match self {
            Self::Whole { body, .. }
            | Self::First { body, .. }
            | Self::Part { body, .. }
            | Self::Last { body, .. } => body,
            _ => &[],
        }
    }

    /// Reads a frame, whose body shares the bytes.
    pub(crate) fn decode(mut text: Bytes) -> Result<Self, FrameError> {
        let version = take_u8(&mut text)?;
        let tag = take_u8(&mut text)?;
        // Every version can read which version the other knows.
        if version != VERSION && tag != tag::VERSION {
            return Err(FrameError::Version(version));
        }
        Ok(match tag {
            tag::WHOLE => {
                let (sequence, kind) = (take_u32(&mut text)?, take_u8(&mut text)?);
                Self::Whole { sequence, kind, body: text }
            }
            tag::FIRST => {
                let (sequence, kind) = (take_u32(&mut text)?, take_u8(&mut text)?);
                let len = u64::from_be_bytes(take(&mut text)?);
                Self::First { sequence, kind, len, body: text }
            }
            tag::PART => Self::Part { sequence: take_u32(&mut text)?, body: text },
            tag::LAST => {
                let sequence = take_u32(&mut text)?;
                Self::Last { sequence, hash: take(&mut text)?, body: text }
            }
            tag::CREDIT => Self::Credit(take_u32(&mut text)?),
            tag::ALIVE => Self::Alive,
            tag::ALIVE_ACK => Self::AliveAck,
            tag::GONE => Self::Gone,
            tag::VERSION => Self::Version(take_u8(&mut text)?),
            _ => return Err(FrameError::Malformed),
        })
    }
}

/// A frame with a whole message of about `len` bytes, which `write` appends.
pub(crate) fn encode_whole(sequence: u32, kind: u8, len: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut text = Vec::with_capacity(MAX_HEADER_LEN + len);
    text.put_slice(&[VERSION, tag::WHOLE]);
    text.put_u32(sequence);
    text.put_u8(kind);
    write(&mut text);
    text.into()
}

fn take<const N: usize>(text: &mut Bytes) -> Result<[u8; N], FrameError> {
    if text.len() < N {
        return Err(FrameError::Malformed);
    }
    let head = text.split_to(N);
    head.as_ref().try_into().map_err(|_| FrameError::Malformed)
}

fn take_u8(text: &mut Bytes) -> Result<u8, FrameError> {
    take::<1>(text).map(|[byte]| byte)
}

fn take_u32(text: &mut Bytes) -> Result<u32, FrameError> {
    take(text).map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames() -> Vec<Frame> {
        let body = Bytes::from_static(b"{}");
        vec![
            Frame::Whole { sequence: 0, kind: 7, body: body.clone() },
            Frame::First { sequence: 1, kind: 1, len: 1 << 40, body: body.clone() },
            Frame::Part { sequence: u32::MAX, body: body.clone() },
            Frame::Last { sequence: 2, hash: [9; HASH_LEN], body },
            Frame::Credit(8),
            Frame::Alive,
            Frame::AliveAck,
            Frame::Gone,
            Frame::Version(3),
        ]
    }

    #[test]
    fn frames_are_read_as_written() {
        for frame in frames() {
            let text = frame.encode();
            assert!(text.len() <= MAX_HEADER_LEN + frame.body().len());
            assert_eq!(Frame::decode(text), Ok(frame));
        }
    }

    #[test]
    fn truncated_frames_are_refused() {
        for frame in frames() {
            let text = frame.encode();
            let head = text.len() - frame.body().len();
            for len in 0..head {
                assert_eq!(Frame::decode(text.slice(..len)), Err(FrameError::Malformed), "{frame:?} {len}");
            }
        }
    }

    #[test]
    fn newer_versions_are_refused_by_number() {
        let newer = |frame: &Frame| {
            let mut text = frame.encode().to_vec();
            text[0] = VERSION + 1;
            Frame::decode(text.into())
        };
        for frame in frames() {
            let expected = match frame {
                Frame::Version(version) => Ok(Frame::Version(version)),
                _ => Err(FrameError::Version(VERSION + 1)),
            };
            assert_eq!(newer(&frame), expected);
        }
        assert_eq!(Frame::decode(Bytes::from_static(&[VERSION, 0])), Err(FrameError::Malformed));
    }
}
