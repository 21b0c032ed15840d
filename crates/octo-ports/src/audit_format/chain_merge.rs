//! Merges items of several chains by time. Those of one chain stay in order, whatever their times.

use std::collections::VecDeque;

/// Items of one chain, oldest first.
pub struct ChainItems<T> {
    pub items: VecDeque<T>,
    /// The chain may have further items.
    pub is_cut: bool,
}

/// Removes the next item; none once it cannot be known.
pub fn next_item<T>(chains: &mut [ChainItems<T>], at: impl Fn(&T) -> i64) -> Option<T> {
    if chains.iter().any(|chain| chain.is_cut && chain.items.is_empty()) {
        return None;
    }
    let first = |chain: &&mut ChainItems<T>| chain.items.front().map_or(i64::MAX, &at);
    chains.iter_mut().filter(|chain| !chain.items.is_empty()).min_by_key(first)?.items.pop_front()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(chains: &[(&[i64], bool)]) -> Vec<i64> {
        let chain = |(items, is_cut): &(&[i64], bool)| ChainItems {
            items: items.iter().copied().collect(),
            is_cut: *is_cut,
        };
        let mut chains: Vec<_> = chains.iter().map(chain).collect();
        std::iter::from_fn(|| next_item(&mut chains, |at| *at)).collect()
    }

    #[test]
    fn chains_are_merged_by_time_and_stay_in_order() {
        assert_eq!(merged(&[(&[1, 4], false), (&[2, 3, 9], false), (&[], false)]), [1, 2, 3, 4, 9]);
        // A clock that went back.
        assert_eq!(merged(&[(&[5, 1, 6], false), (&[2, 7], false)]), [2, 5, 1, 6, 7]);
        // What follows 4 may precede 9.
        assert_eq!(merged(&[(&[1, 4], true), (&[2, 9], false)]), [1, 2, 4]);
    }
}
