//! Work that takes too long for the thread that drives the radio.

use super::Radio;
use crate::body::{Body, Sink};
use crate::fountain::{Computed, Job, JobDone};
use crate::receive::Receiver;
use stats::Time;

impl<B: Body> Radio<B> {
    /// Returns a computation that a message of a bulk topic waits for; call after each other call until it returns
    /// `None`. See [`Job`].
    pub fn next_job(&mut self) -> Option<Job<B>> {
        let id = self.jobs;
        let encode = self.topics.iter_mut().find_map(|t| {
            let mut bulks = t.unacked.as_mut()?.bulks_mut();
            bulks.find_map(|(p, b)| Some(Job::encode(id, b.job(id)?, p.message.body.clone())))
        });
        let job = encode.or_else(|| {
            let decoding = self.peers.values_mut().find_map(|p| p.receiver.decoding(id))?;
            Some(Job::decode(id, decoding))
        })?;
        self.jobs += 1;
        Some(job)
    }

    /// Takes the result of a job; the result has no effect if its message is gone by then. A message that it completes
    /// goes to `sink`: only the bytes that were lost are copied there.
    pub fn job_done(&mut self, now: Time, done: JobDone, sink: &mut impl Sink) {
        let now = self.tick(now);
        let JobDone(id, computed) = done;
        match computed {
            Computed::Encoder(encoder) => {
                for t in &mut self.topics {
                    let Some(timing) = self.peers.get(&t.peer).map(|p| p.way.timing()) else {
                        continue;
                    };
                    let rested = !t.is_backlogged();
                    if !t.encoded_by(id, &encoder, timing) {
                        continue;
                    }
                    if rested && t.is_backlogged() {
                        self.scheduler.wake(t);
                    }
                    return;
                }
            }
            Computed::Message(bytes) => {
                if let Some(receiver) = self.receiver_of(id) {
                    receiver.decoded(now, id, &bytes, sink);
                }
            }
            Computed::Failed(failed) => {
                if let Some(receiver) = self.receiver_of(id) {
                    receiver.decode_failed(now, id, failed);
                }
            }
        }
    }

    fn receiver_of(&mut self, job: u64) -> Option<&mut Receiver> {
        let mut receivers = self.peers.values_mut().map(|p| &mut p.receiver);
        receivers.find(|r| r.awaits(job))
    }
}
