// Ties the parts of the page to the server.

import { $, attribute, el, say } from "./dom.js";
import { Messages, Observed, role as ask, token } from "./server.js";
import { Topics, receiver } from "./topics.js";
import { Journal } from "./journal.js";
import { History, drawAir } from "./air.js";
import { showBus, showLink } from "./peers.js";
import { Camera, Scan, clock } from "./views.js";
import { RobotMap } from "./map.js";
import { Plots } from "./plots.js";
import { Drive } from "./drive.js";
import { Record } from "./record.js";
import { Robots } from "./robots.js";

// The version of the state that this page can read.
const VERSION = 1;
const UNDO_MS = 10000;

const page = { role: null, state: null, link: null, undo: null };
const history = new History();
const journal = new Journal((event) => set(event.link, event.topic, event.peer, event.setting, event.from));
const topics = new Topics({
  change: (id, t, from, to) => changePriority(id, t, from, to),
  undo: () => undo(),
});
const mayChange = () => page.role === "operate" || page.role === "drive";

function notice(text) {
  say($("notice"), text);
  $("notice").hidden = text === "";
}

// Changes a setting; a refusal is shown.
async function set(link, topic, peer, setting, value) {
  try {
    await observed.ask({ op: "set", link, topic, peer, changes: [`${setting}=${value}`] });
    notice("");
    return true;
  } catch (error) {
    notice(`${topic}: ${error.message}`);
    return false;
  }
}

async function changePriority(id, t, from, to) {
  const link = page.link;
  // Several steps one after the other are undone together.
  const first = page.undo?.id === id && page.undo.link === link ? page.undo.from : from;
  offer(first === to ? null : { id, link, topic: t.topic, peer: receiver(t), from: first, to });
  if (!(await set(link, t.topic, receiver(t), "priority", to))) {
    offer(null);
    topics.settled(id);
  }
}

// Shows what can be undone, for a while.
function offer(change) {
  clearTimeout(page.timer);
  page.undo = change;
  $("undo").hidden = !change;
  if (!change) return;
  say($("undo").firstElementChild, `Priority of ${change.topic}: ${change.from} → ${change.to}`);
  page.timer = setTimeout(() => offer(null), UNDO_MS);
}

async function undo() {
  const change = page.undo;
  if (!change) return;
  offer(null);
  topics.settled(change.id);
  await set(change.link, change.topic, change.peer, "priority", change.from);
}

// Chooses from a list, as the operator does.
function choose(id, value) {
  $(id).value = value;
  $(id).dispatchEvent(new Event("change"));
}

function draw() {
  const state = page.state;
  if (!state) return;
  const names = Object.keys(state.links);
  if (!names.includes(page.link)) page.link = names[0] ?? null;
  const select = $("link");
  select.hidden = names.length < 2;
  if ([...select.options].map((o) => o.value).join("\n") !== names.join("\n")) {
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
  }
  if (page.link !== null) select.value = page.link;
  const link = state.links[page.link];
  const view = link?.view;
  const name = !view || view.link === view.host ? view?.host : `${view.link} of ${view.host}`;
  say($("host"), name ?? "Ropewalk");
  document.title = name ? `${name} · Ropewalk` : "Ropewalk";
  showLink(link, state);
  topics.show(page.link, view?.topics ?? {}, view?.host, mayChange(), history);
  drawAir(history, page.link, view?.topics ?? {});
  showBus(state.bus);
  robots.show(state);
  document.body.dataset.at = state.at;
}

const secret = token();
const observed = new Observed(secret, {
  connected(role, version, drives) {
    page.role = role;
    drive.allow(role, drives);
    record.allow(mayChange());
    document.body.toggleAttribute("data-stale", role === null);
    if (role === null) {
      attribute($("status"), "data-state", "down");
      say($("status"), "no connection to the server");
      return;
    }
    const may = { view: "you may look", operate: "you may change priorities", drive: drives ? "you may drive" : "you may change priorities" };
    say($("role"), may[role] ?? role);
    notice(version === VERSION ? "" : "This page and its server have different versions: load it again.");
    journal.clear();
    history.clear();
  },
  past: (past) => history.load(past),
  recording: (what) => record.show(what),
  happened: (events) => journal.add(events, mayChange()),
  clock,
  changed(state) {
    page.state = state;
    camera.links = state.links;
    history.add(state);
    draw();
  },
});
const messages = new Messages(secret, {
  channels(all) {
    camera.channels(all);
    robots.channels = all;
    if (page.state) robots.show(page.state);
    scan.channels(all);
    map.channels(all);
    plots.channels(all);
  },
  reported: ({ message }) => map.reported(message),
});
const camera = new Camera(messages);
const scan = new Scan(messages);
const map = new RobotMap(messages);
const plots = new Plots(messages);
const drive = new Drive(secret, camera);
const robots = new Robots(messages, drive, (robot, topic) => {
  tab("drive");
  choose("drive-robot", robot);
  if (topic !== null) choose("camera-topic", topic);
  $("camera").scrollIntoView({ block: "nearest" });
  $("drive-request").focus();
});
const record = new Record((request) => observed.ask(request));
camera.channels([]);
scan.channels([]);
map.channels([]);
plots.channels([]);

$("undo").lastElementChild.addEventListener("click", undo);
$("link").addEventListener("change", () => {
  page.link = $("link").value;
  draw();
});
$("air-span").addEventListener("change", draw);
window.addEventListener("resize", draw);

// Theme: that of the system, or one that was chosen.
const THEMES = ["automatic", "light", "dark"];
function theme(name) {
  attribute(document.documentElement, "data-theme", name === "automatic" ? null : name);
  say($("theme"), `Theme: ${name}`);
  attribute($("theme"), "aria-label", `Theme: ${name}`);
  localStorage.setItem("theme", name);
  draw();
}
$("theme").addEventListener("click", () => {
  const now = localStorage.getItem("theme") ?? THEMES[0];
  theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
});
theme(THEMES.find((name) => name === localStorage.getItem("theme")) ?? THEMES[0]);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

// On a phone, one part at a time.
function tab(name) {
  document.body.dataset.tab = name;
  for (const button of document.querySelectorAll("nav button")) {
    attribute(button, "aria-current", button.dataset.tab === name ? "page" : null);
  }
  draw();
}
for (const button of document.querySelectorAll("nav button")) {
  button.addEventListener("click", () => {
    tab(button.dataset.tab);
    scrollTo(0, 0);
  });
}
tab("topics");

async function begin() {
  try {
    const answer = await ask(secret);
    if (answer.refusal !== undefined) {
      sessionStorage.removeItem("token");
      attribute($("status"), "data-state", "down");
      say($("status"), "refused");
      notice(`${answer.refusal.replace("?token=TOKEN", "#token=TOKEN")}`);
      return;
    }
  } catch {
    // The server is gone for now: the connections try again.
  }
  observed.start();
  messages.start();
}
begin();
