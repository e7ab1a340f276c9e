//! Liveliness tokens, through which nodes and endpoints discover each other:
//! `@ros2_lv/<domain>/<session>/<node>/<entity>/<kind>/<enclave>/<namespace>/<name>`, and for an endpoint also `/<topic
//! or service>/<type>/<hash>/<quality of service>`.
//!
//! A Ropewalk bridge identifies itself by its enclave, so each of its tokens does, whichever arrives first.

use super::keys::{demangled, hash_of, hash_text, mangled};
use super::qos;
use crate::dds::names;
use crate::wire::Mark;
use bridge::Graph;
use bridge::nodes::{Kind, MAX_TEXT, Qos};

/// Prefix of all tokens.
pub(super) const SPACE: &str = "@ros2_lv";
/// Longest token to read.
pub(super) const MAX_TOKEN: usize = 2_048;
/// Enclave of a bridge, before its number.
const BRIDGE: &str = "/ropewalk_bridge/";
/// What follows the number if the bridge also carries what other bridges send.
const FROM_BRIDGES: &str = "/from_bridges";

/// A node, or an endpoint of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) session: String,
    /// The node's number in its session.
    pub(super) node: u64,
    /// The endpoint's number in its session; for a node, the node's.
    pub(super) entity: u64,
    pub(super) enclave: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// `None` for the node itself.
    pub(super) endpoint: Option<Endpoint>,
}

/// Name and type of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) kind: Kind,
    /// The full name of its topic or service.
    pub(super) name: String,
    /// In ROS 2's notation.
    pub(super) type_name: String,
    /// `None` if its distribution of ROS has none.
    pub(super) hash: Option<[u8; 32]>,
    pub(super) qos: Qos,
}

impl Token {
    /// Its key. `None` if its type is not a type of ROS 2.
    pub(super) fn key(&self, domain: u32) -> Option<String> {
        let kind = match self.endpoint.as_ref().map(|e| e.kind) {
            None => "NN",
            Some(Kind::Publisher) => "MP",
            Some(Kind::Subscription) => "MS",
            Some(Kind::Service) => "SS",
            Some(Kind::Client) => "SC",
        };
        let mut out = format!(
            "{SPACE}/{domain}/{}/{}/{}/{kind}/{}/{}/{}",
            self.session,
            self.node,
            self.entity,
            mangled(&self.enclave),
            mangled(&self.namespace),
            self.name,
        );
        if let Some(endpoint) = &self.endpoint {
            let hash = endpoint.hash.map_or("TypeHashNotSupported".into(), hash_text);
            out.push_str(&format!(
                "/{}/{}/{hash}/{}",
                mangled(&endpoint.name),
                names::dds_type(&endpoint.type_name)?,
                qos::text(&endpoint.qos)
            ));
        }
        Some(out)
    }

    /// Reads the key of a token in this domain; `None` if it is malformed.
    pub(super) fn read(key: &str, domain: u32) -> Option<Self> {
        if key.len() > MAX_TOKEN || !stats::text::is_plain(key) {
            return None;
        }
        let mut parts = key.split('/');
        let mut part = || parts.next();
        if part()? != SPACE || part()?.parse() != Ok(domain) {
            return None;
        }
        let session = part()?.to_owned();
        let (node, entity) = (part()?.parse().ok()?, part()?.parse().ok()?);
        let kind = match part()? {
            "NN" => None,
            "MP" => Some(Kind::Publisher),
            "MS" => Some(Kind::Subscription),
            "SS" => Some(Kind::Service),
            "SC" => Some(Kind::Client),
            _ => return None,
        };
        let mut name = || {
            part()
                .map(demangled)
                .filter(|n| !n.is_empty() && n.len() <= MAX_TEXT)
        };
        let (enclave, namespace, node_name) = (name()?, name()?, name()?);
        // A node name with a slash would be read as that of another node.
        if node_name.contains('/') {
            return None;
        }
        let endpoint = match kind {
            None => None,
            Some(kind) => Some(Endpoint {
                kind,
                name: name()?,
                type_name: names::type_of(part()?).filter(|t| t.len() <= MAX_TEXT)?,
                hash: hash_of(part()?),
                qos: qos::read(part()?)?,
            }),
        };
        let is_whole = part().is_none() && !session.is_empty();
        is_whole.then_some(Token {
            session,
            node,
            entity,
            enclave,
            namespace,
            name: node_name,
            endpoint,
        })
    }

    /// The mark of the bridge that it belongs to, if it does.
    pub(super) fn bridge(&self) -> Option<Mark> {
        let rest = self.enclave.strip_prefix(BRIDGE)?;
        let (number, from_bridges) = match rest.strip_suffix(FROM_BRIDGES) {
            Some(number) => (number, true),
            None => (rest, false),
        };
        let is_number = number.len() == 8 && number.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u32::from_str_radix(number, 16).ok().filter(|_| is_number)?;
        Some(Mark {
            graph: Graph::from_number(number)?,
            from_bridges,
        })
    }
}

