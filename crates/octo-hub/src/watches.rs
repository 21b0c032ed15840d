//! How many clients watch each resource: a source hears of the first and of the last.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

#[derive(Default)]
pub struct Watches(Mutex<HashMap<String, usize>>);

impl Watches {
    /// Counts one more or one less, and tells whether the source must hear of it.
    pub fn changes(&self, key: &str, on: bool) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if on {
            let count = counts.entry(key.to_owned()).or_default();
            *count += 1;
            return *count == 1;
        }
        match counts.get_mut(key) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            Some(_) => counts.remove(key).is_some(),
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_count() {
        let watches = Watches::default();
        let steps =
            [(true, true), (true, false), (false, false), (false, true), (false, false), (true, true)];
        for (on, told) in steps {
            assert_eq!(watches.changes("a", on), told);
        }
    }
}
