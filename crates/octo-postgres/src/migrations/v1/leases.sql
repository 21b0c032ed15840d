-- A released lease stays for a while, so that its token is never seen again.
CREATE TABLE leases (
    name text COLLATE "C" PRIMARY KEY,
    holder text,
    until timestamptz NOT NULL,
    token int8 NOT NULL
);
CREATE SEQUENCE lease_tokens;
