//! The model as one file: magic, version, SHA-256 of the rest, notice, vocabulary, and tensors in a fixed order.

use crate::activations::LayerNorm;
use crate::linear::Linear;
use crate::model_error::ModelError;
use crate::model_weights::{HIDDEN, INNER, LAYERS, Layer, MAX_TOKENS, ModelWeights, WORD_COUNT};
use crate::quantized_rows::QuantizedRows;
use crate::word_pieces::WordPieces;
use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

const MAGIC: &[u8; 8] = b"octotext";
const VERSION: u32 = 1;
/// SHA-256 of the contents of the pack that `pack_from_wheel` makes.
const ALL_MINILM_SHA256: &str = "0f7ba90ea5cc379aba698cdcd0efd61bd289c1036c90a251c830642734e68234";

/// A checked model.
pub struct ModelPack {
    sha256: [u8; SHA256_OUTPUT_LEN],
    notice: String,
    pub(crate) pieces: WordPieces,
    pub(crate) weights: ModelWeights,
}

impl ModelPack {
    /// Reads what `pack_from_wheel` made.
    pub fn parse(bytes: &[u8]) -> Result<Self, ModelError> {
        let mut header = Reader { rest: bytes };
        if header.take(MAGIC.len())? != MAGIC {
            return Err(ModelError::Pack("it is not a model pack"));
        }
        if header.number()? != VERSION {
            return Err(ModelError::Pack("its version is not supported"));
        }
        let sha256 = header.take(SHA256_OUTPUT_LEN)?;
        if digest(&SHA256, header.rest).as_ref() != sha256 {
            return Err(ModelError::Pack("its SHA-256 is wrong"));
        }
        let sha256 = sha256.try_into().map_err(|_| TRUNCATED)?;
        let mut reader = header;
        let notice = reader.text()?.to_owned();
        let pieces = WordPieces::new(reader.text()?)?;
        let weights = reader.weights()?;
        if !reader.rest.is_empty() {
            return Err(ModelError::Pack("it is too long"));
        }
        Ok(Self { sha256, notice, pieces, weights })
    }

    /// SHA-256 of the contents, which identifies the model.
    pub fn sha256(&self) -> &[u8; SHA256_OUTPUT_LEN] {
        &self.sha256
    }

    /// Fails unless this is the pack that `pack_from_wheel` makes: any weights of the right shape can be read.
    pub fn check_origin(&self) -> Result<(), ModelError> {
        let sha256: String = self.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
        match sha256 == ALL_MINILM_SHA256 {
            true => Ok(()),
            false => Err(ModelError::Pack("its weights are not those of all-MiniLM-L6-v2")),
        }
    }

    /// Origin and licence of the weights.
    pub fn notice(&self) -> &str {
        &self.notice
    }
}

const TRUNCATED: ModelError = ModelError::Pack("it is truncated");

/// What is left of a pack. Sizes are compared with it before anything is copied.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ModelError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, ModelError> {
        let bytes = self.take(size_of::<u32>())?.try_into().map_err(|_| TRUNCATED)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn text(&mut self) -> Result<&'a str, ModelError> {
        let length = usize::try_from(self.number()?).map_err(|_| TRUNCATED)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| ModelError::Pack("a text in it is not UTF-8"))
    }

    fn floats(&mut self, count: usize) -> Result<Vec<f32>, ModelError> {
        let (floats, _) = self.take(count * size_of::<f32>())?.as_chunks();
        let floats: Vec<f32> = floats.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match floats.iter().all(|value| value.is_finite()) {
            true => Ok(floats),
            false => Err(ModelError::Pack("a weight is not finite")),
        }
    }

    fn rows(&mut self, count: usize, width: usize) -> Result<QuantizedRows, ModelError> {
        let scales = self.floats(count)?;
        let values = self.take(count * width)?.iter().map(|byte| byte.cast_signed()).collect();
        QuantizedRows::new(width, values, scales)
    }

    fn linear(&mut self, outputs: usize, inputs: usize) -> Result<Linear, ModelError> {
        Ok(Linear { rows: self.rows(outputs, inputs)?, bias: self.floats(outputs)? })
    }

    fn norm(&mut self) -> Result<LayerNorm, ModelError> {
        Ok(LayerNorm { weight: self.floats(HIDDEN)?, bias: self.floats(HIDDEN)? })
    }

    fn weights(&mut self) -> Result<ModelWeights, ModelError> {
        Ok(ModelWeights {
            words: self.rows(WORD_COUNT, HIDDEN)?,
            positions: self.floats(MAX_TOKENS * HIDDEN)?,
            norm: self.norm()?,
            layers: (0..LAYERS).map(|_| self.layer()).collect::<Result<_, _>>()?,
        })
    }

    fn layer(&mut self) -> Result<Layer, ModelError> {
        Ok(Layer {
            projection: self.linear(3 * HIDDEN, HIDDEN)?,
            attention_output: self.linear(HIDDEN, HIDDEN)?,
            attention_norm: self.norm()?,
            inner: self.linear(INNER, HIDDEN)?,
            outer: self.linear(HIDDEN, INNER)?,
            outer_norm: self.norm()?,
        })
    }
}

