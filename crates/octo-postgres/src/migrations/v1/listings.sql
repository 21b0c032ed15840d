CREATE TABLE listings (
    server text COLLATE "C" PRIMARY KEY,
    mark text NOT NULL,
    text text NOT NULL
);
