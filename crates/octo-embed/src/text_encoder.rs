//! The encoder: six layers of attention over the tokens of a text.

use crate::activations::gelu;
use crate::attention::attend;
use crate::embedding::Embedding;
use crate::linear::Linear;
use crate::model_pack::ModelPack;
use crate::model_weights::{HIDDEN, Layer};
use fearless_simd::Level;

/// Makes embeddings of texts. Threads can share one.
pub struct TextEncoder {
    pack: ModelPack,
    level: Level,
}

impl TextEncoder {
    pub fn new(pack: ModelPack) -> Self {
        Self { pack, level: Level::new() }
    }

    /// The model, which a store of embeddings should name: those of two models cannot be compared.
    pub fn pack(&self) -> &ModelPack {
        &self.pack
    }

    /// The ids of the tokens that are embedded: at most 256, with those of start and end.
    pub fn token_ids(&self, text: &str) -> Vec<u16> {
        self.pack.pieces.token_ids(text)
    }

    /// The embedding of a text; what follows the first 256 tokens does not count.
    pub fn embed(&self, text: &str) -> Embedding {
        let mut tokens = self.inputs(&self.token_ids(text));
        for layer in &self.pack.weights.layers {
            self.apply(layer, &mut tokens);
        }
        let mut sums = [0.0; HIDDEN];
        for token in tokens.chunks_exact(HIDDEN) {
            sums.iter_mut().zip(token).for_each(|(sum, value)| *sum += value);
        }
        Embedding::from_floats(&sums)
    }

    fn inputs(&self, ids: &[u16]) -> Vec<f32> {
        let weights = &self.pack.weights;
        let mut tokens = Vec::with_capacity(ids.len() * HIDDEN);
        for (id, position) in ids.iter().zip(weights.positions.chunks_exact(HIDDEN)) {
            let word = weights.words.row(usize::from(*id)).into_iter().flatten();
            tokens.extend(word.zip(position).map(|(word, position)| word + position));
        }
        weights.norm.apply(&mut tokens);
        tokens
    }

    fn apply(&self, layer: &Layer, tokens: &mut [f32]) {
        let attended = attend(&layer.projection.apply(self.level, tokens));
        self.add(tokens, &layer.attention_output, &attended);
        layer.attention_norm.apply(tokens);
        let mut inner = layer.inner.apply(self.level, tokens);
        gelu(&mut inner);
        self.add(tokens, &layer.outer, &inner);
        layer.outer_norm.apply(tokens);
    }

    fn add(&self, tokens: &mut [f32], layer: &Linear, input: &[f32]) {
        let output = layer.apply(self.level, input);
        tokens.iter_mut().zip(output).for_each(|(token, output)| *token += output);
    }
}
