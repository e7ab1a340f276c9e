//! Whether a topic that is sent on demand has a subscriber at the receiver (decision 352).

/// The receiver's statements about one topic in its present session.
#[derive(Debug, Default)]
pub(crate) struct Demand {
    /// The topic is sent only while it is watched, and the receiver is able to state that.
    asks: bool,
    watched: bool,
    /// Number of the newest statement; 0 before the first.
    serial: u32,
    /// Whether it has had no subscriber in this session yet.
    fresh: bool,
    /// Number of a statement to confirm.
    confirms: Option<u32>,
}

/// The effect of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemandChange {
    /// A first subscriber appeared; `new`: for the first time in this session.
    Begins { new: bool },
    /// The last subscriber is gone.
    Ends,
}

impl Demand {
    /// The receiver has stated nothing yet. `asks`: nothing is sent until it states that the topic has a subscriber.
    pub(crate) fn new(asks: bool) -> Self {
        Demand {
            asks,
            fresh: true,
            ..Demand::default()
        }
    }

    /// Whether the receiver is asked to state whether the topic has a subscriber.
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Whether nothing is sent because there is no subscriber.
    pub(crate) fn rests(&self) -> bool {
        self.asks && !self.watched
    }

    /// Takes a statement. Late copies of older ones change nothing.
    pub(crate) fn stated(&mut self, serial: u32, watched: bool) -> Option<DemandChange> {
        self.confirms = Some(self.serial.max(serial));
        if serial <= self.serial {
            return None;
        }
        self.serial = serial;
        let rested = self.rests();
        self.watched = watched;
        match (rested, self.rests()) {
            (true, false) => Some(DemandChange::Begins {
                new: std::mem::take(&mut self.fresh),
            }),
            (false, true) => Some(DemandChange::Ends),
            _ => None,
        }
    }

    /// Number of the statement to confirm, if any.
    pub(crate) fn confirms(&self) -> Option<u32> {
        self.confirms
    }

    /// The confirmation was sent.
    pub(crate) fn confirmed(&mut self) {
        self.confirms = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_count_in_their_order() {
        let mut d = Demand::new(true);
        assert!(d.rests(), "until someone watches");
        assert_eq!(d.stated(1, false), None);
        assert_eq!(d.stated(3, true), Some(DemandChange::Begins { new: true }));
        assert_eq!(d.stated(2, false), None, "it is older");
        assert!(!d.rests());
        assert_eq!(d.confirms(), Some(3), "the newest is confirmed");
        d.confirmed();
        assert_eq!(d.confirms(), None);
        assert_eq!(d.stated(4, false), Some(DemandChange::Ends));
        assert_eq!(d.stated(5, true), Some(DemandChange::Begins { new: false }));
    }

    #[test]
    fn a_topic_that_does_not_ask_never_rests() {
        let mut d = Demand::new(false);
        assert_eq!(d.stated(1, false), None);
        assert!(!d.rests());
        assert_eq!(d.confirms(), Some(1), "else it would be repeated");
    }
}
