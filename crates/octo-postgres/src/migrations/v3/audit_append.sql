-- Moves the end of a chain and adds the records, or does neither if the chain has another end. A function, because the
-- server plans its statements once per session. It names the schema, so that a session needs no settings.
DO $migration$ BEGIN
EXECUTE format($function$
CREATE FUNCTION audit_append(
    chain text, before_seq int8, before_hash bytea, head_hash bytea,
    times int8[], hashes bytea[], records bytea[], writer bytea
) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
    UPDATE %1$I.audit_chains AS known SET seq = $2 + cardinality($5), hash = $4, writer = $8
        WHERE known.chain = $1 AND known.seq = $2 AND known.hash = $3;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO %1$I.audit (chain, seq, at, hash, record)
        SELECT $1, $2 + item.number, item.at, item.hash, item.record
        FROM unnest($5, $6, $7) WITH ORDINALITY AS item (at, hash, record, number);
    RETURN true;
END $$
$function$, current_schema());
END $migration$;
