//! Words in a link's state. A link of another version may use words that are unknown here.

use serde::{Deserialize, Serialize};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of])* $variant,)+
            /// Another word; empty if there is none.
            Other(String),
        }

        impl $name {
            /// The word.
            pub fn as_str(&self) -> &str {
                match self {
                    $($name::$variant => $word,)+
                    $name::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => $name::$variant,)+
                    _ => $name::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                $name::Other(String::new())
            }
        }
    };
}

words! {
    /// Whether a topic's messages flow.
    TopicState {
        /// The peer is not up.
        NoPeer = "no_peer",
        /// The peer has not acknowledged the announcement yet.
        Announcing = "announcing",
        /// Messages flow.
        Ready = "ready",
        /// Messages flow to another host, and not to this one's bus.
        Relayed = "relayed",
        /// The receiver has no subscriber, so nothing is sent.
        Unwatched = "unwatched",
        /// The receiver refused it.
        Refused = "refused",
        /// This host no longer publishes it.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// Whether a service can be called.
    ServiceState {
        /// It can be called.
        Ready = "ready",
        /// The peer does not offer it.
        NotOffered = "not_offered",
        /// The peer offers it, but is silent at present.
        NoPeer = "no_peer",
        /// The serving host does not permit the other host to call it.
        Refused = "refused",
        /// It has no server on this host.
        Unserved = "unserved",
    }
}

words! {
    /// Which end of a service is on this host.
    ServiceRole {
        /// The callers.
        Call = "call",
        /// The server.
        Serve = "serve",
    }
}

words! {
    /// Source of the rate from which airtime is computed.
    RateSource {
        /// It is configured.
        Set = "set",
        /// It is measured.
        Estimated = "estimated",
        /// It is a guess.
        Guessed = "guessed",
        /// There is none, as on a wire.
        Unlimited = "unlimited",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_survive() {
        for word in ["ready", "no_peer", "", "a_word_of_tomorrow"] {
            let json = serde_json::to_string(word).unwrap();
            let read: TopicState = serde_json::from_str(&json).unwrap();
            assert_eq!(serde_json::to_string(&read).unwrap(), json);
        }
        assert_eq!(TopicState::from("ready".to_owned()), TopicState::Ready);
    }
}