/// Writes what `ModelPack::parse` reads.
pub(crate) fn write_pack(notice: &str, vocabulary: &str, weights: &ModelWeights) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.text(notice);
    writer.text(vocabulary);
    writer.rows(&weights.words);
    writer.floats(&weights.positions);
    writer.norm(&weights.norm);
    for layer in &weights.layers {
        writer.linear(&layer.projection);
        writer.linear(&layer.attention_output);
        writer.norm(&layer.attention_norm);
        writer.linear(&layer.inner);
        writer.linear(&layer.outer);
        writer.norm(&layer.outer_norm);
    }
    sealed(&writer.contents)
}

/// The contents behind the header.
fn sealed(contents: &[u8]) -> Vec<u8> {
    [MAGIC, &VERSION.to_le_bytes()[..], digest(&SHA256, contents).as_ref(), contents].concat()
}

#[derive(Default)]
struct Writer {
    contents: Vec<u8>,
}

impl Writer {
    fn text(&mut self, text: &str) {
        // Texts in a wheel are far shorter; a longer one would not be parsed.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        self.contents.extend(length.to_le_bytes());
        self.contents.extend(text.as_bytes());
    }

    fn floats(&mut self, floats: &[f32]) {
        self.contents.extend(floats.iter().flat_map(|value| value.to_le_bytes()));
    }

    fn rows(&mut self, rows: &QuantizedRows) {
        self.floats(rows.scales());
        self.contents.extend(rows.values().iter().map(|value| value.cast_unsigned()));
    }

    fn linear(&mut self, layer: &Linear) {
        self.rows(&layer.rows);
        self.floats(&layer.bias);
    }

    fn norm(&mut self, norm: &LayerNorm) {
        self.floats(&norm.weight);
        self.floats(&norm.bias);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_encoder::TextEncoder;

    const HEADER: usize = MAGIC.len() + size_of::<u32>() + SHA256_OUTPUT_LEN;
    const NOTICE: &str = "a notice";

    /// A model of the right size without any sense.
    fn pack() -> Vec<u8> {
        let value = |n: usize| (n.wrapping_mul(2_654_435_761) >> 8 & 0xff) as f32 / 4096.0;
        let floats = |count: usize| (0..count).map(value).collect::<Vec<_>>();
        let rows = |count: usize, width: usize| QuantizedRows::quantize(&floats(count * width), width);
        let linear = |outputs, inputs| Linear { rows: rows(outputs, inputs), bias: floats(outputs) };
        let norm = || LayerNorm { weight: vec![1.0; HIDDEN], bias: floats(HIDDEN) };
        let layer = |_| Layer {
            projection: linear(3 * HIDDEN, HIDDEN),
            attention_output: linear(HIDDEN, HIDDEN),
            attention_norm: norm(),
            inner: linear(INNER, HIDDEN),
            outer: linear(HIDDEN, INNER),
            outer_norm: norm(),
        };
        let weights = ModelWeights {
            words: rows(WORD_COUNT, HIDDEN),
            positions: floats(MAX_TOKENS * HIDDEN),
            norm: norm(),
            layers: (0..LAYERS).map(layer).collect(),
        };
        write_pack(NOTICE, &vocabulary(), &weights)
    }

    fn vocabulary() -> String {
        let filler = (3..WORD_COUNT).map(|number| format!("filler{number}\n"));
        ["[UNK]\n", "[CLS]\n", "[SEP]\n"].map(str::to_owned).into_iter().chain(filler).collect()
    }

    fn reason(bytes: &[u8]) -> &'static str {
        match ModelPack::parse(bytes) {
            Err(ModelError::Pack(reason)) => reason,
            Err(ModelError::Wheel(reason)) => panic!("{reason}"),
            Ok(_) => "",
        }
    }

