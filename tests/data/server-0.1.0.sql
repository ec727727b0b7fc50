BEGIN TRANSACTION;
CREATE TABLE accounts (
    id INTEGER NOT NULL,
    name VARCHAR(64) NOT NULL,
    folded VARCHAR(64) NOT NULL,
    role VARCHAR(16) NOT NULL,
    state VARCHAR(16) NOT NULL,
    team VARCHAR(64),
    created_ns BIGINT NOT NULL,
    PRIMARY KEY (id),
    UNIQUE (folded),
    UNIQUE (name)
);
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE aside (
    id INTEGER NOT NULL,
    run VARCHAR(16) NOT NULL,
    at_ns BIGINT NOT NULL,
    why TEXT NOT NULL,
    answer TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE audit (
    id INTEGER NOT NULL,
    at_ns BIGINT NOT NULL,
    account VARCHAR(64),
    token INTEGER,
    action VARCHAR(64) NOT NULL,
    subject VARCHAR(128) NOT NULL,
    details TEXT NOT NULL,
    PRIMARY KEY (id)
);
CREATE TABLE brakes (
    subject VARCHAR(64) NOT NULL,
    "by" VARCHAR(64) NOT NULL,
    why TEXT NOT NULL,
    at_ns BIGINT NOT NULL,
    PRIMARY KEY (subject)
);
CREATE TABLE facts (
    "key" VARCHAR(32) NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY ("key")
);
CREATE TABLE gradings (
    run VARCHAR(16) NOT NULL,
    submission VARCHAR(16) NOT NULL,
    state VARCHAR(16) NOT NULL,
    version INTEGER NOT NULL,
    account INTEGER NOT NULL,
    owner VARCHAR(70) NOT NULL,
    problem VARCHAR(64) NOT NULL,
    problem_sha256 VARCHAR(64) NOT NULL,
    final BOOLEAN NOT NULL,
    mode VARCHAR(16) NOT NULL,
    pool VARCHAR(128) NOT NULL,
    job_class VARCHAR(16) NOT NULL,
    share VARCHAR(70) NOT NULL,
    position BIGINT NOT NULL,
    expected_ns BIGINT NOT NULL,
    device_ns BIGINT,
    charged BOOLEAN DEFAULT 0 NOT NULL,
    queued_ns BIGINT NOT NULL,
    tries INTEGER NOT NULL,
    leases INTEGER NOT NULL,
    alone BOOLEAN DEFAULT 0 NOT NULL,
    lease VARCHAR(32),
    last_lease VARCHAR(32),
    claim VARCHAR(32),
    worker VARCHAR(64),
    instance VARCHAR(32),
    leased_ns BIGINT,
    granted_ns BIGINT,
    started_ns BIGINT,
    leased_until_ns BIGINT,
    hard_end_ns BIGINT,
    progress TEXT,
    progress_ns BIGINT,
    workers_failed TEXT DEFAULT '[]' NOT NULL,
    refused_by TEXT DEFAULT '[]' NOT NULL,
    choosy BOOLEAN DEFAULT 0 NOT NULL,
    moved BOOLEAN DEFAULT 0 NOT NULL,
    answer TEXT,
    outcome VARCHAR(32),
    score_s VARCHAR(32),
    error TEXT,
    error_class VARCHAR(64),
    stuck TEXT,
    ended_ns BIGINT,
    visible_ns BIGINT,
    cursor BIGINT,
    PRIMARY KEY (run),
    FOREIGN KEY(account) REFERENCES accounts (id),
    FOREIGN KEY(submission) REFERENCES submissions (run),
    UNIQUE (cursor),
    UNIQUE (lease)
);
CREATE TABLE heads (
    problem VARCHAR(64) NOT NULL,
    bytes BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    sha256 VARCHAR(64) NOT NULL,
    PRIMARY KEY (problem)
);
CREATE TABLE memberships (
    account INTEGER NOT NULL,
    team VARCHAR(64) NOT NULL,
    left_ns BIGINT NOT NULL,
    PRIMARY KEY (account, team),
    FOREIGN KEY(account) REFERENCES accounts (id)
);
CREATE TABLE pins (
    problem VARCHAR(64) NOT NULL,
    final BOOLEAN NOT NULL,
    private_sha256 VARCHAR(64),
    PRIMARY KEY (problem, final)
);
CREATE TABLE shares (
    pool VARCHAR(128) NOT NULL,
    job_class VARCHAR(16) NOT NULL,
    owner VARCHAR(70) NOT NULL,
    virtual_ns BIGINT NOT NULL,
    present_ns BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (pool, job_class, owner)
);
CREATE TABLE sources (
    sha256 VARCHAR(64) NOT NULL,
    language VARCHAR(16) NOT NULL,
    source BLOB NOT NULL,
    beside TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    last_needed_ns BIGINT NOT NULL,
    PRIMARY KEY (sha256)
);
CREATE TABLE submissions (
    run VARCHAR(16) NOT NULL,
    account INTEGER NOT NULL,
    idempotency_key VARCHAR(128) NOT NULL,
    request_sha256 VARCHAR(64) NOT NULL,
    owner VARCHAR(70) NOT NULL,
    author VARCHAR(64) NOT NULL,
    name VARCHAR(255) NOT NULL,
    problem VARCHAR(64) NOT NULL,
    source VARCHAR(64) NOT NULL,
    mode VARCHAR(16) NOT NULL,
    effort VARCHAR(16) NOT NULL,
    pool VARCHAR(128) NOT NULL,
    job_class VARCHAR(16) NOT NULL,
    batch VARCHAR(128),
    received_ns BIGINT NOT NULL,
    on_time BOOLEAN NOT NULL,
    remark TEXT,
    PRIMARY KEY (run),
    FOREIGN KEY(account) REFERENCES accounts (id),
    FOREIGN KEY(source) REFERENCES sources (sha256),
    UNIQUE (account, idempotency_key)
);
CREATE TABLE tokens (
    id INTEGER NOT NULL,
    sha256 VARCHAR(64) NOT NULL,
    kind VARCHAR(16) NOT NULL,
    account INTEGER,
    worker VARCHAR(64),
    scopes TEXT NOT NULL,
    label VARCHAR(128) NOT NULL,
    details TEXT,
    uses_left INTEGER,
    parent INTEGER,
    created_ns BIGINT NOT NULL,
    ends_ns BIGINT NOT NULL,
    last_used_ns BIGINT,
    revoked_ns BIGINT,
    PRIMARY KEY (id),
    FOREIGN KEY(account) REFERENCES accounts (id),
    FOREIGN KEY(parent) REFERENCES tokens (id),
    UNIQUE (sha256)
);
CREATE TABLE workers (
    name VARCHAR(64) NOT NULL,
    instance VARCHAR(32),
    version VARCHAR(64),
    pool VARCHAR(128),
    device VARCHAR(8),
    sandbox VARCHAR(16),
    devices INTEGER,
    slots INTEGER,
    problems TEXT DEFAULT '{}' NOT NULL,
    seen_ns BIGINT,
    alive_ns BIGINT,
    paused TEXT DEFAULT '' NOT NULL,
    faults TEXT DEFAULT '[]' NOT NULL,
    PRIMARY KEY (name)
);
CREATE INDEX submissions_source ON submissions (account, source, received_ns);
CREATE INDEX gradings_held ON gradings (worker, state);
CREATE INDEX gradings_of_account ON gradings (account, queued_ns);
CREATE INDEX gradings_of_day ON gradings (queued_ns);
CREATE INDEX gradings_open ON gradings (owner, state);
CREATE INDEX gradings_queue ON gradings (state, pool, choosy, job_class, share, problem, problem_sha256, final, position);
CREATE INDEX gradings_used ON gradings (owner, queued_ns);
CREATE INDEX gradings_usual ON gradings (problem, pool, mode, ended_ns);
CREATE INDEX ix_gradings_last_lease ON gradings (last_lease);
CREATE INDEX ix_gradings_visible_ns ON gradings (visible_ns);
COMMIT;
