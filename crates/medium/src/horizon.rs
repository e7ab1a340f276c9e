//! Computes how long there is nothing to report, so that a driver sleeps through steps of the channel that it need not
//! see.

use crate::medium::Medium;
use crate::station::{Phase, Station, Transmission};
use core::time::Duration;
use stats::Time;

impl<P: Clone> Medium<P> {
    /// No event occurs before this, unless something is sent or changed; `None` while nothing is under way.
    ///
    /// Where hosts are hidden or categories may collide within a host, it is the next step of the channel. Otherwise
    /// nothing is reported between the end of one frame and the end of the next, except a packet that is given up.
    pub(crate) fn next_report(&self) -> Option<Time> {
        if !self.map.one_domain() || self.contested {
            return self.next_step();
        }
        let shortest = self.shortest.unwrap_or_default();
        let on_air = self.on_air.iter().filter_map(|i| {
            let s = &self.stations[*i];
            match &s.air {
                Some(air) => Some(self.reported_by(s, air, shortest)),
                None => s.committed.map(|at| at + shortest),
            }
        });
        let attempt = self.next_attempt.map(|at| at + shortest);
        let rest = [self.transfer.next(), self.power_next(), attempt];
        on_air.chain(rest.into_iter().flatten()).min()
    }

    fn reported_by(&self, s: &Station<P>, air: &Transmission, shortest: Duration) -> Time {
        if air.phase == Phase::Data && (!air.spoilt || air.is_group()) {
            return air.data_end;
        }
        let last_try = s.queues[air.queue].retries >= self.retries;
        // The others of a collision may have ended, and wait for this end to give up their packets.
        if air.counted || (!air.acknowledged && last_try) {
            return air.end;
        }
        // The most urgent categories do not wait for less than DIFS either.
        air.end + self.standard.difs() + shortest
    }

    /// Recomputes which idle host transmits first, and the shortest waiting frame.
    pub(crate) fn refresh(&mut self) {
        self.next_attempt = self.stations.iter().filter_map(Station::attempt).min();
        self.contested = self.stations.iter().any(Station::is_contested);
        let heads = self.stations.iter().flat_map(|s| &s.queues);
        let bytes = heads.filter_map(|q| q.queue.front()).map(|f| f.ip_bytes).min();
        self.shortest = bytes.and_then(|b| self.phys.iter().map(|p| p.data(b)).min());
    }
}
