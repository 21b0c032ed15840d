CREATE TABLE results (
    number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    handle text COLLATE "C" NOT NULL UNIQUE,
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    call text NOT NULL,
    size int8 NOT NULL,
    created int8 NOT NULL
);
CREATE INDEX results_by_age ON results (created);
CREATE TABLE result_chunks (
    handle text COLLATE "C" NOT NULL REFERENCES results (handle) ON DELETE CASCADE,
    tenant text COLLATE "C" NOT NULL,
    number int8 NOT NULL,
    bytes bytea NOT NULL,
    PRIMARY KEY (handle, number)
);
SELECT protect_tenants('results');
SELECT protect_tenants('result_chunks');
