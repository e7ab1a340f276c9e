// The events, newest first.

import { $, el, fixed } from "./dom.js";
import { words } from "./topics.js";

const MOST = 400;

// Losses by reason.
export const list = (drops) => Object.entries(drops).map(([reason, n]) => `${words(reason)} ${n}`).join(", ");
const arrow = (e) => (e.direction === "out" ? "→" : "←");
const topic = (e) => `${e.topic} ${arrow(e)} ${e.peer}`;

// A line for each kind of event, and how bad it is.
const LINES = {
  link_answers: (e) => [`link ${e.link} answers`],
  link_silent: (e) => [`link ${e.link} does not answer`, "bad"],
  link_restarted: (e) => [`link ${e.link} was restarted`, "fair"],
  peer_up: (e) => [`${e.peer} is up${e.after_s === null ? "" : `, after ${fixed(e.after_s, 0)} s`}`],
  peer_down: (e) => [`${e.peer} is down`, "bad"],
  rate_changed: (e) => [`rate to ${e.peer} ${fixed(e.from_mbit_s, 2)} → ${fixed(e.to_mbit_s, 2)} Mbit/s`],
  topic_appeared: (e) => [`${topic(e)} appeared`],
  topic_gone: (e) => [`${topic(e)} is gone`, "fair"],
  state_changed: (e) => [`${topic(e)}: ${words(e.from) || "unknown"} → ${words(e.to)}`, e.to === "ready" ? "" : "fair"],
  loses_messages: (e) => [`${topic(e)} loses ${fixed(e.lost_hz, 1)} a second: ${list(e.drops) || "unknown why"}`, "fair"],
  loses_no_more: (e) => [`${topic(e)} no longer loses messages; it lost ${e.lost} in ${fixed(e.for_s, 0)} s`],
  setting_changed: (e) => [`${topic(e)}: ${words(e.setting)} ${e.from} → ${e.to}${e.by ? ` (${e.by})` : ""}`],
  recording_started: (e) => [`recording of ${e.topics.join(", ") || "all topics"} started (${e.by})`],
  recording_ended: (e) => {
    const end = `recording ${e.file} ended${e.by ? ` (${e.by})` : ""}: ${e.messages} messages, ${e.lost} lost`;
    return [e.file ? `${end}${e.why ? `; ${e.why}` : ""}` : `recording did not start: ${e.why}`, e.why ? "bad" : ""];
  },
};

// Calls `undo(event)`.
export class Journal {
  constructor(undo) {
    this.undo = undo;
    this.newest = 0;
    this.list = $("journal-list");
  }

  clear() {
    this.newest = 0;
    this.list.replaceChildren();
  }

  add(events, mayChange) {
    for (const event of events) {
      if (event.number <= this.newest) continue;
      this.newest = event.number;
      const [text, level] = LINES[event.what]?.(event) ?? [words(event.what)];
      const at = new Date(event.at * 1000);
      const time = el("time", { datetime: at.toISOString() }, at.toLocaleTimeString([], { hour12: false }));
      const line = el("li", {}, time, el("span", { "data-level": level || null }, text));
      if (event.what === "setting_changed" && event.direction === "out" && mayChange) {
        const label = `Undo: ${event.setting} of ${event.topic} back to ${event.from}`;
        line.append(el("button", { type: "button", "aria-label": label, onclick: () => this.undo(event) }, "Undo"));
      }
      this.list.prepend(line);
    }
    while (this.list.children.length > MOST) this.list.lastElementChild.remove();
  }
}
