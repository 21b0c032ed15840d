//! Ring buffers of page events with serial numbers.

use super::{ConsoleLine, Dialog, Request};
use std::collections::VecDeque;

/// Capacity of a buffer.
const MAX_ITEMS: usize = 200;

/// Maximum length of a text that a page controls.
const MAX_TEXT_BYTES: usize = 2_000;

pub(super) trait HasSerial {
    fn serial(&mut self) -> &mut u64;
}

macro_rules! impl_has_serial {
    ($($kind:ty),*) => { $(impl HasSerial for $kind { fn serial(&mut self) -> &mut u64 { &mut self.serial } })* };
}
impl_has_serial!(ConsoleLine, Dialog, Request);

pub(super) struct RingBuffer<T> {
    items: VecDeque<T>,
    last: u64,
}

impl<T> Default for RingBuffer<T> {
    fn default() -> Self {
        Self { items: VecDeque::new(), last: 0 }
    }
}

impl<T: HasSerial + Clone> RingBuffer<T> {
    /// Assigns a serial number, and drops the oldest item if the buffer is full.
    pub fn push(&mut self, mut item: T) -> u64 {
        self.last += 1;
        *item.serial() = self.last;
        self.items.push_back(item);
        if self.items.len() > MAX_ITEMS {
            self.items.pop_front();
        }
        self.last
    }

    pub fn get_mut(&mut self, serial: u64) -> Option<&mut T> {
        let back = usize::try_from(self.last.checked_sub(serial)?).ok()?;
        let at = self.items.len().checked_sub(back + 1)?;
        self.items.get_mut(at)
    }

    pub fn after(&self, serial: u64) -> Vec<T> {
        let new =
            usize::try_from(self.last.saturating_sub(serial)).unwrap_or(MAX_ITEMS).min(self.items.len());
        self.items.iter().skip(self.items.len() - new).cloned().collect()
    }

    pub fn last(&self) -> u64 {
        self.last
    }
}

/// Truncates a text that a page controls.
pub(super) fn truncate(mut text: String) -> String {
    if text.len() > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_and_are_found_by_number() {
        let mut ring = RingBuffer::default();
        for at in 1..=250 {
            let line = ConsoleLine { serial: 0, level: "log".into(), text: at.to_string(), location: None };
            assert_eq!(ring.push(line), at);
        }
        assert_eq!(ring.after(0).len(), MAX_ITEMS);
        assert_eq!(ring.after(248).iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["249", "250"]);
        assert!(ring.after(250).is_empty() && ring.after(999).is_empty());
        assert_eq!(ring.get_mut(51).unwrap().text, "51");
        assert!(ring.get_mut(50).is_none() && ring.get_mut(251).is_none());
    }
}
