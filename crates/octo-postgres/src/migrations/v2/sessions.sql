-- Only what a client has set; the rest of a session is in its id.
CREATE TABLE sessions (
    id text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    log_level text,
    subscriptions text[] NOT NULL DEFAULT '{}',
    has_ended bool NOT NULL DEFAULT false,
    changed timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, id)
);
CREATE INDEX sessions_by_age ON sessions (changed);
CREATE TABLE session_streams (
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    number int8 NOT NULL,
    -- The lease of the process that writes it.
    owner text COLLATE "C" NOT NULL,
    request text NOT NULL,
    next int8 NOT NULL,
    question int8,
    call text,
    is_finished bool NOT NULL,
    changed timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, session, number)
);
CREATE INDEX session_streams_by_age ON session_streams (changed);
CREATE TABLE session_events (
    tenant text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    stream int8 NOT NULL,
    sequence int8 NOT NULL,
    is_droppable bool NOT NULL,
    text bytea NOT NULL,
    PRIMARY KEY (tenant, session, stream, sequence),
    FOREIGN KEY (tenant, session, stream) REFERENCES session_streams ON DELETE CASCADE
);
SELECT protect_tenants('sessions');
SELECT protect_tenants('session_streams');
SELECT protect_tenants('session_events');
