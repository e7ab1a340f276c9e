//! Access: which clients connect, and with which role.

use crate::Request;
use ring::digest::{SHA256, digest};

/// Foxglove's web app.
const FOXGLOVE: &str = "https://app.foxglove.dev";
/// The shortest token, in bytes.
const MIN_TOKEN: usize = 16;
/// The longest token, in bytes.
const MAX_TOKEN: usize = 256;

/// What a client may do; each role includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Look.
    View,
    /// Change settings of links, and record.
    Operate,
    /// Publish, and call services.
    Drive,
}

impl Role {
    /// All roles, each with what those before it may do.
    const ALL: [Role; 3] = [Role::View, Role::Operate, Role::Drive];

    /// Its name: `view`, `operate` or `drive`.
    pub fn name(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Operate => "operate",
            Role::Drive => "drive",
        }
    }

    /// The role of this name.
    pub fn of_name(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.name() == name)
    }
}

/// A secret that gives a role.
#[derive(Clone)]
pub struct Token {
    role: Role,
    hash: [u8; 32],
}

/// Why a token or an origin cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A bad token.
    #[error("the token is not valid: use {MIN_TOKEN} to {MAX_TOKEN} letters, digits, - and _")]
    Token,
    /// A bad origin.
    #[error("'{0}' is not an origin: write https://HOST or http://HOST:PORT, without a path")]
    Origin(String),
}

/// Why a request is refused, in a line that names the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A web site that may not use this server.
    #[error("the page's origin {0:?} is not allowed here: start with --origin to allow it")]
    Origin(String),
    /// A name that is not this server's: DNS rebinding.
    #[error(
        "the host {0:?} is not this server's name: use an address, localhost, or start with --origin http://NAME:PORT"
    )]
    Host(String),
    /// No token, or an unknown one.
    #[error("a token is needed: append ?token=TOKEN to the address")]
    Token,
}

/// Access of clients: by token, by origin and by host name.
///
/// Without tokens, programs and pages of this machine have the role [`Role::Drive`] and nobody else may connect.
/// With tokens, everybody needs one.
#[derive(Clone, Default)]
pub struct Access {
    tokens: Vec<Token>,
    origins: Vec<String>,
    /// Whether Foxglove's web app may connect.
    foxglove: bool,
}

impl Token {
    /// A token of 16 to 256 letters, digits, `-` and `_`. Only its hash is kept.
    ///
    /// # Errors
    /// [`AccessError::Token`].
    pub fn new(role: Role, text: &str) -> Result<Self, AccessError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(MIN_TOKEN..=MAX_TOKEN).contains(&text.len()) || !text.chars().all(plain) {
            return Err(AccessError::Token);
        }
        let hash = hash(text);
        Ok(Token { role, hash })
    }
}

impl Access {
    /// Allows this server's own pages, Foxglove's, and those of `origins`.
    ///
    /// # Errors
    /// [`AccessError::Origin`].
    pub fn new(origins: &[String]) -> Result<Self, AccessError> {
        for origin in origins {
            let host = origin
                .strip_prefix("https://")
                .or_else(|| origin.strip_prefix("http://"));
            if !host.is_some_and(|host| !host.is_empty() && !host.contains(['/', '*', '?', ' '])) {
                return Err(AccessError::Origin(origin.clone()));
            }
        }
        Ok(Access {
            tokens: Vec::new(),
            origins: origins.to_vec(),
            foxglove: true,
        })
    }

    /// Does not allow Foxglove's web app unless it is listed.
    #[must_use]
    pub fn without_foxglove(mut self) -> Self {
        self.foxglove = false;
        self
    }

    /// Accepts a token.
    #[must_use]
    pub fn with_token(mut self, token: Token) -> Self {
        self.tokens.push(token);
        self
    }

    /// Whether there is a token.
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// The role of a request's client.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn role(&self, request: &Request) -> Result<Role, Refusal> {
        let host = request.header("host").unwrap_or_default();
        if !request.certified {
            self.check_host(host)?;
        }
        if let Some(origin) = request.header("origin") {
            // A proxy may have decrypted the request.
            let plain = origin.strip_prefix("http://").filter(|_| !request.secure);
            let own = plain.or_else(|| origin.strip_prefix("https://"));
            let own = own.is_some_and(|o| o.eq_ignore_ascii_case(host));
            let listed = (self.foxglove && origin == FOXGLOVE) || self.origins.iter().any(|o| o == origin);
            if !own && !listed {
                return Err(Refusal::Origin(printable(origin)));
            }
        }
        if self.tokens.is_empty() {
            let local = request
                .peer
                .is_some_and(|peer| peer.ip().to_canonical().is_loopback());
            return if local {
                Ok(Role::Drive)
            } else {
                Err(Refusal::Token)
            };
        }
        let bearer = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "));
        let given = request.query("token").or(bearer).or(request.cookie("token"));
        let given = hash(given.unwrap_or_default());
        // Hashes are compared, so that the time reveals nothing about a token. All of them are compared, so that the
        // time does not reveal which one matched.
        let mut role = None;
        for token in &self.tokens {
            if token.hash == given {
                role = role.max(Some(token.role));
            }
        }
        role.ok_or(Refusal::Token)
    }

    /// An address cannot be rebound; a name can, unless it is known.
    fn check_host(&self, host: &str) -> Result<(), Refusal> {
        let name = name_of(host);
        let address = name.parse::<std::net::IpAddr>().is_ok();
        let listed = self.origins.iter().any(|origin| {
            let own = origin.split_once("://").map_or("", |(_, host)| host);
            own.eq_ignore_ascii_case(host)
        });
        if address || listed || name.eq_ignore_ascii_case("localhost") {
            Ok(())
        } else {
            Err(Refusal::Host(printable(host)))
        }
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("tokens", &self.tokens.len())
            .field("origins", &self.origins)
            .finish()
    }
}

