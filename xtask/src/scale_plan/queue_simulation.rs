//! Simulated queues: random arrivals and fixed service times.

use super::random_numbers::RandomNumbers;
use std::collections::VecDeque;

/// What a simulation saw. Times are in seconds.
pub struct QueueReport {
    pub utilisation: f64,
    pub mean_wait: f64,
    pub p99_wait: f64,
    pub max_length: usize,
}

/// `servers` that each take `service` seconds for an arrival, and one queue (M/D/c).
pub fn simulate_servers(rate: f64, service: f64, servers: usize, arrivals: usize) -> QueueReport {
    let mut random = RandomNumbers::new(7);
    let mut free_at = vec![0.0_f64; servers];
    // Starts of service of those that wait.
    let mut waiting: VecDeque<f64> = VecDeque::new();
    let (mut now, mut waits, mut max_length) = (0.0, Vec::with_capacity(arrivals), 0);
    for _ in 0..arrivals {
        now += random.interval(rate);
        while waiting.front().is_some_and(|start| *start <= now) {
            waiting.pop_front();
        }
        let Some(server) = free_at.iter_mut().min_by(|one, two| one.total_cmp(two)) else { break };
        let start = server.max(now);
        *server = start + service;
        if start > now {
            waiting.push_back(start);
            max_length = max_length.max(waiting.len());
        }
        waits.push(start - now);
    }
    let busy = arrivals as f64 * service;
    report(waits, busy / (now * servers as f64), max_length)
}

/// One writer that takes everything that is queued, and needs `fixed` seconds and `per_row` for each.
pub fn simulate_groups(rate: f64, fixed: f64, per_row: f64, arrivals: usize) -> QueueReport {
    let mut random = RandomNumbers::new(11);
    let mut times: VecDeque<f64> = VecDeque::new();
    let (mut next, mut now, mut busy) = (random.interval(rate), 0.0_f64, 0.0);
    let (mut waits, mut max_length) = (Vec::with_capacity(arrivals), 0);
    while waits.len() < arrivals {
        now = now.max(next);
        while next <= now {
            times.push_back(next);
            next += random.interval(rate);
        }
        max_length = max_length.max(times.len());
        let took = fixed + per_row * times.len() as f64;
        now += took;
        busy += took;
        // A record is safe when its group is committed.
        waits.extend(times.drain(..).map(|queued| now - queued));
    }
    report(waits, busy / now, max_length)
}

fn report(mut waits: Vec<f64>, utilisation: f64, max_length: usize) -> QueueReport {
    let mean_wait = waits.iter().sum::<f64>() / waits.len() as f64;
    waits.sort_by(f64::total_cmp);
    let p99_wait = waits.get(waits.len() * 99 / 100).copied().unwrap_or_default();
    QueueReport { utilisation, mean_wait, p99_wait, max_length }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_near(value: f64, expected: f64, share: f64) {
        assert!((value - expected).abs() <= share * expected, "{value} is not near {expected}");
    }

    #[test]
    fn one_server_waits_as_the_formula_says() {
        for load in [0.2, 0.6, 0.8] {
            let queue = simulate_servers(load / 1e-3, 1e-3, 1, 400_000);
            is_near(queue.utilisation, load, 0.02);
            is_near(queue.mean_wait, 1e-3 * load / (2.0 * (1.0 - load)), 0.05);
        }
    }

    #[test]
    fn more_servers_wait_less() {
        let one = simulate_servers(600.0, 1e-3, 1, 200_000);
        let four = simulate_servers(2_400.0, 1e-3, 4, 200_000);
        is_near(four.utilisation, 0.6, 0.02);
        assert!(four.mean_wait < one.mean_wait / 3.0);
    }

    #[test]
    fn groups_grow_with_the_load() {
        let low = simulate_groups(100.0, 2e-3, 1e-5, 50_000);
        let high = simulate_groups(50_000.0, 2e-3, 1e-5, 500_000);
        is_near(low.mean_wait, 2.2e-3, 0.1);
        // A record waits for the group before its own, half of it on average, and for its own. Both have n = λ(a + bn) rows.
        let group = 2e-3 / (1.0 - 50_000.0 * 1e-5);
        is_near(high.mean_wait, 1.5 * group, 0.05);
        assert!(high.max_length > low.max_length);
    }
}
