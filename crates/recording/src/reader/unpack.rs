//! Unpacks what rosbag2 itself compresses: whole files, and single messages. zstd's magic number identifies both.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use zstd::stream::read::Decoder;

use crate::error::{OpenError, ReadError};

/// The first four bytes of a frame. No message in CDR starts with them.
pub(crate) const MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// Largest unpacked file, and never more than half of the free space of its file system.
const MAX_UNPACKED: u64 = 64 << 30;
/// Bytes unpacked at a time.
const STEP: usize = 1 << 18;

/// Unpacks a file into the temporary folder. Of a truncated or damaged file, the part before the damage is unpacked;
/// the damage is returned with it.
pub(super) fn file(packed: &mut File, path: &Path) -> Result<(NamedTempFile, Option<ReadError>), OpenError> {
    let failed = |detail: String| OpenError::Unpack {
        path: path.to_owned(),
        detail,
    };
    let folder = std::env::temp_dir();
    let io = |error: std::io::Error| failed(format!("into {}: {error}", folder.display()));
    let mut unpacked = NamedTempFile::new_in(&folder).map_err(io)?;
    let space = rustix::fs::statvfs(&folder).map_err(|error| io(error.into()))?;
    let limit = MAX_UNPACKED.min(space.f_bavail.saturating_mul(space.f_frsize) / 2);
    packed.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut decoder = Decoder::new(BufReader::new(packed)).map_err(|error| failed(error.to_string()))?;
    let mut bytes = vec![0; STEP];
    let mut length = 0u64;
    loop {
        match decoder.read(&mut bytes) {
            Ok(0) => return Ok((unpacked, None)),
            Ok(read) => {
                length += read as u64;
                if length > limit {
                    return Err(failed(format!(
                        "it contains more than {limit} bytes, half of the free space in {} (TMPDIR names \
                         another folder)",
                        folder.display()
                    )));
                }
                unpacked
                    .write_all(bytes.get(..read).unwrap_or_default())
                    .map_err(io)?;
            }
            Err(error) if length == 0 => return Err(failed(error.to_string())),
            Err(error) => {
                let damage = ReadError::Decompress {
                    path: path.to_owned(),
                    offset: 0,
                    compression: "zstd",
                    detail: format!("{error}, after {length} bytes"),
                };
                return Ok((unpacked, Some(damage)));
            }
        }
    }
}

/// Unpacks a message of at most `limit` bytes.
pub(super) fn message(packed: &[u8], limit: u64) -> Result<Vec<u8>, String> {
    let mut data = Vec::new();
    let decoder = Decoder::with_buffer(packed).map_err(|error| error.to_string())?;
    let read = decoder.take(limit.saturating_add(1)).read_to_end(&mut data);
    match read {
        Ok(length) if length as u64 > limit => Err(format!("a message of more than {limit} bytes")),
        Ok(_) => Ok(data),
        Err(error) => Err(error.to_string()),
    }
}
