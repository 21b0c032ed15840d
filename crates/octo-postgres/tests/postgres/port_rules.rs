//! The rules of the ports, directly and through a pooler.

mod on_postgres {
    use crate::postgres_schema::PostgresSchema;
    use octo_ports::conformance::Open;

    fn new_backend() -> Box<Open> {
        let schema = PostgresSchema::blocking();
        Box::new(move || schema.stores())
    }

    octo_ports::conformance_tests!(shared new_backend);
}

/// Each transaction may have another session of the server, and notifications are not delivered.
mod behind_pg_bouncer {
    use crate::pg_bouncer::PgBouncer;
    use crate::postgres_schema::PostgresSchema;
    use octo_ports::conformance::Open;

    fn new_backend() -> Box<Open> {
        let mut schema = PostgresSchema::blocking();
        let bouncer = PgBouncer::start(&schema.admin);
        schema.options.dsn = bouncer.dsn();
        Box::new(move || {
            let _ = &bouncer;
            schema.stores()
        })
    }

    octo_ports::conformance_tests! { new_backend;
        apis: durable;
        audit: recorded_in_order, verified_and_anchored, pruned;
        changes: wake_a_waiter, reported_to_all_handles, of_a_run_and_its_lease;
        credentials: replaced_by_revision, taken_once;
        leases: held_by_one, expired_and_fenced;
        memory: upserted_and_linked, listed_in_pages;
        pins: first_one_stays, held_until_accepted;
        rate_buckets: leased_in_slices, returned_unused, never_leased_twice;
        results: stored_whole;
        runs: stored_with_steps_in_order, fenced;
        client_sessions: streams_are_read_elsewhere, questions_are_taken_once;
        fleet_records: first_value_stays, changes_wake;
    }
}