    #[test]
    fn packs_that_are_damaged_are_refused() {
        let good = pack();
        assert_eq!(reason(&good), "");
        for length in (0..HEADER).chain([HEADER, HEADER + 1, good.len() / 2, good.len() - 1]) {
            assert_ne!(reason(&good[..length]), "", "{length}");
        }
        let mut damaged = good.clone();
        for at in (0..HEADER).step_by(4).chain((HEADER..good.len()).step_by(good.len() / 8)) {
            damaged[at] ^= 1;
            assert_ne!(reason(&damaged), "", "{at}");
            damaged[at] ^= 1;
        }
        damaged.push(0);
        assert_eq!(reason(&damaged), "its SHA-256 is wrong");
    }

    /// The hash proves nothing about who made a pack.
    #[test]
    fn packs_with_a_right_hash_are_checked_too() {
        let contents = &pack()[HEADER..];
        let vocabulary_at = size_of::<u32>() + NOTICE.len();
        let scales_at = vocabulary_at + size_of::<u32>() + vocabulary().len();
        let with = |at: usize, bytes: &[u8]| {
            let mut changed = contents.to_vec();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            sealed(&changed)
        };
        let length = contents.len();
        for (bytes, expected) in [
            (sealed(&[]), "it is truncated"),
            (sealed(&contents[..3]), "it is truncated"),
            (sealed(&contents[..vocabulary_at]), "it is truncated"),
            (sealed(&contents[..scales_at]), "it is truncated"),
            (sealed(&contents[..scales_at + 1]), "it is truncated"),
            (sealed(&contents[..length / 2]), "it is truncated"),
            (sealed(&contents[..length - 1]), "it is truncated"),
            (sealed(&[contents, &[0]].concat()), "it is too long"),
            (with(0, &[0xff; 4]), "it is truncated"),
            (with(vocabulary_at, &[0xff; 4]), "it is truncated"),
            (with(vocabulary_at, &[0; 4]), "its vocabulary is too small"),
            (with(size_of::<u32>(), &[0xff]), "a text in it is not UTF-8"),
            (with(vocabulary_at + 5, b"\xff"), "a text in it is not UTF-8"),
            (with(vocabulary_at + 5, b"x"), "its vocabulary lacks special tokens"),
            (with(scales_at, &f32::NAN.to_le_bytes()), "a weight is not finite"),
            (with(length - 4, &f32::INFINITY.to_le_bytes()), "a weight is not finite"),
        ] {
            assert_eq!(reason(&bytes), expected);
        }
    }

    #[test]
    fn weights_of_any_size_are_no_panic() {
        let mut bytes = pack()[HEADER..].to_vec();
        let scales_at = 2 * size_of::<u32>() + NOTICE.len() + vocabulary().len();
        let largest = f32::MAX.to_le_bytes();
        bytes[scales_at..scales_at + 400].as_chunks_mut().0.fill(largest);
        let end = bytes.len();
        bytes[end - 400..].as_chunks_mut().0.fill(largest);
        let encoder = TextEncoder::new(ModelPack::parse(&sealed(&bytes)).unwrap());
        let embedding = encoder.embed("filler3 filler4");
        assert!(crate::similarity(&embedding, &embedding).is_finite());
        assert_eq!(encoder.pack().notice(), NOTICE);
    }
}
