//! Bodies of every encoding, complete and truncated.

use crate::ground::{ask, error_kind, net, serve};
use async_compression::tokio::bufread::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZstdEncoder};
use axum::Router;
use axum::http::header;
use axum::routing::{any, get};
use octo_grants::net::{NetRequest, NetResponse};
use octo_model::{Kind, ToolError};
use std::net::SocketAddr;
use tokio::io::AsyncReadExt;

/// Encodes like a server, from the first encoding to the last.
pub async fn encoded(body: &[u8], encodings: &str) -> Vec<u8> {
    let mut body = body.to_vec();
    for encoding in encodings.split(", ") {
        let mut out = Vec::new();
        match encoding {
            "gzip" => GzipEncoder::new(&body[..]).read_to_end(&mut out).await.unwrap(),
            "br" => BrotliEncoder::with_quality(&body[..], async_compression::Level::Fastest)
                .read_to_end(&mut out)
                .await
                .unwrap(),
            "zstd" => ZstdEncoder::new(&body[..]).read_to_end(&mut out).await.unwrap(),
            "deflate" => DeflateEncoder::new(&body[..]).read_to_end(&mut out).await.unwrap(),
            _ => unreachable!("{encoding}"),
        };
        body = out;
    }
    body
}

/// Serves these bytes with this encoding.
pub async fn serving(body: Vec<u8>, encoding: &'static str) -> SocketAddr {
    let page = move || async move { ([(header::CONTENT_ENCODING, encoding)], body) };
    serve(Router::new().route("/", get(page))).await
}

async fn fetched(body: Vec<u8>, encoding: &'static str, max_bytes: usize) -> Result<NetResponse, ToolError> {
    let server = serving(body, encoding).await;
    net(&["127.0.0.1"]).send(NetRequest { max_bytes, ..ask(&format!("http://{server}/")) }).await
}

fn sample() -> Vec<u8> {
    (0..20_000_u32).flat_map(|number| (number.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()).collect()
}

#[tokio::test]
async fn bodies_come_back_as_they_were() {
    let body = sample();
    for encoding in ["gzip", "deflate", "br", "zstd", "gzip, br", "zstd, gzip"] {
        let answer = fetched(encoded(&body, encoding).await, encoding, 1 << 20).await.unwrap();
        assert!(answer.body == body && !answer.truncated, "{encoding}");
        assert!(!answer.headers.contains_key(header::CONTENT_ENCODING), "{encoding}");
        assert!(!answer.headers.contains_key(header::CONTENT_LENGTH), "{encoding}");
    }
    for (encoding, kept) in [("identity", true), ("", true), ("martian", true)] {
        let answer = fetched(body.clone(), encoding, 1 << 20).await.unwrap();
        assert!(
            answer.body == body && answer.headers.contains_key(header::CONTENT_ENCODING) == kept,
            "{encoding}"
        );
    }
}

#[tokio::test]
async fn deflate_may_have_a_zlib_header() {
    let mut body = vec![0x78, 0x9c];
    body.extend(encoded(b"inside zlib", "deflate").await);
    body.extend([1, 2, 3, 4]);
    assert_eq!(&fetched(body, "deflate", 100).await.unwrap().body[..], b"inside zlib");
}

#[tokio::test]
async fn several_members_are_one_body() {
    for encoding in ["gzip", "zstd"] {
        let mut body = encoded(b"one ", encoding).await;
        body.extend(encoded(b"two", encoding).await);
        assert_eq!(&fetched(body, encoding, 100).await.unwrap().body[..], b"one two", "{encoding}");
    }
}

#[tokio::test]
async fn exactly_the_limit_is_whole_and_one_byte_more_is_cut() {
    let body = sample();
    for encoding in ["gzip", "deflate", "br", "zstd", "identity"] {
        let sent = if encoding == "identity" { body.clone() } else { encoded(&body, encoding).await };
        for (max, truncated) in
            [(body.len() + 1, false), (body.len(), false), (body.len() - 1, true), (1, true), (0, true)]
        {
            let answer = fetched(sent.clone(), encoding, max).await.unwrap();
            assert_eq!(
                (answer.body.len(), answer.truncated),
                (max.min(body.len()), truncated),
                "{encoding} {max}"
            );
            assert!(body.starts_with(&answer.body), "{encoding} {max}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_decoded_is_an_error() {
    let broken = encoded(&sample(), "gzip").await;
    for (body, encoding) in [
        (b"plain text".to_vec(), "gzip"),
        (b"plain text".to_vec(), "br"),
        (b"plain text".to_vec(), "zstd"),
        (broken[..broken.len() / 2].to_vec(), "gzip"),
        (encoded(b"x", "gzip, gzip, gzip").await, "gzip, gzip, gzip"),
    ] {
        assert_eq!(error_kind(fetched(body, encoding, 1 << 20).await), Some(Kind::Unavailable), "{encoding}");
    }
}

#[tokio::test]
async fn an_answer_without_a_body_is_whole() {
    let head = || async { ([(header::CONTENT_ENCODING, "gzip"), (header::CONTENT_LENGTH, "1000")], "") };
    let empty = || async { ([(header::CONTENT_ENCODING, "gzip")], "") };
    let router = Router::new().route("/head", any(head)).route("/empty", any(empty));
    let server = serve(router).await;
    let net = net(&["127.0.0.1"]);
    let head = NetRequest { method: "HEAD".parse().unwrap(), ..ask(&format!("http://{server}/head")) };
    let head = net.send(head).await.unwrap();
    assert!(head.body.is_empty() && !head.truncated && head.headers["content-length"] == "1000");
    assert!(net.send(ask(&format!("http://{server}/empty"))).await.unwrap().body.is_empty());
}
