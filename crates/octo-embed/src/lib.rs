//! Text embeddings with all-MiniLM-L6-v2: a model pack, made from a package that ships the weights, a WordPiece tokenizer,
//! and an encoder with int8 weights. No I/O.

mod activations;
mod attention;
mod dot_products;
mod embedding;
mod linear;
mod model_error;
mod model_pack;
mod model_weights;
mod model_wheel;
mod quantized_rows;
mod text_encoder;
mod word_pieces;

pub use embedding::{Embedding, similarity};
pub use model_error::ModelError;
pub use model_pack::ModelPack;
pub use model_wheel::{MAX_WHEEL_BYTES, pack_from_wheel};
pub use text_encoder::TextEncoder;
