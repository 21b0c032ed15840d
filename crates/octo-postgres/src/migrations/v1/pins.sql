-- Definitions of servers, for all tenants. Keys are what servers call their items: they may be longer than an index
-- allows, and contain what text cannot.

-- Whoever writes pins of a server locks its row.
CREATE TABLE pin_servers (
    server text COLLATE "C" PRIMARY KEY,
    identity text COLLATE "C" NOT NULL,
    revision int8 NOT NULL DEFAULT 0,
    position int8 GENERATED ALWAYS AS IDENTITY
);

CREATE TABLE pins (
    server text COLLATE "C" NOT NULL REFERENCES pin_servers,
    kind text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    key_digest bytea NOT NULL GENERATED ALWAYS AS (sha256(key)) STORED,
    hash text COLLATE "C" NOT NULL,
    text text NOT NULL,
    PRIMARY KEY (server, kind, key_digest)
);

-- Definitions that are not pinned: those that wait for a decision, and those that were reported.
CREATE TABLE seen_pins (
    server text COLLATE "C" NOT NULL REFERENCES pin_servers,
    kind text COLLATE "C" NOT NULL,
    key bytea NOT NULL,
    key_digest bytea NOT NULL GENERATED ALWAYS AS (sha256(key)) STORED,
    hash text COLLATE "C" NOT NULL,
    text text NOT NULL,
    since int8 NOT NULL DEFAULT extract(epoch FROM clock_timestamp()) * 1000000,
    is_pending bool NOT NULL,
    position int8 GENERATED ALWAYS AS IDENTITY,
    PRIMARY KEY (server, kind, key_digest, hash)
);
