-- The tables of a Belfry file. Anybody may read them while Belfry runs:
--
--   sqlite3 -readonly belfry.db "SELECT * FROM overview WHERE state = 'dead'"
--
-- Instants (…_at, …_until) are Unix milliseconds in UTC. 9007199254740991 is "never"; -62135596800000 is "not given".
-- States: 1 scheduled, 2 leased, 3 done, 4 dead, 5 canceled.
-- Text is compared byte for byte; an empty one is "none".
--
-- The tables are not STRICT: that would make SQLite copy every page that a settlement touches (see the query finish).

-- +goose Up

-- What can still be delivered. Every index is paid for by each message: accept, claim and settle.
CREATE TABLE messages (
	n            INTEGER PRIMARY KEY,  -- names the row: the message's first version, the accept instant in microseconds
	queue        TEXT    NOT NULL,
	id           TEXT    NOT NULL,
	state        INTEGER NOT NULL,     -- 1 or 2
	priority     INTEGER NOT NULL,     -- lower first
	visible_at   INTEGER NOT NULL,     -- the claim key: due_at, or the lease's end, or never while a gate is closed
	due_at       INTEGER NOT NULL,     -- the instant of the next delivery
	fire_at      INTEGER NOT NULL,     -- the instant that was asked for
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	version      INTEGER NOT NULL,     -- grows with every write; a lease's token has the one of its claim
	attempts     INTEGER NOT NULL,
	claims       INTEGER NOT NULL,
	owner        TEXT    NOT NULL,     -- the node that holds the lease
	epoch        INTEGER NOT NULL,     -- and its incarnation
	stop         INTEGER NOT NULL,     -- 1: the holder is asked to stop
	waits        INTEGER NOT NULL,     -- how many messages a closed gate still waits for
	watched      INTEGER NOT NULL,     -- 1: gates may wait for this one
	expires_at   INTEGER,
	kind         TEXT    NOT NULL,
	target       TEXT    NOT NULL,
	address      TEXT    NOT NULL,
	content_type TEXT    NOT NULL,
	group_name   TEXT    NOT NULL,
	parent       TEXT    NOT NULL,
	dedup_key    TEXT    NOT NULL,
	dedup_until  INTEGER,
	retain_done  INTEGER NOT NULL,     -- nanoseconds; -1: for ever
	retain_dead  INTEGER NOT NULL,
	timeout_ns   INTEGER NOT NULL,
	last_error   TEXT    NOT NULL,
	details      TEXT    NOT NULL,     -- JSON: params, headers, retry
	body         INTEGER NOT NULL,     -- 1: metadata and payload are in bodies
	metadata     BLOB,
	payload      BLOB,                 -- NULL is not the same as empty
	history      TEXT    NOT NULL      -- the last 20 attempts, a line of JSON each
);

CREATE UNIQUE INDEX messages_id ON messages (queue, id);
-- Claims walk the priorities of a queue and read each in the order of visible_at.
CREATE INDEX messages_claim ON messages (queue, priority, visible_at, id);
CREATE INDEX messages_created ON messages (queue, created_at, id);
-- Lists by fire_at merge three parts of a queue. By far the largest one, what waits for its first delivery, is in the
-- order of fire_at in messages_claim already; these are the others. An index of all messages by fire_at would halve the
-- speed of accepting them, since their instants lie scattered over it.
CREATE INDEX messages_leased ON messages (queue, fire_at, id, visible_at) WHERE state = 2;
CREATE INDEX messages_moved ON messages (queue, fire_at, id) WHERE state = 1 AND (due_at <> fire_at OR waits > 0);
-- What few messages have.
CREATE UNIQUE INDEX messages_dedup ON messages (queue, dedup_key) WHERE dedup_key <> '';
CREATE INDEX messages_group ON messages (queue, group_name, created_at, id) WHERE group_name <> '';
CREATE INDEX messages_parent ON messages (parent) WHERE parent <> '';

