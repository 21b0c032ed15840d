//! How evenly rows fall on the partitions of the ledger.

use super::random_numbers::RandomNumbers;

/// Share of the rows that the fullest of `partitions` gets if each tenant belongs to one, and tenants have the shares of
/// a Zipf distribution.
pub fn by_tenant(tenants: usize, exponent: f64, partitions: usize) -> f64 {
    let mut random = RandomNumbers::new(3);
    let mut rows = vec![0.0; partitions];
    let mut total = 0.0;
    for rank in 1..=tenants {
        let share = (rank as f64).powf(-exponent);
        total += share;
        if let Some(partition) = rows.get_mut(random.below(partitions)) {
            *partition += share;
        }
    }
    rows.iter().fold(0.0_f64, |most, rows| most.max(*rows)) / total
}

/// The same if each front writes to one partition in turn, and takes any call.
pub fn by_front(fronts: usize, partitions: usize) -> f64 {
    fronts.div_ceil(partitions) as f64 / fronts as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_tenant_fills_its_partition() {
        assert!((by_tenant(100_000, 0.0, 10) - 0.1).abs() < 0.01);
        let even = 1.0 / 16.0;
        assert!(by_tenant(10_000, 1.0, 16) > 1.5 * even);
        assert!((by_front(64, 16) - even).abs() < 1e-9);
        assert!((by_front(65, 16) - 5.0 / 65.0).abs() < 1e-9);
    }
}
