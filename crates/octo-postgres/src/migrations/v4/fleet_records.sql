-- Small records that all hubs know, whatever their tenants: the digests of revoked tokens, and the files that belong to
-- the name of a workspace.
CREATE TABLE fleet_records (
    name text COLLATE "C" PRIMARY KEY,
    value text NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
