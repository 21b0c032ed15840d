-- Microseconds since 1970. The clock of the database is the only one.
CREATE FUNCTION now_micros() RETURNS int8 LANGUAGE sql VOLATILE
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 $$;

-- Row-level security by the column `tenant`, for the owner of the table, too. The settings are read in subqueries: once
-- per statement instead of once per row.
CREATE FUNCTION protect_tenants(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
        'CREATE POLICY by_tenant ON %I USING (
            tenant = (SELECT current_setting(''octoprox.tenant'', true))
            OR (SELECT current_setting(''octoprox.all_tenants'', true)) = ''on''
        )',
        name
    );
END $$;
