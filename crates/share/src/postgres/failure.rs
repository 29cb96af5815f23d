//! Errors of the database in words of an operator: what could not be done, what the database says, and what to do about it.

use std::error::Error as _;

use postgres::error::SqlState;
use sidenote_base::error::{Error, ErrorKind};

/// What an operator does about an error of the database.
struct Remedy {
    /// The codes of the errors.
    codes: &'static [SqlState],
    hint: &'static str,
}

const REMEDIES: [Remedy; 9] = [
    Remedy {
        codes: &[SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION],
        hint: "check the role and the password in the address of the database, or the variable PGPASSWORD; pg_hba.conf of PostgreSQL says who may log in from where",
    },
    Remedy {
        codes: &[SqlState::INVALID_CATALOG_NAME],
        hint: "correct the name in the address of the database, or create the database with `createdb` and `sidenote team init`",
    },
    Remedy {
        codes: &[SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME, SqlState::UNDEFINED_FUNCTION],
        hint: "run `sidenote team init` with this program first, as a role that can create roles",
    },
    Remedy {
        codes: &[SqlState::READ_ONLY_SQL_TRANSACTION],
        hint: "this PostgreSQL is a standby: name the primary, or all of them with target_session_attrs=read-write",
    },
    Remedy {
        codes: &[SqlState::TOO_MANY_CONNECTIONS],
        hint: "raise max_connections of PostgreSQL, or put PgBouncer before it",
    },
    Remedy {
        codes: &[SqlState::CANNOT_CONNECT_NOW, SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN],
        hint: "wait until PostgreSQL has started, and try again",
    },
    Remedy {
        codes: &[SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY],
        hint: "give the machine of PostgreSQL more space, and try again",
    },
    Remedy {
        codes: &[
            SqlState::QUERY_CANCELED,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
        ],
        hint: "try again",
    },
    Remedy {
        codes: &[SqlState::FOREIGN_KEY_VIOLATION, SqlState::UNIQUE_VIOLATION],
        hint: "try again; if it fails again, run `sidenote team check`",
    },
];

/// The form for agents of every hint, since they cannot reach the database.
const FOR_AGENTS: &str = "try again; if it fails again, tell the user";

/// Converts an error of the database. `doing` completes "the database cannot …".
pub(crate) fn failed(doing: &str, error: postgres::Error) -> Error {
    let is_code = |code: &SqlState| error.code() == Some(code);
    if is_code(&SqlState::LOCK_NOT_AVAILABLE) {
        return Error::new(ErrorKind::Conflict, "another server is changing this vault")
            .with_hint("try again when it has finished");
    }
    if is_code(&SqlState::INSUFFICIENT_PRIVILEGE) {
        return Error::new(
            ErrorKind::Io,
            format!("the role of the connection may not {doing}: {}", said(&error)),
        )
        .with_hints(
            "connect as sidenote_app to serve, and as a role that owns the tables to administer them",
            "tell the user",
        );
    }
    let known = REMEDIES.iter().find(|remedy| remedy.codes.iter().any(is_code));
    let hint = match known {
        Some(remedy) => remedy.hint,
        None if error.code().is_some() => "try again; if it fails again, look into the log of PostgreSQL",
        None => "see whether PostgreSQL runs and can be reached",
    };
    // The cause is in the message, so that it is shown once if an error is shown with its causes.
    Error::new(ErrorKind::Io, format!("the database cannot {doing}: {}", said(&error)))
        .with_hints(hint, FOR_AGENTS)
}

/// Why the last attempt to connect has failed.
#[derive(Debug, Clone)]
pub(super) struct Outage {
    message: String,
    /// What an operator does about it.
    hint: String,
}

impl Outage {
    pub(super) fn of(error: &Error) -> Self {
        Self { message: error.message().to_owned(), hint: error.hint().unwrap_or_default().to_owned() }
    }

    /// Returns the error of a request that did not come to ask the database, since those before it could not reach it.
    pub(super) fn error(&self) -> Error {
        Error::new(ErrorKind::Io, self.message.clone()).with_hints(self.hint.clone(), FOR_AGENTS)
    }
}

/// Converts an error of a connection that could not be made. `place` says where the database should be; agents are not told.
pub(crate) fn unreachable(place: &str, error: postgres::Error) -> Error {
    if error.code().is_some() {
        // It runs and was reached, so that is not what to look for.
        let known = REMEDIES.iter().find(|remedy| remedy.codes.iter().any(|code| error.code() == Some(code)));
        let hint = known.map_or("look into the log of PostgreSQL", |remedy| remedy.hint);
        return Error::new(ErrorKind::Io, format!("the database refuses the connection: {}", said(&error)))
            .with_hints(hint, FOR_AGENTS);
    }
    let failed = failed("be reached", error);
    if failed.message().contains("does not support TLS") {
        return failed.with_hints(
            "turn TLS on in PostgreSQL (ssl = on in postgresql.conf, with a certificate), or connect through a socket or an address of the same machine without sslmode",
            FOR_AGENTS,
        );
    }
    if failed.message().contains("certificate") {
        return failed.with_hints(
            "the certificate of PostgreSQL must be valid for the host in the address of the database; if your own authority issued it, name the file with that authority's certificate: sslrootcert=FILE in the address",
            FOR_AGENTS,
        );
    }
    failed.with_hints(
        format!("see whether PostgreSQL runs at {place}, and whether this machine can reach it"),
        FOR_AGENTS,
    )
}

/// Returns what an error says: the message of the database, or the innermost cause.
fn said(error: &postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return told.message().to_owned();
    }
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        said = inner.to_string();
        cause = inner.source();
    }
    said
}
