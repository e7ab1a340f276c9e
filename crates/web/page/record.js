// Recording on the server's host: a button for operators, and the state of the recording for everyone.

import { $, attribute, fixed, say } from "./dom.js";
import { list } from "./journal.js";

const size = (bytes) => (bytes < 1e9 ? `${fixed(bytes / 1e6, 1)} MB` : `${fixed(bytes / 1e9, 1)} GB`);
const two = (n) => String(n).padStart(2, "0");
const time = (s) => `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;

function facts(r) {
  if (!r.file) return "";
  const lost = Object.keys(r.lost).length ? `lost ${list(r.lost)}` : "none lost";
  const of = `${r.messages} messages of ${r.topics} ${r.topics === 1 ? "topic" : "topics"}`;
  const room = r.runs ? [`${size(r.free)} free`] : [];
  return [r.file, time(r.seconds), `${size(r.bytes)} of at most ${size(r.limit)}`, of, lost, ...room].join(" · ");
}

// Changes rarely, so that a screen reader can announce it.
function standing(r) {
  if (r.runs) return r.stopped_by ? "closing the file" : `recording, started by ${r.by}`;
  if (r.stopped_by) return `stopped by ${r.stopped_by}`;
  if (!r.by) return "";
  return r.file ? "ended" : "did not start";
}

export class Record {
  // `ask(request)` resolves when the server has carried out the request.
  constructor(ask) {
    Object.assign(this, { ask, runs: false, busy: false });
    $("record-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.press();
    });
  }

  // The connection to the server changed. A server that can record reports its recording later.
  allow(may) {
    $("record").hidden = true;
    $("record-button").hidden = !may;
    this.may = may;
  }

  show(r) {
    if (r.runs !== this.runs) say($("record-refused"), "");
    this.runs = r.runs;
    $("record").hidden = false;
    attribute($("record"), "data-state", r.runs ? "runs" : "rests");
    say($("record-state"), standing(r));
    say($("record-facts"), facts(r));
    const left = r.left_out?.length ? [`left out: ${r.left_out.join("; ")}`] : [];
    say($("record-why"), [...(r.why ? [r.why] : []), ...left].join(" · "));
    const [button, topics] = [$("record-button"), $("record-topics")];
    say(button, r.runs ? "Stop recording" : "Record here");
    if (r.runs && document.activeElement === topics) button.focus();
    topics.hidden = r.runs || !this.may;
  }

  async press() {
    // A second press before the answer would undo the first.
    if (this.busy) return;
    this.busy = true;
    const topics = $("record-topics").value.split(/[\s,]+/).filter((name) => name !== "");
    try {
      await this.ask(this.runs ? { op: "stop_recording" } : { op: "record", topics });
      say($("record-refused"), "");
    } catch (error) {
      say($("record-refused"), error.message);
    }
    this.busy = false;
  }
}