/// The name or address in a `Host` header, without its port.
pub(crate) fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

fn hash(text: &str) -> [u8; 32] {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().try_into().unwrap_or_default()
}

/// A client's text, shortened and escaped for a refusal.
fn printable(text: &str) -> String {
    let short: String = text.chars().take(80).collect();
    stats::text::printable(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(peer: &str, target: &str, headers: &str) -> Request {
        let text = format!("GET {target} HTTP/1.1\r\n{headers}\r\n");
        let (mut request, _) = Request::parse(text.as_bytes()).unwrap().unwrap();
        request.peer = Some(peer.parse().unwrap());
        request
    }

    const HERE: &str = "127.0.0.1:9";
    const THERE: &str = "192.0.2.7:9";

    #[test]
    fn pages_of_other_sites_and_rebound_names_are_refused() {
        let access = Access::new(&["https://ours.example".to_owned()]).unwrap();
        for (headers, good) in [
            ("Host: localhost:8765\r\n", true),
            ("Host: 127.0.0.1:8765\r\n", true),
            ("Host: [::1]:8765\r\n", true),
            ("Host: ours.example\r\n", true),
            ("Host: rebound.evil.example:8765\r\n", false),
            ("", false),
            ("Host: localhost:1\r\nOrigin: http://localhost:1\r\n", true),
            ("Host: localhost:1\r\nOrigin: https://app.foxglove.dev\r\n", true),
            ("Host: localhost:1\r\nOrigin: https://ours.example\r\n", true),
            ("Host: localhost:1\r\nOrigin: https://evil.example\r\n", false),
            ("Host: localhost:1\r\nOrigin: http://localhost:2\r\n", false),
            ("Host: localhost:1\r\nOrigin: null\r\n", false),
            (
                "Host: localhost:1\r\nOrigin: https://app.foxglove.dev.evil.example\r\n",
                false,
            ),
        ] {
            assert_eq!(
                access.role(&request(HERE, "/", headers)).is_ok(),
                good,
                "{headers}"
            );
        }
        let own = access.without_foxglove();
        let headers = "Host: localhost:1\r\nOrigin: https://app.foxglove.dev\r\n";
        assert!(own.role(&request(HERE, "/", headers)).is_err());
        for bad in ["ours.example", "https://", "https://a/b", "*"] {
            assert!(Access::new(&[bad.to_owned()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn over_tls_own_pages_are_secure_and_names_of_the_certificate_are_known() {
        let access = Access::new(&[]).unwrap();
        let judge = |headers: &str, secure, certified| {
            let mut request = request(HERE, "/", headers);
            (request.secure, request.certified) = (secure, certified);
            access.role(&request).is_ok()
        };
        let own = |scheme: &str| format!("Host: localhost:1\r\nOrigin: {scheme}://localhost:1\r\n");
        assert!(judge(&own("https"), true, false) && judge(&own("https"), false, false));
        assert!(judge(&own("http"), false, false));
        assert!(
            !judge(&own("http"), true, false),
            "such a page is not this server's"
        );
        let named = "Host: robot.local:8766\r\nOrigin: https://robot.local:8766\r\n";
        assert!(judge(named, true, true) && !judge(named, true, false));
        let foreign = "Host: robot.local:8766\r\nOrigin: https://evil.example\r\n";
        assert!(!judge(foreign, true, true));
    }

    #[test]
    fn elsewhere_a_token_is_needed_and_gives_its_role() {
        let host = "Host: 192.0.2.1:8765\r\n";
        let open = Access::new(&[]).unwrap();
        assert_eq!(open.role(&request(THERE, "/", host)), Err(Refusal::Token));
        assert_eq!(
            open.role(&request("[::ffff:127.0.0.1]:9", "/", host)),
            Ok(Role::Drive)
        );
        let (view, drive) = ("v".repeat(16), "d".repeat(16));
        let access = open
            .with_token(Token::new(Role::View, &view).unwrap())
            .with_token(Token::new(Role::Drive, &drive).unwrap());
        let at = |target: &str, more: &str| access.role(&request(THERE, target, &format!("{host}{more}")));
        assert_eq!(at(&format!("/?token={view}"), ""), Ok(Role::View));
        assert_eq!(
            at("/", &format!("Authorization: Bearer {drive}\r\n")),
            Ok(Role::Drive)
        );
        assert_eq!(at("/", &format!("Cookie: token={view}\r\n")), Ok(Role::View));
        assert_eq!(at("/", ""), Err(Refusal::Token));
        assert_eq!(at("/?token=x", ""), Err(Refusal::Token));
        assert_eq!(access.role(&request(HERE, "/", host)), Err(Refusal::Token));
        for bad in ["short", &"a b".repeat(9), &"a".repeat(300)] {
            assert!(Token::new(Role::View, bad).is_err());
        }
    }
}
