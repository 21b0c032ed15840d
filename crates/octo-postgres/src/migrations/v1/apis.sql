-- APIs that callers have loaded. Callers ask for any name, and documents are files: both may contain what text cannot.
CREATE TABLE apis (
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    name bytea NOT NULL,
    revision text COLLATE "C" NOT NULL,
    settings text NOT NULL,
    secret bytea,
    document bytea NOT NULL,
    PRIMARY KEY (tenant, subject, name)
);
SELECT protect_tenants('apis');
