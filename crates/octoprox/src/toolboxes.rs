//! The list of toolboxes: the only place that names them all.

use octo_grants::{Clock, Doors};
use octo_toolkit::Toolbox;

/// Every toolbox of this build, in the order of their names.
pub fn toolboxes() -> Vec<Toolbox> {
    vec![tools_time::toolbox()]
}

/// What tools may touch.
pub fn doors() -> Doors {
    Doors::default().with(Clock::system())
}
