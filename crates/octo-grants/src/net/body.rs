//! Response bodies, decoded as they arrive, up to the requested size.

use async_compression::tokio::bufread::{BrotliDecoder, DeflateDecoder, GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use bytes::{Buf, Bytes};
use http::{HeaderMap, header};
use hyper::body::Body;
use std::io::{self, Cursor};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader, ReadBuf};

/// Maximum number of nested encodings; more are only used for decompression bombs.
const MAX_ENCODINGS: usize = 2;
/// Input that a decoder may need before its first output byte: more than the largest block of zstd.
const WIRE_SLACK_BYTES: usize = 256 << 10;
/// 8 MiB, the largest window for zstd on the web (RFC 9659); the decoder's default is 128 MiB.
const ZSTD_WINDOW_LOG: u32 = 23;
/// Capacity that is allocated before the first byte.
const INITIAL_CAPACITY: usize = 16 << 10;

type Cause = Box<dyn std::error::Error + Send + Sync>;
type Source = Box<dyn AsyncBufRead + Send + Unpin>;

/// Reads up to `max` decoded bytes and returns whether there were more. Removes the headers of the decoded encodings.
pub(super) async fn read_decoded<B>(body: B, headers: &mut HeaderMap, max: usize) -> io::Result<(Bytes, bool)>
where
    B: Body<Data = Bytes, Error: Into<Cause>> + Send + Unpin + 'static,
{
    let cut = Arc::new(AtomicBool::new(false));
    let wire = max.saturating_add(max / 8).saturating_add(WIRE_SLACK_BYTES);
    let mut source: Source =
        Box::new(LimitedBody { body, chunk: Bytes::new(), remaining: wire, limit_reached: cut.clone() });
    if source.fill_buf().await?.is_empty() {
        return Ok((Bytes::new(), false));
    }
    if let Some(layers) = content_encodings(headers)? {
        for layer in layers.into_iter().rev() {
            source = layer.decode(source).await?;
        }
        headers.remove(header::CONTENT_ENCODING);
        headers.remove(header::CONTENT_LENGTH);
    }
    let mut source = source.take((max as u64).saturating_add(1));
    let mut read = Vec::with_capacity(max.min(INITIAL_CAPACITY));
    loop {
        // A body that is already buffered would be decoded without yielding to other tasks of this thread.
        tokio::task::coop::consume_budget().await;
        match source.read_buf(&mut read).await {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) if cut.load(Ordering::Relaxed) => break,
            Err(error) => return Err(error),
        }
    }
    let truncated = read.len() > max || cut.load(Ordering::Relaxed);
    read.truncate(max);
    Ok((read.into(), truncated))
}

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// Encodings of the body, in order; `None` for none or an unknown one, which is passed through unchanged.
fn content_encodings(headers: &HeaderMap) -> io::Result<Option<Vec<Encoding>>> {
    let mut layers = Vec::new();
    for value in headers.get_all(header::CONTENT_ENCODING) {
        for name in value.to_str().unwrap_or("?").split(',').map(|name| name.trim().to_ascii_lowercase()) {
            layers.push(match name.as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Encoding::Gzip,
                "deflate" => Encoding::Deflate,
                "br" => Encoding::Brotli,
                "zstd" => Encoding::Zstd,
                _ => return Ok(None),
            });
            if layers.len() > MAX_ENCODINGS {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "too many content encodings"));
            }
        }
    }
    Ok((!layers.is_empty()).then_some(layers))
}

impl Encoding {
    async fn decode(self, source: Source) -> io::Result<Source> {
        Ok(match self {
            Self::Gzip => {
                let mut decoder = GzipDecoder::new(source);
                decoder.multiple_members(true);
                Box::new(BufReader::new(decoder))
            }
            Self::Deflate => {
                Box::new(BufReader::new(DeflateDecoder::new(without_zlib_header(source).await?)))
            }
            Self::Brotli => Box::new(BufReader::new(BrotliDecoder::new(source))),
            Self::Zstd => {
                let window = DParameter::window_log_max(ZSTD_WINDOW_LOG);
                let mut decoder = ZstdDecoder::with_params(source, &[window]);
                decoder.multiple_members(true);
                Box::new(BufReader::new(decoder))
            }
        })
    }
}

