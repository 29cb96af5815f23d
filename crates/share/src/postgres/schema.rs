//! The tables, roles and policies, as migrations that `team init` carries out in order.

use postgres::error::SqlState;
use postgres::types::Type;
use sidenote_base::error::{Error, Result};

use super::{Database, failed};

/// The migrations, oldest first. One that was released never changes.
const MIGRATIONS: [&str; 3] =
    [include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];

/// What [`Database::init`] did or would do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct TablesReply {
    /// The version of the tables before; 0 for none.
    pub from: i32,
    /// The version of the tables that this program needs.
    pub to: i32,
    /// Whether the migrations were carried out.
    pub applied: bool,
}

/// The version of the tables that this program needs.
pub(crate) fn newest_version() -> i32 {
    i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX)
}

impl Database {
    /// Creates the roles and tables, or brings them to the version of this program. The caller's role must be able to
    /// create roles and schemas. With `dry_run`, only the versions are read.
    ///
    /// # Errors
    /// `Invalid` if the server is older than PostgreSQL 15, or if a newer program made the tables; `Io` if the database
    /// refuses.
    pub fn init(&self, dry_run: bool) -> Result<TablesReply> {
        let mut client = self.client()?;
        let to = newest_version();
        let mut transaction = client.transaction().map_err(|error| failed("begin", error))?;
        let run = |error: postgres::Error| {
            let is_refused = error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
            let failed = failed("create the roles and tables", error);
            if !is_refused {
                return failed;
            }
            failed.with_hints("connect as a superuser, or as a role that can create roles and owns the tables: --database ADDRESS", "tell the user")
        };
        transaction.batch_execute(include_str!("schema/begin.sql")).map_err(run)?;
        let server: i32 = transaction
            .query_typed_one("select current_setting('server_version_num')::int", &[])
            .map_err(run)?
            .get(0);
        if server < 150_000 {
            return Err(Error::invalid(format!(
                "the server is PostgreSQL {}, and 15 is needed",
                server / 10_000
            )));
        }
        let exists: bool = transaction
            .query_typed_one("select to_regclass('sidenote.migration') is not null", &[])
            .map_err(run)?
            .get(0);
        let from: i32 = match exists {
            true => transaction
                .query_typed_one("select coalesce(max(version), 0) from sidenote.migration", &[])
                .map_err(run)?
                .get(0),
            false => 0,
        };
        if from > to {
            return Err(Error::invalid(format!(
                "the tables have version {from}, and this program knows {to}"
            ))
            .with_hint("use the newest program on all servers"));
        }
        if dry_run {
            return Ok(TablesReply { from, to, applied: false });
        }
        for (version, statements) in (1..).zip(MIGRATIONS).filter(|(version, _)| *version > from) {
            transaction.batch_execute(statements).map_err(run)?;
            transaction
                .execute_typed(
                    "insert into sidenote.migration (version) values ($1)",
                    &[(&version, Type::INT4)],
                )
                .map_err(run)?;
        }
        transaction.commit().map_err(run)?;
        self.put_back(client);
        Ok(TablesReply { from, to, applied: from < to })
    }

    /// Checks that the tables are those of this program, and that row-level security holds for the role of the
    /// connection.
    ///
    /// # Errors
    /// `Invalid` if that is not so; `Io` if the database cannot be reached.
    pub fn check_role(&self) -> Result<()> {
        let row = self.read(None, |transaction| {
            let asked = transaction.query_typed_opt(include_str!("schema/role.sql"), &[]);
            asked.map_err(|error| failed("tell about the tables", error))
        })?;
        let Some(row) = row else {
            return Err(Error::internal("the database tells nothing about its role"));
        };
        let (version, is_free, owns): (i32, bool, bool) = (row.get(0), row.get(1), row.get(2));
        if version != newest_version() {
            return Err(Error::invalid(format!(
                "the tables have version {version}, and this program needs {}",
                newest_version()
            ))
            .with_hint("run `sidenote team init` with the newest program"));
        }
        if is_free || owns {
            return Err(Error::invalid(
                "the role of the connection is not bound by row-level security: it owns tables, is a superuser or has BYPASSRLS",
            )
            .with_hint("connect as sidenote_app"));
        }
        Ok(())
    }

    /// Checks that the role of the connection may administer the vaults, as a member of the role that owns the tables.
    /// `doing` completes "the role … may not …".
    ///
    /// # Errors
    /// `Invalid` if it may not; `Io` if the database cannot be reached.
    pub(crate) fn check_owner(&self, doing: &str) -> Result<()> {
        let (role, owns): (String, bool) = self.read(None, |transaction| {
            let asked = transaction.query_typed_one(
                // Without tables, what is done next says so.
                "select current_user::text, coalesce((
                    select pg_has_role(current_user, c.relowner, 'usage')
                    from pg_class c join pg_namespace n on n.oid = c.relnamespace
                    where n.nspname = 'sidenote' and c.relname = 'vault'
                ), true)",
                &[],
            );
            let row = asked.map_err(|error| failed("tell about the role of the connection", error))?;
            Ok((row.get(0), row.get(1)))
        })?;
        if owns {
            return Ok(());
        }
        Err(Error::invalid(format!("the role {role} may not {doing}, because it does not own the tables"))
            .with_hints(
                "give --database ADDRESS with a role that does, such as the one of `sidenote team init`",
                "tell the user",
            ))
    }
}
