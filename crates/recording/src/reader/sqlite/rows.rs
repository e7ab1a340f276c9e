//! Iterates over the rows of `messages`, and continues after rows that cannot be read.

use std::ops::ControlFlow;

use rusqlite::{Connection, Error, ffi};

/// Columns of a row without the message itself: a long one lies on separate pages.
const HEADS: &str = "SELECT _rowid_, topic_id, timestamp, iif(typeof(data) = 'blob', length(data), NULL) \
                     FROM messages NOT INDEXED WHERE _rowid_ BETWEEN ?1 AND ?2 ORDER BY _rowid_";
const FIRST: &str = "SELECT _rowid_ FROM messages NOT INDEXED WHERE _rowid_ >= ?1 ORDER BY _rowid_ LIMIT 1";

/// A row without its message; `None` for a value of another type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) row: i64,
    pub(super) topic: Option<i64>,
    pub(super) time: Option<i64>,
    pub(super) length: Option<u64>,
}

/// Passes the rows from `first` to `last` in ascending order, until the callback breaks.
pub(super) fn walk(
    connection: &Connection,
    first: i64,
    last: i64,
    mut each: impl FnMut(Head) -> ControlFlow<()>,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(HEADS)?;
    let mut rows = statement.query([first, last])?;
    let mut before = None;
    while let Some(row) = rows.next()? {
        let number = |index| row.get_ref(index).map(|value| value.as_i64().ok());
        let head = Head {
            row: row.get(0)?,
            topic: number(1)?,
            time: number(2)?,
            length: number(3)?.and_then(|length| u64::try_from(length).ok()),
        };
        // A damaged tree may refer to a page many times.
        if before.is_some_and(|before| head.row <= before) {
            let code = ffi::Error::new(ffi::SQLITE_CORRUPT);
            return Err(Error::SqliteFailure(
                code,
                Some("its rows are out of order".into()),
            ));
        }
        before = Some(head.row);
        // After the last row there may be damage that does not concern these rows.
        if each(head).is_break() || head.row >= last {
            break;
        }
    }
    Ok(())
}

/// The first readable row after the unreadable row `failed`: unreadable rows lie together on a page.
pub(super) fn behind(connection: &Connection, failed: i64) -> Option<i64> {
    let first = |from: i64| {
        let found = connection.query_row(FIRST, [from], |row| row.get::<_, i64>(0));
        match found {
            Ok(row) if row >= from => Ok(Some(row)),
            Ok(_) => Err(()),
            Err(Error::QueryReturnedNoRows) => Ok(None),
            Err(_) => Err(()),
        }
    };
    let (mut step, mut bad) = (1i64, failed);
    let mut found = loop {
        let from = failed.checked_add(step)?;
        match first(from) {
            Ok(found) => break (from, found),
            Err(()) => bad = from,
        }
        step = step.checked_mul(2)?;
    };
    // Between the last unreadable and the first readable row.
    while found.0.checked_sub(bad)? > 1 {
        let middle = bad + (found.0 - bad) / 2;
        match first(middle) {
            Ok(row) => found = (middle, row),
            Err(()) => bad = middle,
        }
    }
    found.1
}
