//! Bearer tokens: made once, known by their hash afterwards.

use aws_lc_rs::error::Unspecified;

/// A fresh token: 256 bits from the system, with a beginning that scanners for leaked secrets can look for.
pub fn generate_token() -> Result<String, Unspecified> {
    let mut bytes = [0; 32];
    aws_lc_rs::rand::fill(&mut bytes)?;
    Ok(format!("octo_{}", octo_model::hex(&bytes)))
}
