//! Keys of CURVE (ZeroMQ's RFC 26): the identity of a robot, and of the controllers that may connect to it.

use super::z85;
use crate::transport::TransportError;
use std::collections::HashMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::str::FromStr;

/// A public key, which is no secret. Written as 40 characters of Z85 (ZeroMQ's RFC 32).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey(pub(super) [u8; 32]);

/// A key of a robot or of a controller: keep it secret.
#[derive(Clone)]
pub struct KeyPair {
    pub(super) public: PublicKey,
    pub(super) secret: [u8; 32],
}

/// The controllers that may connect to a robot, by key, with names for people and logs.
#[derive(Clone, Debug, Default)]
pub struct AllowedKeys(pub(super) HashMap<PublicKey, String>);

impl PublicKey {
    /// Reads the file that [`KeyPair::write`] wrote next to the secret one.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: the file cannot be read or contains no key.
    pub fn read(path: &Path) -> Result<Self, TransportError> {
        text(path)?
            .trim()
            .parse()
            .map_err(|error| setup(format!("{}: {error}", path.display())))
    }
}

impl KeyPair {
    /// Creates a new key pair from the system's random numbers.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: the ZeroMQ library in use was built without CURVE.
    pub fn generate() -> Result<Self, TransportError> {
        check_curve()?;
        let pair =
            ::zmq::CurveKeyPair::new().map_err(|error| setup(format!("cannot create a key: {error}")))?;
        Ok(KeyPair {
            public: PublicKey(pair.public_key),
            secret: pair.secret_key,
        })
    }

    /// Returns the part to share.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Writes the key to `path`, readable by its owner alone, and the public one to `path` with `.pub` appended. Overwrites nothing.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: a file exists already, or cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), TransportError> {
        let public = format!("{}\n", self.public);
        create(path, 0o600, &format!("{public}{}\n", z85::encode(&self.secret)))?;
        let mut beside = path.as_os_str().to_owned();
        beside.push(".pub");
        create(Path::new(&beside), 0o644, &public)
    }

    /// Reads the file that [`KeyPair::write`] wrote.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: the file cannot be read, others may read or write it, or it contains no key.
    pub fn read(path: &Path) -> Result<Self, TransportError> {
        let at = path.display();
        let mode = fs::metadata(path)
            .map_err(|error| setup(format!("{at}: {error}")))?
            .mode()
            & 0o777;
        if mode & 0o077 != 0 {
            return Err(setup(format!(
                "{at} is a secret key that others can access (mode {mode:o}): chmod 600 {at}, and create a new key if it leaked"
            )));
        }
        let text = text(path)?;
        let mut lines = text.lines();
        let mut key = |what| match lines.next().map(z85::decode) {
            Some(Some(key)) => Ok(key),
            _ => Err(setup(format!(
                "{at} contains no {what} key: create a new key pair"
            ))),
        };
        Ok(KeyPair {
            public: PublicKey(key("public")?),
            secret: key("secret")?,
        })
    }
}

impl AllowedKeys {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a controller.
    #[must_use]
    pub fn with(mut self, name: &str, key: PublicKey) -> Self {
        self.0.insert(key, name.to_owned());
        self
    }

    /// Reads a file with one controller per line: its public key, a space, and its name. Lines that begin with `# ` and
    /// empty ones are ignored.
    ///
    /// # Errors
    /// [`TransportError::Setup`]: the file cannot be read, or a line is malformed.
    pub fn read(path: &Path) -> Result<Self, TransportError> {
        let mut all = Self::new();
        for (number, line) in text(path)?.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line == "#" || line.starts_with("# ") {
                continue;
            }
            let (key, name) = line.split_once(char::is_whitespace).unwrap_or((line, "unnamed"));
            let key = key
                .parse()
                .map_err(|error| setup(format!("{}, line {}: {error}", path.display(), number + 1)))?;
            all = all.with(name.trim(), key);
        }
        Ok(all)
    }
}

/// The ZeroMQ sources that the `zmq` crate bundles are built without CURVE.
pub(super) fn check_curve() -> Result<(), TransportError> {
    if ::zmq::has("curve") == Some(true) {
        return Ok(());
    }
    let (major, minor, patch) = ::zmq::version();
    Err(setup(format!(
        "this program's ZeroMQ library ({major}.{minor}.{patch}) has no CURVE: install libzmq3-dev and build with the system's library, as \
         Ropewalk's .cargo/config.toml says"
    )))
}

fn setup(text: String) -> TransportError {
    TransportError::Setup(text)
}

fn text(path: &Path) -> Result<String, TransportError> {
    const MOST: u64 = 1 << 20;
    let failed = |error: &dyn fmt::Display| setup(format!("{}: {error}", path.display()));
    if fs::metadata(path).map_err(|error| failed(&error))?.len() > MOST {
        return Err(failed(&"the file is too large for a key file"));
    }
    fs::read_to_string(path).map_err(|error| failed(&error))
}

fn create(path: &Path, mode: u32, text: &str) -> Result<(), TransportError> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| setup(format!("cannot write the key {}: {error}", path.display())))
}

impl FromStr for PublicKey {
    type Err = TransportError;

    fn from_str(text: &str) -> Result<Self, TransportError> {
        z85::decode(text).map(PublicKey).ok_or_else(|| {
            setup(format!(
                "not a public key of 40 characters: {}",
                text.chars().take(45).collect::<String>().escape_debug()
            ))
        })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&z85::encode(&self.0))
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_kept_from_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robot.key");
        let key = KeyPair::generate().unwrap();
        key.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = KeyPair::read(&path).unwrap();
        assert_eq!((read.public, read.secret), (key.public, key.secret));
        assert_eq!(
            PublicKey::read(&folder.path().join("robot.key.pub")).unwrap(),
            key.public
        );
        assert!(!format!("{key:?}").contains(&z85::encode(&key.secret)));

        let again = KeyPair::generate().unwrap().write(&path).unwrap_err().to_string();
        assert!(again.contains("robot.key"), "{again}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = KeyPair::read(&path).unwrap_err().to_string();
        assert!(error.contains("640") && error.contains("chmod 600"), "{error}");
    }

    #[test]
    fn invalid_keys_are_refused() {
        let key = KeyPair::generate().unwrap().public;
        assert_eq!(key.to_string().parse(), Ok(key));
        let mut wrong = key.to_string();
        wrong.replace_range(0..1, "~");
        for text in [
            "",
            "x",
            &wrong,
            &"\u{e9}".repeat(20),
            &"#".repeat(40),
            &"\0".repeat(40),
        ] {
            assert!(text.parse::<PublicKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_list_names_its_controllers() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let key = KeyPair::generate().unwrap().public;
        fs::write(file.path(), format!("# who may\n\n{key}  mission control\n")).unwrap();
        assert_eq!(AllowedKeys::read(file.path()).unwrap().0[&key], "mission control");
        fs::write(file.path(), "# who may\nnobody at all\n").unwrap();
        let error = AllowedKeys::read(file.path()).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
