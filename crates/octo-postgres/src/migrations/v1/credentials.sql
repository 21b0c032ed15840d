-- Sealed credentials. Issuers come from authorization servers: they may be longer than an index allows, and contain
-- what text cannot.
CREATE TABLE credentials (
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('shared', 'person')),
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    issuer bytea NOT NULL,
    issuer_digest bytea NOT NULL GENERATED ALWAYS AS (sha256(issuer)) STORED,
    revision int8 NOT NULL,
    secret bytea NOT NULL,
    PRIMARY KEY (kind, tenant, subject, server, issuer_digest)
);

-- The sealed list of all revisions, in one row. Whoever changes credentials changes it first.
CREATE TABLE credential_revisions (
    is_only bool PRIMARY KEY DEFAULT true CHECK (is_only),
    revision int8 NOT NULL,
    sealed bytea NOT NULL
);

CREATE TABLE pending_logins (
    id text COLLATE "C" PRIMARY KEY,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('shared', 'person')),
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    server text COLLATE "C" NOT NULL,
    expires int8 NOT NULL,
    secret bytea NOT NULL,
    UNIQUE (kind, tenant, subject, server)
);

-- What is shared belongs to no tenant: only the hub's own transactions see it, and use it for whoever may use the
-- server.
ALTER TABLE credentials ENABLE ROW LEVEL SECURITY;
ALTER TABLE credentials FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON credentials USING (
    (kind = 'person' AND tenant = current_setting('octoprox.tenant', true))
    OR current_setting('octoprox.all_tenants', true) = 'on'
);
ALTER TABLE pending_logins ENABLE ROW LEVEL SECURITY;
ALTER TABLE pending_logins FORCE ROW LEVEL SECURITY;
CREATE POLICY tenants ON pending_logins USING (
    (kind = 'person' AND tenant = current_setting('octoprox.tenant', true))
    OR current_setting('octoprox.all_tenants', true) = 'on'
);
