-- One memory per subject of a tenant. Whoever changes a memory locks this row first. Ids of entities are counted
-- within a memory.
CREATE TABLE memory_owners (
    id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    bytes int8 NOT NULL DEFAULT 0,
    last_entity int8 NOT NULL DEFAULT 0,
    last_change int8 NOT NULL,
    UNIQUE (tenant, subject)
);

-- `folded` and `kind_folded` are keys of names, of limited length.
CREATE TABLE memory_entities (
    owner int8 NOT NULL,
    id int8 NOT NULL,
    facts int8 NOT NULL,
    last_row int8 NOT NULL,
    updated int8 NOT NULL,
    since int8 NOT NULL,
    until int8 NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    folded text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    kind_folded text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX memory_entities_by_name ON memory_entities (owner, folded, until, id);
CREATE INDEX memory_entities_by_kind ON memory_entities (owner, kind_folded, folded, until, id);

CREATE TABLE memory_kinds (
    owner int8 NOT NULL,
    live int8 NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    kind_folded text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, kind_folded)
);

CREATE TABLE memory_former_kinds (
    owner int8 NOT NULL,
    entity int8 NOT NULL,
    until int8 NOT NULL,
    id int8 GENERATED ALWAYS AS IDENTITY,
    tenant text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    kind_folded text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, entity, until, id)
);

CREATE TABLE memory_facts (
    owner int8 NOT NULL,
    id int8 NOT NULL,
    origin int8 NOT NULL,
    since int8 NOT NULL,
    until int8 NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    source text,
    call text NOT NULL,
    PRIMARY KEY (owner, id)
);

CREATE TABLE memory_links (
    owner int8 NOT NULL,
    id int8 GENERATED ALWAYS AS IDENTITY,
    source int8 NOT NULL,
    target int8 NOT NULL,
    since int8 NOT NULL,
    until int8 NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    relation text COLLATE "C" NOT NULL,
    call text NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX memory_links_out ON memory_links (owner, source, relation, target, until, id);
CREATE INDEX memory_links_in ON memory_links (owner, target, until, id);

-- The rows that have a word: of an entity itself, or of one of its observations. The index has all columns, so that a
-- search need not read the table.
CREATE TABLE memory_words (
    owner int8 NOT NULL,
    row_id int8 NOT NULL,
    past bool NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    word text COLLATE "C" NOT NULL,
    PRIMARY KEY (owner, past, word, row_id) INCLUDE (tenant)
);

SELECT protect_tenants('memory_owners');
SELECT protect_tenants('memory_entities');
SELECT protect_tenants('memory_kinds');
SELECT protect_tenants('memory_former_kinds');
SELECT protect_tenants('memory_facts');
SELECT protect_tenants('memory_links');
SELECT protect_tenants('memory_words');
