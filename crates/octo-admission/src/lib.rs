//! Admission of concurrent work: slots that tenants and callers share fairly, and the order in which they wait.

mod call_slots;
mod fair_slots;
mod slot_shares;
mod turn_queue;

pub use call_slots::{CallSlots, SourceSlot};
pub use fair_slots::{FairSlot, FairSlots, ShedReason, SlotLimits};
pub use turn_queue::{QueueLimits, TurnQueue};
