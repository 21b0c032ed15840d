CREATE TABLE runs (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    path text NOT NULL,
    name text NOT NULL,
    text text NOT NULL,
    hash text NOT NULL,
    params text NOT NULL,
    status text NOT NULL,
    outputs text,
    error text,
    begun int8 NOT NULL,
    changed int8 NOT NULL,
    -- Token of the newest lease. Writes with an older one are refused.
    fence int8 NOT NULL
);
CREATE INDEX runs_of_callers ON runs (tenant, subject, number);
CREATE INDEX ended_runs ON runs (changed) WHERE status <> 'running';
CREATE TABLE steps (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    key text COLLATE "C" NOT NULL,
    status text NOT NULL,
    output text,
    error text,
    attempts text NOT NULL,
    UNIQUE (run, key)
);
SELECT protect_tenants('runs');
SELECT protect_tenants('steps');
