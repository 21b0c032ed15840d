//! The arithmetic of a fleet: how many nodes of each kind, from the load and the measured costs.

use super::measured::{
    BUS_CPU_PER_MESSAGE, BYTES_PER_ROW, COMMIT_SECONDS, COMMIT_SECONDS_PER_ROW, DATABASE_CPU_PER_ROW,
    FRONT_CPU_PER_CALL, MESSAGE_BYTES_PER_CALL, MESSAGES_PER_CALL, ROWS_PER_CALL, ROWS_PER_PRIMARY,
    SESSION_BYTES, SESSIONS_PER_FRONT,
};

/// What the fleet is to do.
pub struct Load {
    pub sessions: f64,
    pub calls_per_second: f64,
    /// Share of the calls that workers run.
    pub worker_share: f64,
}

/// What is chosen.
pub struct Layout {
    /// The others carry the load of one that is lost.
    pub regions: f64,
    /// Of a core that is planned with.
    pub utilisation: f64,
    pub front_cores: f64,
    pub bus_cores: f64,
    pub database_cores: f64,
}

pub const LOAD: Load = Load { sessions: 1e6, calls_per_second: 1e5, worker_share: 0.5 };
pub const LAYOUT: Layout =
    Layout { regions: 3.0, utilisation: 0.6, front_cores: 1.0, bus_cores: 2.0, database_cores: 8.0 };

/// Nodes of one region, each of which can carry its share while another region is lost.
pub struct FleetPlan {
    pub fronts: f64,
    pub bus_servers: f64,
    pub primaries: f64,
}

impl FleetPlan {
    pub fn new(load: &Load, layout: &Layout) -> Self {
        let regions = layout.regions - 1.0;
        let nodes = |total: f64, per_node: f64| (total / regions / per_node).ceil();
        let usable = |cores: f64| cores * layout.utilisation;
        let by_calls = nodes(load.calls_per_second * FRONT_CPU_PER_CALL, usable(layout.front_cores));
        let by_sessions = nodes(load.sessions, SESSIONS_PER_FRONT);
        let rows = rows_per_second(load);
        let by_cpu = nodes(rows * DATABASE_CPU_PER_ROW, usable(layout.database_cores));
        let by_rows = nodes(rows, ROWS_PER_PRIMARY);
        let bus_cpu = messages_per_second(load) * BUS_CPU_PER_MESSAGE;
        Self {
            fronts: by_calls.max(by_sessions),
            // Three, so that a cluster survives the loss of one.
            bus_servers: nodes(bus_cpu, usable(layout.bus_cores)).max(3.0),
            primaries: by_cpu.max(by_rows),
        }
    }

    /// Share of the whole load that a region carries while another one is lost.
    fn region_share(layout: &Layout) -> f64 {
        1.0 / (layout.regions - 1.0)
    }

    pub fn calls_per_front(&self, load: &Load, layout: &Layout) -> f64 {
        load.calls_per_second * Self::region_share(layout) / self.fronts
    }

    pub fn front_utilisation(&self, load: &Load, layout: &Layout) -> f64 {
        self.calls_per_front(load, layout) * FRONT_CPU_PER_CALL / layout.front_cores
    }

    pub fn messages_per_server(&self, load: &Load, layout: &Layout) -> f64 {
        messages_per_second(load) * Self::region_share(layout) / self.bus_servers
    }

    pub fn bus_utilisation(&self, load: &Load, layout: &Layout) -> f64 {
        self.messages_per_server(load, layout) * BUS_CPU_PER_MESSAGE / layout.bus_cores
    }

    pub fn rows_per_primary(&self, load: &Load, layout: &Layout) -> f64 {
        rows_per_second(load) * Self::region_share(layout) / self.primaries
    }

    /// Each front has one writer, whose groups have n = λ(a + bn) rows: all that arrive during a commit of a + bn.
    pub fn commits_per_primary(&self, load: &Load, layout: &Layout) -> f64 {
        let rows = self.calls_per_front(load, layout) * ROWS_PER_CALL;
        let group = rows * COMMIT_SECONDS / (1.0 - rows * COMMIT_SECONDS_PER_ROW);
        rows / group.max(1.0) * self.fronts / self.primaries
    }

    pub fn memory_per_front(load: &Load, layout: &Layout, fronts: f64) -> f64 {
        load.sessions * Self::region_share(layout) / fronts * SESSION_BYTES
    }
}

pub fn rows_per_second(load: &Load) -> f64 {
    load.calls_per_second * ROWS_PER_CALL
}

pub fn messages_per_second(load: &Load) -> f64 {
    load.calls_per_second * load.worker_share * MESSAGES_PER_CALL
}

pub fn bus_bytes_per_second(load: &Load) -> f64 {
    load.calls_per_second * load.worker_share * MESSAGE_BYTES_PER_CALL
}

pub fn audit_bytes_per_day(load: &Load) -> f64 {
    rows_per_second(load) * BYTES_PER_ROW * 86_400.0
}

/// CPU time of a call in front, bus and database, in seconds.
pub fn cpu_per_call(load: &Load) -> f64 {
    FRONT_CPU_PER_CALL
        + load.worker_share * MESSAGES_PER_CALL * BUS_CPU_PER_MESSAGE
        + ROWS_PER_CALL * DATABASE_CPU_PER_ROW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_less_is_carried_by_the_others() {
        let plan = FleetPlan::new(&LOAD, &LAYOUT);
        assert!(plan.front_utilisation(&LOAD, &LAYOUT) <= LAYOUT.utilisation);
        assert!(plan.bus_utilisation(&LOAD, &LAYOUT) <= LAYOUT.utilisation);
        assert!(plan.rows_per_primary(&LOAD, &LAYOUT) <= ROWS_PER_PRIMARY);
        assert!(plan.fronts * (LAYOUT.regions - 1.0) * SESSIONS_PER_FRONT >= LOAD.sessions);
        let twice = Load { calls_per_second: 2.0 * LOAD.calls_per_second, ..LOAD };
        assert!(FleetPlan::new(&twice, &LAYOUT).primaries > plan.primaries);
    }
}
