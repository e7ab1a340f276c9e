//! A controller's end that delays, repeats and loses what passes through it, around any other end.

use remote::transport::{Class, ControllerEnd, ControllerSink, Done, Listen, TransportError, Wire};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Treatment of the following requests.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Treatment {
    #[default]
    Pass,
    /// They wait for [`Rough::deliver`].
    Hold,
    /// They are sent twice; the first answer counts.
    Twice,
    /// They are sent, but their answers are lost.
    LoseAnswers,
}

type Held = (Class, Vec<u8>, Duration, Done);

pub struct Rough {
    inner: Arc<dyn ControllerEnd>,
    treatment: Mutex<Treatment>,
    held: Mutex<Vec<Held>>,
    last: Mutex<Vec<u8>>,
}

impl Rough {
    pub fn new(inner: Arc<dyn ControllerEnd>) -> Arc<Self> {
        Arc::new(Rough {
            inner,
            treatment: Mutex::default(),
            held: Mutex::default(),
            last: Mutex::default(),
        })
    }

    pub fn treat(&self, treatment: Treatment) {
        *self.treatment.lock().expect("no panic") = treatment;
    }

    /// Delivers the held requests, oldest first.
    pub fn deliver(&self) {
        let held = std::mem::take(&mut *self.held.lock().expect("no panic"));
        for (class, frame, timeout, done) in held {
            self.inner.request(class, &frame, timeout, done);
        }
    }

    /// Returns the newest request.
    pub fn last(&self) -> Vec<u8> {
        self.last.lock().expect("no panic").clone()
    }

    pub fn held(&self) -> usize {
        self.held.lock().expect("no panic").len()
    }
}

impl ControllerEnd for Rough {
    fn wire(&self) -> Wire {
        self.inner.wire()
    }

    fn start(&self, sink: Arc<dyn ControllerSink>) -> Result<(), TransportError> {
        self.inner.start(sink)
    }

    fn request(&self, class: Class, frame: &[u8], timeout: Duration, done: Done) {
        *self.last.lock().expect("no panic") = frame.to_vec();
        let treatment = *self.treatment.lock().expect("no panic");
        match treatment {
            Treatment::Pass => self.inner.request(class, frame, timeout, done),
            Treatment::Hold => {
                self.held
                    .lock()
                    .expect("no panic")
                    .push((class, frame.to_vec(), timeout, done))
            }
            Treatment::Twice => {
                self.inner.request(class, frame, timeout, done);
                self.inner.request(class, frame, timeout, Box::new(|_| {}));
            }
            Treatment::LoseAnswers => {
                let lose: Done = Box::new(|_| done(Err(TransportError::TimedOut(Duration::ZERO))));
                self.inner.request(class, frame, timeout, lose);
            }
        }
    }

    fn listen(&self, streams: Listen<'_>) {
        self.inner.listen(streams);
    }

    fn stop(&self) {
        for (.., done) in std::mem::take(&mut *self.held.lock().expect("no panic")) {
            done(Err(TransportError::Ended));
        }
        self.inner.stop();
    }

    fn describe(&self) -> String {
        format!("rough {}", self.inner.describe())
    }
}