/// The enclave of a bridge.
pub(super) fn enclave_of(mark: Mark) -> String {
    let more = if mark.from_bridges { FROM_BRIDGES } else { "" };
    format!("{BRIDGE}{:08x}{more}", mark.graph.number())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bridge::nodes::policy::{AUTOMATIC, INFINITE, KEEP_LAST, RELIABLE, VOLATILE};

    const HASH: &str = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18";

    fn plain(depth: u64) -> Qos {
        Qos {
            history: KEEP_LAST,
            reliability: RELIABLE,
            durability: VOLATILE,
            liveliness: AUTOMATIC,
            avoids_ros_names: false,
            depth,
            deadline: INFINITE,
            lifespan: INFINITE,
            lease: INFINITE,
        }
    }

    fn publisher() -> String {
        format!(
            "@ros2_lv/0/aac3178e146ba6f1fc6e6a4085e77f21/0/10/MP/%/%robot1/talker/%robot1%chatter/std_msgs::msg::dds_::String_/{HASH}/::,7:,:,:,,"
        )
    }

    #[test]
    fn tokens_are_those_of_rmw_zenoh() {
        let node = "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener";
        let read = Token::read(node, 2).unwrap();
        assert_eq!(read.key(2).as_deref(), Some(node));
        assert_eq!(
            (&*read.enclave, &*read.namespace, &*read.name),
            ("/", "/", "listener")
        );
        assert_eq!(Token::read(node, 0), None);
        let read = Token::read(&publisher(), 0).unwrap();
        assert_eq!(read.key(0), Some(publisher()));
        assert_eq!((read.node, read.entity, &*read.namespace), (0, 10, "/robot1"));
        let endpoint = read.endpoint.unwrap();
        assert_eq!(endpoint.kind, Kind::Publisher);
        assert_eq!(
            (&*endpoint.name, &*endpoint.type_name),
            ("/robot1/chatter", "std_msgs/msg/String")
        );
        assert_eq!(endpoint.hash.map(hash_text).as_deref(), Some(HASH));
        assert_eq!(endpoint.qos, plain(7));
    }

    #[test]
    fn a_type_without_a_hash_has_none() {
        let humble = publisher().replace(HASH, "TypeHashNotSupported");
        let read = Token::read(&humble, 0).unwrap();
        assert_eq!(read.endpoint.as_ref().unwrap().hash, None);
        assert_eq!(read.key(0), Some(humble));
    }

    #[test]
    fn a_bridge_says_so_by_its_enclave() {
        let mut token = Token::read(&publisher(), 0).unwrap();
        assert_eq!(token.bridge(), None);
        for from_bridges in [false, true] {
            let mark = Mark {
                graph: Graph::new("a bridge"),
                from_bridges,
            };
            token.enclave = enclave_of(mark);
            let read = Token::read(&token.key(0).unwrap(), 0).unwrap();
            assert_eq!(read.bridge(), Some(mark));
        }
        for other in [
            "/ropewalk_bridge/",
            "/ropewalk_bridge/00000000",
            "/ropewalk_bridge/+1234567",
            "/ropewalk_bridge/123456789",
            "/ropewalk_bridge",
            "/ropewalk_bridge/1234567/from_bridges",
            "/ropewalk_bridge/12345678/other",
        ] {
            token.enclave = other.into();
            assert_eq!(token.bridge(), None, "{other}");
        }
    }

    #[test]
    fn invalid_tokens_are_refused() {
        let whole = publisher();
        for len in 0..whole.len() {
            // A truncated quality of service is malformed; all shorter keys are too short.
            assert_eq!(Token::read(&whole[..len], 0), None, "{len}");
        }
        for other in [
            whole.replace("MP", "XX"),
            whole.replace("/10/", "/-1/"),
            whole.replace("talker", ""),
            whole.replace("talker", "\u{1b}[2J"),
            whole.replace("talker", &"t".repeat(MAX_TEXT + 1)),
            whole.replace("::dds_::String_", "::String"),
            format!("{whole}/more"),
            whole.replace("aac3178e146ba6f1fc6e6a4085e77f21", ""),
            "t".repeat(MAX_TOKEN + 1),
        ] {
            assert_eq!(Token::read(&other, 0), None, "{other}");
        }
    }

    #[test]
    fn mutants_are_refused_or_written_as_they_are_read() {
        let bytes = publisher().into_bytes();
        for at in 0..bytes.len() {
            for value in [b'/', b'%', b':', b',', b'*', b'_', b'0', b'A', 0, 0x7f, 0xff] {
                let mut mutant = bytes.clone();
                mutant[at] = value;
                super::super::fuzzing::token(&mutant);
            }
        }
    }
}
