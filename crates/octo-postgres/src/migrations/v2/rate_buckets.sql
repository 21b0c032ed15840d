-- Token buckets of rate limits. Times are in microseconds since 1970, and `used` is in 1/60,000,000 of a call. No other
-- column is indexed, so that an update touches no index.
CREATE TABLE rate_buckets (
    rule text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    per_minute int8 NOT NULL,
    used int8 NOT NULL,
    used_at int8 NOT NULL,
    -- Number of the term in which the last slice was leased.
    term int8 NOT NULL,
    -- Calls of the slices of this term, and of the one before it, without the first of each.
    leased int8 NOT NULL,
    leased_before int8 NOT NULL,
    -- Calls of the last slice.
    granted int8 NOT NULL,
    PRIMARY KEY (rule, tenant, subject)
) WITH (fillfactor = 50);
SELECT protect_tenants('rate_buckets');
