//! The rows of `messages` one after the other, and where reading goes on behind rows that cannot be read.

use std::ops::ControlFlow;

use rusqlite::{Connection, Error, ffi};

/// What a row says of its message. The message itself is not read: a long one lies on pages of its own.
const HEADS: &str = "SELECT _rowid_, topic_id, timestamp, iif(typeof(data) = 'blob', length(data), NULL) \
                     FROM messages NOT INDEXED WHERE _rowid_ BETWEEN ?1 AND ?2 ORDER BY _rowid_";
const FIRST: &str = "SELECT _rowid_ FROM messages NOT INDEXED WHERE _rowid_ >= ?1 ORDER BY _rowid_ LIMIT 1";

/// A row without its message; `None` where a value is of another type.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) row: i64,
    pub(super) topic: Option<i64>,
    pub(super) time: Option<i64>,
    pub(super) length: Option<u64>,
}

/// Hands over the rows from `first` to `last` in ascending order, until the callback breaks.
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
        // A damaged tree may name a page many times over.
        if before.is_some_and(|before| head.row <= before) {
            let code = ffi::Error::new(ffi::SQLITE_CORRUPT);
            return Err(Error::SqliteFailure(
                code,
                Some("its rows are out of order".into()),
            ));
        }
        before = Some(head.row);
        // Behind the last one there may be damage that is none of these rows.
        if each(head).is_break() || head.row >= last {
            break;
        }
    }
    Ok(())
}

/// The first row that can be read behind `failed`, which cannot: rows that cannot be read lie together on a page.
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
    // Between the last place that cannot be read and the first that can.
    while found.0.checked_sub(bad)? > 1 {
        let middle = bad + (found.0 - bad) / 2;
        match first(middle) {
            Ok(row) => found = (middle, row),
            Err(()) => bad = middle,
        }
    }
    found.1
}