-- What has reached its end and is kept.
CREATE TABLE finished (
	n            INTEGER PRIMARY KEY,
	queue        TEXT    NOT NULL,
	id           TEXT    NOT NULL,
	state        INTEGER NOT NULL,     -- 3, 4 or 5
	priority     INTEGER NOT NULL,
	due_at       INTEGER NOT NULL,
	fire_at      INTEGER NOT NULL,
	created_at   INTEGER NOT NULL,
	updated_at   INTEGER NOT NULL,
	finished_at  INTEGER NOT NULL,
	purge_at     INTEGER NOT NULL,     -- from when on it may be removed
	version      INTEGER NOT NULL,
	attempts     INTEGER NOT NULL,
	claims       INTEGER NOT NULL,
	expires_at   INTEGER,
	kind         TEXT    NOT NULL,
	target       TEXT    NOT NULL,
	address      TEXT    NOT NULL,
	content_type TEXT    NOT NULL,
	group_name   TEXT    NOT NULL,
	parent       TEXT    NOT NULL,
	dedup_key    TEXT    NOT NULL,
	dedup_until  INTEGER,              -- until when the key is held although the message is finished
	retain_done  INTEGER NOT NULL,
	retain_dead  INTEGER NOT NULL,
	timeout_ns   INTEGER NOT NULL,
	last_error   TEXT    NOT NULL,
	details      TEXT    NOT NULL,
	body         INTEGER NOT NULL,
	metadata     BLOB,
	payload      BLOB,
	history      TEXT    NOT NULL
);

CREATE UNIQUE INDEX finished_id ON finished (queue, id);
CREATE INDEX finished_created ON finished (queue, created_at, id);
CREATE INDEX finished_fire ON finished (queue, fire_at, id);
CREATE INDEX finished_finished ON finished (queue, finished_at, id, state);
CREATE INDEX finished_purge ON finished (purge_at) WHERE purge_at < 9007199254740991;
CREATE INDEX finished_dedup ON finished (queue, dedup_key, dedup_until) WHERE dedup_key <> '';
CREATE INDEX finished_group ON finished (queue, group_name, created_at, id) WHERE group_name <> '';
CREATE INDEX finished_parent ON finished (parent) WHERE parent <> '';

-- Metadata and payloads that are too large to be rewritten with their messages, live or finished.
CREATE TABLE bodies (
	n        INTEGER PRIMARY KEY,
	metadata BLOB,
	payload  BLOB
);

-- The ids of follow-ups that left no message.
CREATE TABLE traces (
	queue    TEXT    NOT NULL,
	id       TEXT    NOT NULL,
	purge_at INTEGER NOT NULL,
	version  INTEGER NOT NULL,
	PRIMARY KEY (queue, id)
) WITHOUT ROWID;

CREATE INDEX traces_purge ON traces (purge_at);

-- Closed gates: which messages a message still waits for.
CREATE TABLE gates (
	queue  TEXT NOT NULL,
	member TEXT NOT NULL,  -- the id that is waited for
	waiter TEXT NOT NULL,  -- the id that waits
	PRIMARY KEY (queue, member, waiter)
) WITHOUT ROWID;

CREATE INDEX gates_waiter ON gates (queue, waiter);

-- Where the rate limit of a queue stands: its theoretical arrival time in microseconds.
CREATE TABLE rates (
	queue   TEXT    NOT NULL PRIMARY KEY,
	arrival INTEGER NOT NULL
) WITHOUT ROWID;

-- Small named records: configuration, registries.
CREATE TABLE docs (
	name    TEXT    NOT NULL PRIMARY KEY,
	version INTEGER NOT NULL,
	body    BLOB
) WITHOUT ROWID;

CREATE TABLE counters (
	name  TEXT    NOT NULL PRIMARY KEY,
	value INTEGER NOT NULL
) WITHOUT ROWID;

INSERT INTO counters VALUES
	('revision', 0),  -- of the docs
	('version', 0),   -- no message has a larger one
	('ping', 0);

-- Every message, for people to read.
CREATE VIEW overview AS
	SELECT queue, id, CASE state WHEN 1 THEN 'scheduled' ELSE 'leased' END AS state, kind, target, address, priority,
		strftime('%FT%H:%M:%fZ', fire_at / 1000.0, 'unixepoch') AS fire_at,
		strftime('%FT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
		NULL AS finished_at, attempts, last_error
	FROM messages
	UNION ALL
	SELECT queue, id, CASE state WHEN 3 THEN 'done' WHEN 4 THEN 'dead' ELSE 'canceled' END, kind, target, address, priority,
		strftime('%FT%H:%M:%fZ', fire_at / 1000.0, 'unixepoch'),
		strftime('%FT%H:%M:%fZ', created_at / 1000.0, 'unixepoch'),
		strftime('%FT%H:%M:%fZ', finished_at / 1000.0, 'unixepoch'), attempts, last_error
	FROM finished;

-- +goose Down
DROP VIEW overview;
DROP TABLE counters;
DROP TABLE docs;
DROP TABLE rates;
DROP TABLE gates;
DROP TABLE traces;
DROP TABLE bodies;
DROP TABLE finished;
DROP TABLE messages;
