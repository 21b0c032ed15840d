//! Hostile bodies: small ones that decode to huge ones, endless ones, slow ones.

use crate::bodies::{encoded, serving};
use crate::ground::{ask, error_kind, net};
use async_compression::tokio::bufread::ZstdEncoder;
use async_compression::zstd::CParameter;
use octo_grants::net::NetRequest;
use octo_model::Kind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const MAX_BODY_BYTES: usize = 1 << 20;

#[tokio::test]
async fn a_small_body_that_becomes_huge_is_cut() {
    let zeros = vec![0; 64 << 20];
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, gzip", "br, zstd"] {
        let bomb = encoded(&zeros, encoding).await;
        assert!(bomb.len() < 200_000, "{encoding} {}", bomb.len());
        let server = serving(bomb, encoding).await;
        let answer = net(&["127.0.0.1"])
            .send(NetRequest { max_bytes: MAX_BODY_BYTES, ..ask(&format!("http://{server}/")) })
            .await;
        let answer = answer.unwrap();
        assert_eq!((answer.body.len(), answer.truncated), (MAX_BODY_BYTES, true), "{encoding}");
        assert!(answer.took < Duration::from_secs(5), "{encoding} {:?}", answer.took);
    }
}

#[tokio::test]
async fn a_body_cannot_ask_for_a_huge_window() {
    let body = vec![7; 1 << 20];
    let mut wide = Vec::new();
    let window = [CParameter::window_log(27), CParameter::content_size_flag(false)];
    let level = async_compression::Level::Default;
    ZstdEncoder::with_quality_and_params(&body[..], level, &window).read_to_end(&mut wide).await.unwrap();
    let server = serving(wide, "zstd").await;
    assert_eq!(
        error_kind(net(&["127.0.0.1"]).send(ask(&format!("http://{server}/"))).await),
        Some(Kind::Unavailable)
    );
}

/// Responds with these headers and then repeats a chunk up to a count, with a pause; counts the bytes.
async fn pouring(
    headers: &'static str,
    piece: Vec<u8>,
    times: usize,
    pause: Duration,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let counter = sent.clone();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").as_bytes()).await;
        for _ in 0..times {
            if stream.write_all(&piece).await.is_err() {
                return;
            }
            counter.fetch_add(piece.len(), Ordering::SeqCst);
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    });
    (address, sent)
}

#[tokio::test]
async fn a_gigabyte_in_chunks_is_cut_and_not_read_to_its_end() {
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend(vec![b'x'; 0x10000]);
    chunk.extend(b"\r\n");
    let (server, sent) = pouring("transfer-encoding: chunked", chunk, 16384, Duration::ZERO).await;
    let answer = net(&["127.0.0.1"])
        .send(NetRequest { max_bytes: MAX_BODY_BYTES, ..ask(&format!("http://{server}/")) })
        .await
        .unwrap();
    assert_eq!((answer.body.len(), answer.truncated), (MAX_BODY_BYTES, true));
    // Unread data is in the kernel's buffers, which are a few megabytes.
    assert!(sent.load(Ordering::SeqCst) < 32 << 20, "{sent:?}");
}

#[tokio::test]
async fn an_encoded_body_that_says_nothing_without_end_is_cut() {
    // A frame that decoders skip.
    let mut nothing = 0x184d_2a50_u32.to_le_bytes().to_vec();
    nothing.extend(65_528_u32.to_le_bytes());
    nothing.extend(vec![0; 65_528]);
    let (server, sent) = pouring("content-encoding: zstd", nothing, 16384, Duration::ZERO).await;
    let answer = net(&["127.0.0.1"])
        .send(NetRequest { max_bytes: MAX_BODY_BYTES, ..ask(&format!("http://{server}/")) })
        .await
        .unwrap();
    assert_eq!((answer.body.len(), answer.truncated), (0, true));
    assert!(sent.load(Ordering::SeqCst) < 32 << 20, "{sent:?}");
}

#[tokio::test]
async fn a_slow_body_ends_with_the_time() {
    let slow = Duration::from_millis(50);
    let limit = Duration::from_millis(700);
    for headers in ["content-length: 100000", "transfer-encoding: chunked", "content-encoding: gzip"] {
        let (server, _) = pouring(headers, b"1\r\nx\r\n".to_vec(), 1000, slow).await;
        let start = Instant::now();
        let answer = net(&["127.0.0.1"])
            .send(NetRequest { timeout: limit, ..ask(&format!("http://{server}/")) })
            .await;
        let expected = if headers.contains("gzip") { Kind::Unavailable } else { Kind::Timeout };
        assert_eq!(error_kind(answer), Some(expected), "{headers}");
        assert!(start.elapsed() < limit * 3, "{headers}");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_ends_with_the_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let answer =
        net(&["127.0.0.1"]).send(NetRequest { timeout: Duration::from_millis(300), ..ask(&url) }).await;
    assert_eq!(error_kind(answer), Some(Kind::Timeout));
}

#[tokio::test]
async fn headers_without_end_are_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n").await;
        while stream.write_all(format!("x-y: {}\r\n", "z".repeat(1000)).as_bytes()).await.is_ok() {}
    });
    assert_eq!(error_kind(net(&["127.0.0.1"]).send(ask(&url)).await), Some(Kind::Unavailable));
}
