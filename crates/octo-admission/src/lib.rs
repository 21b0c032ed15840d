//! Admission of concurrent work: slots that tenants and callers share fairly, the order in which they wait, and memory for
//! large messages.

mod call_slots;
mod fair_slots;
mod receive_budget;
mod slot_shares;
mod turn_queue;

pub use call_slots::{CallSlots, SourceSlot};
pub use fair_slots::{FairSlot, FairSlots, ShedReason, SlotLimits};
pub use receive_budget::ReceiveBudget;
pub use turn_queue::{QueueLimits, TurnQueue};
