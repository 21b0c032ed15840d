//! Bearer tokens. Only their hashes are stored.

use aws_lc_rs::error::Unspecified;

/// Generates a token: 256 random bits, with a prefix that secret scanners can detect.
pub fn generate_token() -> Result<String, Unspecified> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes)?;
    Ok(format!("octo_{}", octo_model::hex(&bytes)))
}
