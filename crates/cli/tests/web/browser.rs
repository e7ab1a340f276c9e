//! A real Chromium without a window, driven over its remote debugging pipe.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Whatever the browser does takes less than a tenth of this; longer, it hangs.
const WATCHDOG: Duration = Duration::from_secs(120);

/// A browser.
pub(crate) struct Browser {
    child: Child,
    to: File,
    from: Receiver<Value>,
    next: u64,
    pages: Vec<Value>,
    /// Problems that pages reported.
    problems: VecDeque<String>,
}

/// A page of the browser.
pub(crate) struct Page<'a> {
    browser: &'a mut Browser,
    session: String,
}

impl Browser {
    /// Starts it; none without a Chromium, if that is allowed.
    pub(crate) fn start(home: &Path) -> Option<Browser> {
        if let Err(e) = Command::new("chromium").arg("--version").output() {
            assert!(
                std::env::var_os("CI").is_none(),
                "chromium: {e}; install tests/report/apt.txt"
            );
            eprintln!("NOT TESTED: chromium: {e}; install tests/report/apt.txt");
            return None;
        }
        let (to, from) = (home.join("to"), home.join("from"));
        for pipe in [&to, &from] {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, pipe, mode).expect("a pipe");
        }
        // The browser takes its commands from descriptor 3 and answers on 4.
        let child = Command::new("sh")
            .args(["-c", r#"exec chromium "$@" 3<"$TO" 4>"$FROM""#, "sh"])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", home.join("profile").display()))
            .env("HOME", home)
            .env("TO", &to)
            .env("FROM", &from)
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("starts");
        let to = File::create(&to).expect("the browser reads");
        let answers = File::open(&from).expect("the browser writes");
        let (sender, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0) {
                let message = message.ok().and_then(|m| serde_json::from_slice(&m).ok());
                if message.is_none_or(|m: Value| sender.send(m).is_err()) {
                    return;
                }
            }
        });
        Some(Browser {
            child,
            to,
            from,
            next: 0,
            pages: Vec::new(),
            problems: VecDeque::new(),
        })
    }

    fn call(&mut self, session: Option<&str>, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut message = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = session {
            message["sessionId"] = session.into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).expect("the browser reads");
        let start = Instant::now();
        loop {
            let left = WATCHDOG.saturating_sub(start.elapsed());
            let answer = self.from.recv_timeout(left);
            let mut answer = answer.unwrap_or_else(|e| panic!("{method}: {e}"));
            if answer["id"] == self.next {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].take();
            }
            let params = &answer["params"];
            match answer["method"].as_str() {
                Some("Runtime.exceptionThrown") => self.problems.push_back(params.to_string()),
                Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                    self.problems.push_back(params["entry"]["text"].to_string());
                }
                _ => {}
            }
        }
    }

    /// Opens a page of a size in pixels.
    pub(crate) fn open(&mut self, url: &str, (width, height): (u32, u32)) -> Page<'_> {
        let target = self.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        self.pages.push(target["targetId"].clone());
        let which = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call(None, "Target.attachToTarget", which);
        let session = session["sessionId"].as_str().expect("a session").to_owned();
        let mut page = Page {
            browser: self,
            session,
        };
        for domain in ["Page.enable", "Runtime.enable", "Log.enable"] {
            page.call(domain, json!({}));
        }
        let phone = width < 700;
        page.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone }),
        );
        page.call("Page.navigate", json!({ "url": url }));
        page
    }

    /// Opens an empty tab in front of the others, which are then hidden.
    pub(crate) fn cover(&mut self) {
        let target = self.call(None, "Target.createTarget", json!({ "url": "about:blank" }));
        self.pages.push(target["targetId"].clone());
    }

    /// Closes the newest tab.
    pub(crate) fn uncover(&mut self) {
        let page = self.pages.pop();
        self.call(None, "Target.closeTarget", json!({ "targetId": page }));
    }

    /// Sends a signal to all processes of the browser.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let group = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process_group(group, signal).expect("signals");
    }

    /// Closes all pages.
    pub(crate) fn close_pages(&mut self) {
        for page in std::mem::take(&mut self.pages) {
            self.call(None, "Target.closeTarget", json!({ "targetId": page }));
        }
    }

    /// What pages complained about since the last call.
    pub(crate) fn problems(&mut self) -> Vec<String> {
        self.problems.drain(..).collect()
    }
}

impl Page<'_> {
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.browser.call(Some(&self.session), method, params)
    }

    /// The value of an expression; a promise's once it is kept.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let how = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut done = self.call("Runtime.evaluate", how);
        assert!(done["exceptionDetails"].is_null(), "{expression}: {done}");
        done["result"]["value"].take()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait(&mut self, expression: &str) {
        let start = Instant::now();
        // Elements that the page has not created yet are missing.
        let kept =
            format!("(() => {{ try {{ return Boolean({expression}); }} catch {{ return false; }} }})()");
        while self.evaluate(&kept) != true {
            if start.elapsed() > WATCHDOG {
                let text = self.evaluate("document.body.innerText.slice(0, 2000)");
                panic!("never: {expression}; the page shows {text}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
