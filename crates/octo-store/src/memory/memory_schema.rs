//! Tables of the memory, in a separate file: index maintenance must never delay the audit log.
//! Every row has a period of validity.

use crate::database::DatabaseSpec;

/// The index contains only words, no texts and no positions. `secure-delete`: removed words are gone
/// immediately, and not only when segments are next merged. `automerge`: segments are merged by eights
/// instead of fours, which leaves a search a few more segments to read and a change much less to write.
pub(crate) const DATABASE: DatabaseSpec = DatabaseSpec {
    file: "memory.db",
    migrations: &[
        "
    CREATE TABLE owners (
        id INTEGER PRIMARY KEY,
        tenant TEXT NOT NULL,
        subject TEXT NOT NULL,
        bytes INTEGER NOT NULL DEFAULT 0,
        UNIQUE (tenant, subject)
    ) STRICT;
    CREATE TABLE entities (
        id INTEGER PRIMARY KEY,
        owner INTEGER NOT NULL,
        name TEXT NOT NULL,
        folded TEXT NOT NULL,
        kind TEXT NOT NULL,
        kind_folded TEXT NOT NULL,
        facts INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX entities_by_name ON entities (owner, folded, until);
    CREATE INDEX entities_by_kind ON entities (owner, kind_folded, folded, until);
    CREATE TABLE kinds (
        owner INTEGER NOT NULL,
        kind_folded TEXT NOT NULL,
        kind TEXT NOT NULL,
        live INTEGER NOT NULL,
        PRIMARY KEY (owner, kind_folded)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE former_kinds (
        id INTEGER PRIMARY KEY,
        entity INTEGER NOT NULL,
        kind TEXT NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX former_kinds_by_entity ON former_kinds (entity, until);
    CREATE TABLE facts (
        id INTEGER PRIMARY KEY,
        text TEXT NOT NULL,
        origin INTEGER NOT NULL,
        source TEXT,
        call TEXT NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE links (
        id INTEGER PRIMARY KEY,
        source INTEGER NOT NULL,
        relation TEXT NOT NULL,
        target INTEGER NOT NULL,
        call TEXT NOT NULL,
        since INTEGER NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX links_out ON links (source, relation, target, until);
    CREATE INDEX links_in ON links (target, until);
    CREATE VIRTUAL TABLE live_words USING fts5(
        words, content = '', columnsize = 0, detail = none, tokenize = \"ascii tokenchars '_='\"
    );
    CREATE VIRTUAL TABLE past_words USING fts5(
        words, content = '', columnsize = 0, detail = none, tokenize = \"ascii tokenchars '_='\"
    );
    INSERT INTO live_words (live_words, rank) VALUES ('secure-delete', 1);
    INSERT INTO past_words (past_words, rank) VALUES ('secure-delete', 1);
",
        "
    INSERT INTO live_words (live_words, rank) VALUES ('automerge', 8);
    INSERT INTO past_words (past_words, rank) VALUES ('automerge', 8);
",
    ],
};
