//! Checks the tables, and reads the channels that `topics` and `message_definitions` define.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::failed;
use crate::error::{OpenError, ReadError};
use crate::model::{Channel, ChannelId, Encoding};
use crate::qos::Qos;
use crate::reader::directory::Schema;
use crate::reader::source::text;
use crate::reader::{Contents, Limits, TEXTS};

/// Reads the channels, by the ids of their topics.
pub(super) fn read(
    connection: &Connection,
    path: &Path,
    limits: &Limits,
    contents: &mut Contents,
) -> Result<BTreeMap<i64, ChannelId>, OpenError> {
    let broken = |error| failed(path, &error);
    let lacking = |detail: String| OpenError::NotRosbag2 {
        path: path.to_owned(),
        detail,
    };
    let columns = |table: &str| columns(connection, table).map_err(broken);
    for (table, needed) in [
        ("topics", &["id", "name", "type", "serialization_format"][..]),
        ("messages", &["topic_id", "timestamp", "data"]),
    ] {
        let found = columns(table)?.ok_or_else(|| lacking(format!("there is no table `{table}`")))?;
        if let Some(missing) = needed.iter().find(|name| !found.contains(**name)) {
            return Err(lacking(format!("table `{table}` has no column `{missing}`")));
        }
        // The row number must be the table's own.
        if found.contains("_rowid_") {
            return Err(lacking(format!("table `{table}` has a column `_rowid_`")));
        }
    }
    // Since 2023; without this table types are known only by name.
    let defined = columns("message_definitions")?.is_some_and(|columns| {
        ["topic_type", "encoding", "encoded_message_definition"]
            .iter()
            .all(|name| columns.contains(*name))
    });
    let definitions = match defined {
        true => definitions(connection, limits).map_err(broken),
        false => Ok(BTreeMap::new()),
    };
    let definitions = definitions.unwrap_or_else(|error| {
        contents.damage.get_or_insert(error);
        BTreeMap::new()
    });
    let have = columns("topics")?.unwrap_or_default();
    let or_null = |name: &'static str| if have.contains(name) { name } else { "NULL" };
    let query = format!(
        "SELECT id, name, type, serialization_format, {}, {} FROM topics NOT INDEXED ORDER BY _rowid_",
        or_null("offered_qos_profiles"),
        or_null("type_description_hash"),
    );
    let mut topics = BTreeMap::new();
    let result = (|| {
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = row.get_ref(0)?.as_i64().ok();
            let number = id.and_then(|id| u32::try_from(id).ok());
            let (Some(id), Some(number), Some(channel)) = (id, number, channel(row, &definitions)?) else {
                let damage = ReadError::Database {
                    path: path.to_owned(),
                    detail: "a row of `topics` is left out: its values are not those of a topic".into(),
                };
                contents.damage.get_or_insert(damage);
                continue;
            };
            if topics.contains_key(&id) {
                continue;
            }
            if let Err(length) = contents.directory.define(number, channel, limits.index) {
                contents.damage.get_or_insert(ReadError::TooLarge {
                    path: path.to_owned(),
                    offset: 0,
                    what: TEXTS,
                    length,
                    limit: limits.index,
                });
                break;
            }
            topics.extend(contents.directory.find(number).map(|channel| (id, channel)));
        }
        Ok(())
    })();
    if let Err(error) = result {
        contents.damage.get_or_insert(broken(error));
    }
    Ok(topics)
}

/// The columns of a table; `None` if there is none of that name, or it is not a plain table.
fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Option<BTreeSet<String>>> {
    // Views and virtual tables have no pages.
    let plain: bool = connection.query_row(
        "SELECT count(*) = 1 FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND name = ?1",
        [table],
        |row| row.get(0),
    )?;
    if !plain {
        return Ok(None);
    }
    let mut names = BTreeSet::new();
    // rosbag2 has no computed columns.
    let mut statement = connection.prepare("SELECT name FROM pragma_table_xinfo(?1) WHERE hidden = 0")?;
    let mut rows = statement.query([table])?;
    while let Some(row) = rows.next()? {
        names.insert(text_of(row, 0)?.unwrap_or_default());
    }
    Ok(Some(names))
}

fn definitions(connection: &Connection, limits: &Limits) -> rusqlite::Result<BTreeMap<String, Schema>> {
    let query = "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions \
                 NOT INDEXED ORDER BY _rowid_";
    let mut definitions = BTreeMap::new();
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query([])?;
    let mut length = 0u64;
    while let Some(row) = rows.next()? {
        let (Some(name), Some(encoding), Some(definition)) =
            (text_of(row, 0)?, text_of(row, 1)?, text_of(row, 2)?)
        else {
            continue;
        };
        length = length.saturating_add((name.len() + encoding.len() + definition.len()) as u64);
        // Types after this are known only by name.
        if length > limits.index {
            break;
        }
        definitions.entry(name.clone()).or_insert(Schema {
            name,
            encoding,
            definition,
        });
    }
    Ok(definitions)
}

/// The channel of a topic; `None` if its row has values of other types.
fn channel(row: &Row<'_>, definitions: &BTreeMap<String, Schema>) -> rusqlite::Result<Option<Channel>> {
    let (Some(topic), Some(type_name), Some(encoding)) =
        (text_of(row, 1)?, text_of(row, 2)?, text_of(row, 3)?)
    else {
        return Ok(None);
    };
    let schema = definitions.get(&type_name).cloned().unwrap_or_default();
    let mut channel = Channel::ros1(&topic, &type_name, "", &schema.definition);
    channel.md5 = None;
    channel.encoding = Encoding::from_name(&encoding);
    channel.definition_encoding = schema.encoding;
    if channel.definition_encoding.is_empty() {
        channel.definition_encoding = "ros2msg".to_owned();
    }
    channel.qos = text_of(row, 4)?
        .map(|profiles| Qos::read(&profiles))
        .unwrap_or_default();
    channel.type_hash = text_of(row, 5)?.filter(|hash| !hash.is_empty());
    Ok(Some(channel))
}

fn text_of(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(index)? {
        ValueRef::Text(bytes) => Some(text(bytes)),
        _ => None,
    })
}
