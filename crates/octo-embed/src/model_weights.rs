//! Shape of the model, and its weights.

use crate::activations::LayerNorm;
use crate::linear::Linear;
use crate::quantized_rows::QuantizedRows;

/// Values per token, and of an embedding.
pub(crate) const HIDDEN: usize = 384;
/// Values per token between the two linear layers that follow attention.
pub(crate) const INNER: usize = 1536;
pub(crate) const LAYERS: usize = 6;
pub(crate) const HEAD_WIDTH: usize = 32;
/// Tokens of the vocabulary.
pub(crate) const WORD_COUNT: usize = 30_522;
/// Longer texts are truncated, as the model was trained.
pub(crate) const MAX_TOKENS: usize = 256;

/// All that the encoder multiplies with.
pub(crate) struct ModelWeights {
    pub(crate) words: QuantizedRows,
    /// For each position, including what the model adds for texts of one part.
    pub(crate) positions: Vec<f32>,
    pub(crate) norm: LayerNorm,
    pub(crate) layers: Vec<Layer>,
}

pub(crate) struct Layer {
    /// Queries, keys and values of all heads, in this order.
    pub(crate) projection: Linear,
    pub(crate) attention_output: Linear,
    pub(crate) attention_norm: LayerNorm,
    pub(crate) inner: Linear,
    pub(crate) outer: Linear,
    pub(crate) outer_norm: LayerNorm,
}
