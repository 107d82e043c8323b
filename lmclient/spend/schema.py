"""The tables of the ledger, and how an older ledger becomes a newer one.

A migration is added at the end of `MIGRATIONS` and never changed once it was released. `{decimal}`
and `{clustered}` stand for what the databases call differently.
"""

from __future__ import annotations

from lmclient.errors import ConfigurationError
from lmclient.spend.database import Database

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # Times are microseconds since 1970 in UTC, and days are those of UTC. `cost` is exact for
        # whoever reads the table; `cost_pico` is the same in units of 10^-12, which a database can add
        # up exactly, or NULL where the cost does not fit into it. The rows lie in the order
        # in which they are added up by day; and one that is written again, because its commit was in
        # doubt, is not there twice.
        """CREATE TABLE lmclient_spend (
            day TEXT NOT NULL,
            currency TEXT NOT NULL,
            time BIGINT NOT NULL,
            call_id TEXT NOT NULL,
            attempt INTEGER NOT NULL,
            final INTEGER NOT NULL,
            category TEXT,
            profile TEXT NOT NULL,
            provider TEXT NOT NULL,
            model TEXT NOT NULL,
            input_tokens BIGINT NOT NULL,
            cached_input_tokens BIGINT NOT NULL,
            cache_write_tokens BIGINT NOT NULL,
            cache_write_1h_tokens BIGINT NOT NULL,
            output_tokens BIGINT NOT NULL,
            reasoning_tokens BIGINT NOT NULL,
            estimated INTEGER NOT NULL,
            inconsistent INTEGER NOT NULL,
            cost {decimal},
            cost_pico BIGINT,
            cost_source TEXT,
            saved_cost {decimal},
            saved_pico BIGINT,
            duration DOUBLE PRECISION NOT NULL,
            waited DOUBLE PRECISION NOT NULL,
            time_to_first_token DOUBLE PRECISION,
            requests INTEGER NOT NULL,
            status TEXT NOT NULL,
            finish_reason TEXT,
            error TEXT,
            http_status INTEGER,
            tags TEXT NOT NULL,
            conversation_id TEXT,
            PRIMARY KEY (day, currency, time, call_id, attempt)
        ) {clustered}""",
        "CREATE INDEX lmclient_spend_odd_cost ON lmclient_spend (day) "
        "WHERE cost_pico IS NULL AND cost IS NOT NULL OR saved_pico IS NULL AND saved_cost IS NOT NULL",
    ),
    (
        # What budgets have spent since their period began, and what running calls may still spend.
        "CREATE TABLE lmclient_budget (budget TEXT PRIMARY KEY, spent {decimal} NOT NULL, "
        "warned INTEGER NOT NULL)",
        "CREATE TABLE lmclient_reservation (call_id TEXT NOT NULL, budget TEXT NOT NULL, "
        "amount {decimal} NOT NULL, expires BIGINT NOT NULL)",
        "CREATE INDEX lmclient_reservation_budget ON lmclient_reservation (budget)",
    ),
    (
        # The most that a call has cost beyond its worst case, for calls that are alike in what they cost.
        "CREATE TABLE lmclient_excess (payer TEXT NOT NULL, currency TEXT NOT NULL, "
        "amount {decimal} NOT NULL, PRIMARY KEY (payer, currency))",
        "ALTER TABLE lmclient_reservation ADD COLUMN payer TEXT NOT NULL DEFAULT ''",
    ),
)


def migrate(database: Database, migrations: tuple[tuple[str, ...], ...] = MIGRATIONS) -> None:
    """Brings the tables up to date, in one transaction that only one process at a time can be in.

    If they are, it only reads, and waits for nobody. Raises `ConfigurationError` if a newer version of
    lmclient has written them.
    """
    with database.transaction(write=False):
        if database.has_table("lmclient_schema") and _version(database) == len(migrations):
            return
    with database.transaction():
        database.lock()
        database.execute("CREATE TABLE IF NOT EXISTS lmclient_schema (version INTEGER NOT NULL)")
        version = _version(database)
        if version > len(migrations):
            raise ConfigurationError(
                f"The ledger {database.name} was written by a newer version of lmclient (schema {version}, "
                f"this one knows {len(migrations)}); update lmclient or set another spend.url."
            )
        for number, statements in enumerate(migrations[version:], start=version + 1):
            for statement in statements:
                database.execute(statement.format(**database.type_names))
            database.execute("INSERT INTO lmclient_schema (version) VALUES (?)", (number,))


def _version(database: Database) -> int:
    rows = database.execute("SELECT MAX(version) FROM lmclient_schema")
    return rows[0][0] or 0
