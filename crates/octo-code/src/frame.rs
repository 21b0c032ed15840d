//! Frames: four bytes of length, little-endian, and a message in JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longest frame to the process of a program: a result, or a program with its tools.
pub const MAX_PARENT_FRAME_BYTES: usize = 20 << 20;

const HEADER_BYTES: usize = 4;

/// A message as one frame.
pub fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; HEADER_BYTES];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - HEADER_BYTES).map_err(io::Error::other)?;
    if let Some(header) = frame.first_chunk_mut() {
        *header = length.to_le_bytes();
    }
    Ok(frame)
}

/// Reads one frame, blocking.
pub fn read_frame<T: DeserializeOwned>(input: &mut impl Read) -> io::Result<T> {
    let mut header = [0; HEADER_BYTES];
    input.read_exact(&mut header)?;
    let mut body = vec![0; checked_length(header, MAX_PARENT_FRAME_BYTES)?];
    input.read_exact(&mut body)?;
    decode(&body)
}

/// Reads frames from a process that may send anything. Reading can be cancelled at any point.
pub struct FrameReader<R> {
    input: R,
    buffer: Vec<u8>,
    max_frame_bytes: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub fn new(input: R, max_frame_bytes: usize) -> Self {
        Self { input, buffer: Vec::new(), max_frame_bytes }
    }

    /// The next message; `None` if the stream has ended. An error means that the process is not an honest one.
    pub async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some((header, rest)) = self.buffer.split_first_chunk() {
                let length = checked_length(*header, self.max_frame_bytes)?;
                if let Some(body) = rest.get(..length) {
                    let message = decode(body)?;
                    self.buffer.drain(..HEADER_BYTES + length);
                    return Ok(Some(message));
                }
            }
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

fn checked_length(header: [u8; HEADER_BYTES], limit: usize) -> io::Result<usize> {
    usize::try_from(u32::from_le_bytes(header))
        .ok()
        .filter(|length| *length <= limit)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    serde_json::from_slice(body)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("a frame is not valid: {error}")))
}