/// Servers use `deflate` for two formats: raw, or with a zlib header and checksum.
async fn without_zlib_header(mut source: Source) -> io::Result<Source> {
    let mut start = Vec::with_capacity(2);
    (&mut source).take(2).read_to_end(&mut start).await?;
    let zlib = matches!(start.as_slice(), [method, flags]
        if method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31));
    Ok(if zlib { source } else { Box::new(AsyncReadExt::chain(Cursor::new(start), source)) })
}

/// The encoded body, up to a limit.
struct LimitedBody<B> {
    body: B,
    chunk: Bytes,
    remaining: usize,
    /// Set when the limit was reached, to explain a decoder's error about a missing end.
    limit_reached: Arc<AtomicBool>,
}

impl<B> AsyncBufRead for LimitedBody<B>
where
    B: Body<Data = Bytes, Error: Into<Cause>> + Unpin,
{
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let wire = self.get_mut();
        while wire.chunk.is_empty() && !wire.limit_reached.load(Ordering::Relaxed) {
            match ready!(Pin::new(&mut wire.body).poll_frame(cx)) {
                None => break,
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                Some(Ok(frame)) => {
                    let mut chunk = frame.into_data().unwrap_or_default();
                    if chunk.len() > wire.remaining {
                        chunk.truncate(wire.remaining);
                        wire.limit_reached.store(true, Ordering::Relaxed);
                    }
                    wire.remaining -= chunk.len();
                    wire.chunk = chunk;
                }
            }
        }
        Poll::Ready(Ok(&wire.chunk))
    }

    fn consume(self: Pin<&mut Self>, amount: usize) {
        self.get_mut().chunk.advance(amount);
    }
}

impl<B> AsyncRead for LimitedBody<B>
where
    B: Body<Data = Bytes, Error: Into<Cause>> + Unpin,
{
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let chunk = ready!(self.as_mut().poll_fill_buf(cx))?;
        let amount = chunk.len().min(into.remaining());
        into.put_slice(chunk.get(..amount).unwrap_or_default());
        self.consume(amount);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use async_compression::tokio::bufread::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZstdEncoder};
    use http_body_util::Full;

    const MAX: usize = 1000;

    async fn read_as(encoding: &'static str, body: Vec<u8>) -> io::Result<(Bytes, bool)> {
        let mut headers =
            [(header::CONTENT_ENCODING, http::HeaderValue::from_static(encoding))].into_iter().collect();
        read_decoded(Full::new(Bytes::from(body)), &mut headers, MAX).await
    }

    /// Deterministic generator.
    fn numbers() -> impl Iterator<Item = usize> {
        std::iter::successors(Some(1_u64), |seed| {
            Some(seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407))
        })
        .map(|seed| (seed >> 33) as usize)
    }

    #[tokio::test]
    async fn damaged_bodies_neither_panic_nor_exceed_the_limit() {
        let text: Vec<u8> = numbers().take(3000).map(|number| b"abcdefgh "[number % 9]).collect();
        let mut all = [const { Vec::new() }; 4];
        GzipEncoder::new(&text[..]).read_to_end(&mut all[0]).await.unwrap();
        DeflateEncoder::new(&text[..]).read_to_end(&mut all[1]).await.unwrap();
        BrotliEncoder::new(&text[..]).read_to_end(&mut all[2]).await.unwrap();
        ZstdEncoder::new(&text[..]).read_to_end(&mut all[3]).await.unwrap();
        let mut random = numbers();
        let mut next = || random.next().unwrap();
        let (mut good, mut bad) = (0, 0);
        for round in 0..4000 {
            let mut body = all[round % 4].clone();
            for _ in 0..next() % 4 {
                let at = next() % body.len();
                body[at] = next() as u8;
            }
            if next() % 3 == 0 {
                body.truncate(next() % body.len());
            }
            match read_as(["gzip", "deflate", "br", "zstd"][round % 4], body).await {
                Ok((read, _)) => {
                    assert!(read.len() <= MAX);
                    good += 1;
                }
                Err(_) => bad += 1,
            }
        }
        assert!(good > 100 && bad > 100, "{good} {bad}");
    }
}
