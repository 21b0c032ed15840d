//! The face as a whole, against a real hub.

pub mod bed;
mod calls;
mod doors;
mod drain;
mod full;
mod load;
mod openapi;
mod ports;
mod socket;
mod table;
mod upstream;
mod wire;
