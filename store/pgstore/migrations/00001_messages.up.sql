-- The tables of a Belfry database. Anybody may read them while Belfry runs.
--
-- Instants (…_at, …_until) are Unix milliseconds in UTC. 9007199254740991 is "never"; -62135596800000 is "not given".
-- States: 1 scheduled, 2 leased, 3 done, 4 dead, 5 canceled.
-- Text is compared byte for byte (COLLATE "C"); an empty one is "none".

-- What can still be delivered. Every index is paid for by each message: accept, and, since a lease moves visible_at, claim.
-- Rows come and go all the time, so the table is vacuumed early and without pauses.
CREATE TABLE {t}messages (
	n            bigint NOT NULL,               -- names the row, for ever
	queue        text   COLLATE "C" NOT NULL,
	id           text   COLLATE "C" NOT NULL,
	state        bigint NOT NULL,               -- 1 or 2
	priority     bigint NOT NULL,               -- lower first
	visible_at   bigint NOT NULL,               -- the claim key: due_at, or the lease's end, or never while a gate is closed
	due_at       bigint NOT NULL,               -- the instant of the next delivery
	fire_at      bigint NOT NULL,               -- the instant that was asked for
	created_at   bigint NOT NULL,
	updated_at   bigint NOT NULL,
	version      bigint NOT NULL,               -- grows with every write; a lease's token has the one of its claim
	attempts     bigint NOT NULL,
	claims       bigint NOT NULL,
	owner        text   COLLATE "C" NOT NULL,   -- the node that holds the lease
	epoch        bigint NOT NULL,               -- and its incarnation
	stop         bigint NOT NULL,               -- 1: the holder is asked to stop
	waits        bigint NOT NULL,               -- how many messages a closed gate still waits for
	watched      bigint NOT NULL,               -- 1: gates may wait for this one
	expires_at   bigint,
	kind         text   COLLATE "C" NOT NULL,
	target       text   COLLATE "C" NOT NULL,
	address      text   COLLATE "C" NOT NULL,
	content_type text   COLLATE "C" NOT NULL,
	group_name   text   COLLATE "C" NOT NULL,
	parent       text   COLLATE "C" NOT NULL,
	dedup_key    text   COLLATE "C" NOT NULL,
	dedup_until  bigint,
	retain_done  bigint NOT NULL,               -- nanoseconds; -1: for ever
	retain_dead  bigint NOT NULL,
	timeout_ns   bigint NOT NULL,
	last_error   text   COLLATE "C" NOT NULL,
	details      text   COLLATE "C" NOT NULL,   -- JSON: params, headers, retry
	metadata     bytea,
	payload      bytea,                         -- NULL is not the same as empty
	history      text   COLLATE "C" NOT NULL,   -- the last 20 attempts, a line of JSON each
	PRIMARY KEY (queue, id)
) WITH (
	fillfactor = 85,
	autovacuum_vacuum_scale_factor = 0.02,
	autovacuum_vacuum_threshold = 5000,
	autovacuum_vacuum_insert_scale_factor = 0.1,
	autovacuum_analyze_scale_factor = 0.05,
	autovacuum_vacuum_cost_delay = 0
);

CREATE UNIQUE INDEX {p}messages_n ON {t}messages (n);
-- Claims walk the priorities of a queue and read each in the order of visible_at.
CREATE INDEX {p}messages_claim ON {t}messages (queue, priority, visible_at, id);
CREATE INDEX {p}messages_created ON {t}messages (queue, created_at, id);
-- Lists by fire_at merge three parts of a queue: what waits for its first delivery is in the order of fire_at in the index
-- for claims already; these are the others.
CREATE INDEX {p}messages_leased ON {t}messages (queue, fire_at, id) WHERE state = 2;
CREATE INDEX {p}messages_moved ON {t}messages (queue, fire_at, id) WHERE state = 1 AND (due_at <> fire_at OR waits > 0);
-- What few messages have.
CREATE UNIQUE INDEX {p}messages_dedup ON {t}messages (queue, dedup_key) WHERE dedup_key <> '';
CREATE INDEX {p}messages_group ON {t}messages (queue, group_name, created_at, id) WHERE group_name <> '';
CREATE INDEX {p}messages_parent ON {t}messages (parent) WHERE parent <> '';

