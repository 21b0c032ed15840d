-- The audit log belongs to the operator, and no statement runs on it for a tenant: it has no row-level security.

-- The end of each chain, which a writer moves by compare-and-set.
CREATE TABLE audit_chains (
    chain text COLLATE "C" PRIMARY KEY,
    seq int8 NOT NULL DEFAULT 0,
    hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    -- The process that wrote last, other than to prune.
    writer bytea,
    -- The last pruned record. Readers ignore it and those before it.
    pruned_seq int8 NOT NULL DEFAULT 0,
    pruned_hash bytea NOT NULL DEFAULT decode(repeat('00', 32), 'hex'),
    -- The newest record of a pruning.
    prune_seq int8 NOT NULL DEFAULT 0,
    -- The last pruned record whose row is gone, and those before it.
    removed_seq int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- One partition for each month.
CREATE TABLE audit (
    chain text COLLATE "C" NOT NULL,
    seq int8 NOT NULL,
    at int8 NOT NULL,
    hash bytea NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (chain, seq, at)
) PARTITION BY RANGE (at);

-- Against accidents.
CREATE FUNCTION audit_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever appended to';
END $$;
CREATE TRIGGER audit_never_changes BEFORE UPDATE ON audit
    FOR EACH ROW EXECUTE FUNCTION audit_refuse_change();
CREATE TRIGGER audit_never_shrinks BEFORE DELETE ON audit
    FOR EACH ROW WHEN (current_setting('octoprox.prune', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION audit_refuse_change();

-- Attached rather than created as a partition, which would wait for all readers, and all writers for it.
CREATE FUNCTION audit_create_partition(name text, first int8, beyond int8) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass(quote_ident(name)) IS NOT NULL THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('octoprox audit ' || current_schema(), 0));
    IF to_regclass(quote_ident(name)) IS NULL THEN
        EXECUTE format('CREATE TABLE %I (LIKE audit INCLUDING ALL)', name);
        EXECUTE format('ALTER TABLE audit ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', name, first, beyond);
    END IF;
END $$;

-- Whether the partition has a record that was not pruned.
CREATE FUNCTION audit_is_in_use(name text) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    is_in_use bool;
BEGIN
    EXECUTE format(
        'SELECT EXISTS (SELECT FROM audit_chains c, LATERAL
            (SELECT FROM %I p WHERE p.chain = c.chain AND p.seq > c.pruned_seq LIMIT 1) kept)',
        name
    ) INTO is_in_use;
    RETURN is_in_use;
END $$;

-- Drops a partition unless it is in use. It must lock the whole table, and all writers wait meanwhile: where readers
-- do not make room at once, it is left for later.
CREATE FUNCTION audit_drop_partition(name text) RETURNS bool LANGUAGE plpgsql SET lock_timeout = '100ms' AS $$
BEGIN
    IF to_regclass(quote_ident(name)) IS NULL OR audit_is_in_use(name) THEN
        RETURN false;
    END IF;
    LOCK TABLE audit IN ACCESS EXCLUSIVE MODE;
    IF to_regclass(quote_ident(name)) IS NULL OR audit_is_in_use(name) THEN
        RETURN false;
    END IF;
    EXECUTE format('DROP TABLE %I', name);
    RETURN true;
EXCEPTION WHEN lock_not_available THEN
    RETURN false;
END $$;
