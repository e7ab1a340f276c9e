//! Location and limits of a bus.

use std::path::PathBuf;
use std::time::Duration;

/// Location and limits of a bus.
///
/// Processes share a bus when they share the runtime folder and the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusConfig {
    /// The folder in which every endpoint binds its socket. If it is missing, it is created with mode 0700
    /// (only its last component). It is refused if it is a symbolic link, belongs to someone else, or is
    /// writable by others.
    pub runtime_dir: PathBuf,
    /// Separates buses that share a folder: endpoints of different domains never connect.
    pub domain: u32,
    /// How long a peer may take for its part of the handshake before it is dropped. Default: 5 s.
    pub handshake_timeout: Duration,
    /// If set, members of this group may connect too. Sockets get mode 0660 and this group. The runtime
    /// folder may then belong to another user as long as its group is this one; a newly created folder gets
    /// mode 03770. Needs `/proc`. Default: the same user only.
    pub group: Option<u32>,
    /// How many memfds and sockets to make room for: `RLIMIT_NOFILE` is raised to this value, as far as the
    /// hard limit allows. Default: 65,536.
    pub open_files: u64,
}

impl BusConfig {
    /// Creates the configuration of a bus in `runtime_dir`: domain 0, defaults for everything else.
    pub fn new(runtime_dir: impl Into<PathBuf>) -> Self {
        BusConfig {
            runtime_dir: runtime_dir.into(),
            domain: 0,
            handshake_timeout: Duration::from_secs(5),
            group: None,
            open_files: 65_536,
        }
    }

    /// Reads `ROPEWALK_RUNTIME_DIR` (otherwise `$XDG_RUNTIME_DIR/ropewalk`, otherwise `/tmp/ropewalk-<uid>`),
    /// `ROPEWALK_DOMAIN` (a number, default 0) and `ROPEWALK_GROUP` (a group's number, default none).
    ///
    /// [`Bus::open`](crate::Bus::open) creates and checks the folder itself.
    pub fn from_env() -> Result<Self, ConfigError> {
        Self::from_vars(std::env::var_os, rustix::process::getuid().as_raw())
    }

    /// Sets the domain.
    #[must_use]
    pub fn with_domain(mut self, domain: u32) -> Self {
        self.domain = domain;
        self
    }

    /// Allows members of group `gid` to connect too.
    #[must_use]
    pub fn with_group(mut self, gid: u32) -> Self {
        self.group = Some(gid);
        self
    }

    /// Sets how long a peer may take for its part of the handshake.
    #[must_use]
    pub fn with_handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    fn from_vars(
        var: impl Fn(&'static str) -> Option<std::ffi::OsString>,
        uid: u32,
    ) -> Result<Self, ConfigError> {
        let set = |name| var(name).filter(|v| !v.is_empty());
        let dir = match (set("ROPEWALK_RUNTIME_DIR"), set("XDG_RUNTIME_DIR")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(xdg)) => PathBuf::from(xdg).join("ropewalk"),
            (None, None) => PathBuf::from(format!("/tmp/ropewalk-{uid}")),
        };
        if !dir.is_absolute() {
            return Err(ConfigError::RelativeDir { dir });
        }
        let number = |name| {
            let text = set(name)?;
            let number = text.to_str().and_then(|t| t.parse::<u32>().ok());
            Some(number.ok_or_else(|| text.to_string_lossy().into_owned()))
        };
        let domain = number("ROPEWALK_DOMAIN").transpose();
        let group = number("ROPEWALK_GROUP").transpose();
        let mut config = BusConfig::new(dir);
        config.domain = domain
            .map_err(|value| ConfigError::Domain { value })?
            .unwrap_or(0);
        config.group = group.map_err(|value| ConfigError::Group { value })?;
        Ok(config)
    }
}

/// Why the environment yields no configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `ROPEWALK_DOMAIN` is not a number.
    #[error("ROPEWALK_DOMAIN is {value:?}: it must be a number from 0 to 4294967295")]
    Domain {
        /// The value it was set to.
        value: String,
    },
    /// `ROPEWALK_GROUP` is not a number.
    #[error("ROPEWALK_GROUP is {value:?}: it must be a group's number, as `getent group NAME` prints it")]
    Group {
        /// What it was set to.
        value: String,
    },
    /// The runtime folder is not absolute, so processes started elsewhere would not find each other.
    #[error("the runtime folder {dir:?} is relative: set ROPEWALK_RUNTIME_DIR to an absolute path")]
    RelativeDir {
        /// The folder as given.
        dir: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &[(&str, &str)]) -> Result<BusConfig, ConfigError> {
        let find = |name| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).into());
        BusConfig::from_vars(find, 1000)
    }

    #[test]
    fn the_first_set_variable_names_the_folder() {
        let dir = |vars: &[(&str, &str)]| from(vars).map(|c| c.runtime_dir);
        assert_eq!(dir(&[]).unwrap(), PathBuf::from("/tmp/ropewalk-1000"));
        assert_eq!(
            dir(&[("XDG_RUNTIME_DIR", "/run/user/1")]).unwrap(),
            PathBuf::from("/run/user/1/ropewalk")
        );
        assert_eq!(
            dir(&[("XDG_RUNTIME_DIR", "/x"), ("ROPEWALK_RUNTIME_DIR", "/y")]).unwrap(),
            PathBuf::from("/y")
        );
        assert_eq!(
            dir(&[("ROPEWALK_RUNTIME_DIR", "")]).unwrap(),
            PathBuf::from("/tmp/ropewalk-1000")
        );
        assert!(matches!(
            dir(&[("ROPEWALK_RUNTIME_DIR", "y")]),
            Err(ConfigError::RelativeDir { .. })
        ));
    }

    #[test]
    fn the_domain_is_a_number_or_an_error() {
        assert_eq!(from(&[("ROPEWALK_DOMAIN", "7")]).unwrap().domain, 7);
        assert!(matches!(
            from(&[("ROPEWALK_DOMAIN", "seven")]),
            Err(ConfigError::Domain { .. })
        ));
        assert!(matches!(
            from(&[("ROPEWALK_DOMAIN", "-1")]),
            Err(ConfigError::Domain { .. })
        ));
        assert_eq!(from(&[("ROPEWALK_GROUP", "7")]).unwrap().group, Some(7));
        assert_eq!(from(&[("ROPEWALK_GROUP", "")]).unwrap().group, None);
        assert!(matches!(
            from(&[("ROPEWALK_GROUP", "robots")]),
            Err(ConfigError::Group { .. })
        ));
    }
}