-- What has reached its end and is kept.
CREATE TABLE {t}finished (
	n            bigint NOT NULL,
	queue        text   COLLATE "C" NOT NULL,
	id           text   COLLATE "C" NOT NULL,
	state        bigint NOT NULL,               -- 3, 4 or 5
	priority     bigint NOT NULL,
	due_at       bigint NOT NULL,
	fire_at      bigint NOT NULL,
	created_at   bigint NOT NULL,
	updated_at   bigint NOT NULL,
	finished_at  bigint NOT NULL,
	purge_at     bigint NOT NULL,               -- from when on it may be removed
	version      bigint NOT NULL,
	attempts     bigint NOT NULL,
	claims       bigint NOT NULL,
	expires_at   bigint,
	kind         text   COLLATE "C" NOT NULL,
	target       text   COLLATE "C" NOT NULL,
	address      text   COLLATE "C" NOT NULL,
	content_type text   COLLATE "C" NOT NULL,
	group_name   text   COLLATE "C" NOT NULL,
	parent       text   COLLATE "C" NOT NULL,
	dedup_key    text   COLLATE "C" NOT NULL,
	dedup_until  bigint,                        -- until when the key is held although the message is finished
	retain_done  bigint NOT NULL,
	retain_dead  bigint NOT NULL,
	timeout_ns   bigint NOT NULL,
	last_error   text   COLLATE "C" NOT NULL,
	details      text   COLLATE "C" NOT NULL,
	metadata     bytea,
	payload      bytea,
	history      text   COLLATE "C" NOT NULL,
	PRIMARY KEY (queue, id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE UNIQUE INDEX {p}finished_n ON {t}finished (n);
CREATE INDEX {p}finished_created ON {t}finished (queue, created_at, id);
CREATE INDEX {p}finished_fire ON {t}finished (queue, fire_at, id);
CREATE INDEX {p}finished_finished ON {t}finished (queue, finished_at, id);
CREATE INDEX {p}finished_purge ON {t}finished (purge_at) WHERE purge_at < 9007199254740991;
CREATE INDEX {p}finished_dedup ON {t}finished (queue, dedup_key, dedup_until) WHERE dedup_key <> '';
CREATE INDEX {p}finished_group ON {t}finished (queue, group_name, created_at, id) WHERE group_name <> '';
CREATE INDEX {p}finished_parent ON {t}finished (parent) WHERE parent <> '';

-- The ids of follow-ups that left no message.
CREATE TABLE {t}traces (
	queue    text   COLLATE "C" NOT NULL,
	id       text   COLLATE "C" NOT NULL,
	purge_at bigint NOT NULL,
	version  bigint NOT NULL,
	PRIMARY KEY (queue, id)
);

CREATE INDEX {p}traces_purge ON {t}traces (purge_at);

-- Closed gates: which messages a message still waits for.
CREATE TABLE {t}gates (
	queue  text COLLATE "C" NOT NULL,
	member text COLLATE "C" NOT NULL,           -- the id that is waited for
	waiter text COLLATE "C" NOT NULL,           -- the id that waits
	PRIMARY KEY (queue, member, waiter)
);

CREATE INDEX {p}gates_waiter ON {t}gates (queue, waiter);

-- Where the rate limit of a queue stands: its theoretical arrival time in microseconds.
CREATE TABLE {t}rates (
	queue   text   COLLATE "C" PRIMARY KEY,
	arrival bigint NOT NULL
);

-- Small named records: configuration, registries, nodes.
CREATE TABLE {t}docs (
	name    text   COLLATE "C" PRIMARY KEY,
	version bigint NOT NULL,
	body    bytea
);

CREATE TABLE {t}counters (
	name  text   COLLATE "C" PRIMARY KEY,
	value bigint NOT NULL
);

INSERT INTO {t}counters VALUES
	('revision', 0),  -- of the docs
	('version', 0);   -- no message has a larger one

-- Names of rows, taken by a thousand.
CREATE SEQUENCE {t}rows INCREMENT 1000;

-- Every message, for people to read.
CREATE VIEW {t}overview AS
	SELECT queue, id, CASE state WHEN 1 THEN 'scheduled' ELSE 'leased' END AS state, kind, target, address, priority,
		to_timestamp(fire_at / 1000.0) AS fire_at, to_timestamp(created_at / 1000.0) AS created_at,
		NULL::timestamptz AS finished_at, attempts, last_error
	FROM {t}messages
	UNION ALL
	SELECT queue, id, CASE state WHEN 3 THEN 'done' WHEN 4 THEN 'dead' ELSE 'canceled' END, kind, target, address, priority,
		to_timestamp(fire_at / 1000.0), to_timestamp(created_at / 1000.0),
		to_timestamp(finished_at / 1000.0), attempts, last_error
	FROM {t}finished;
