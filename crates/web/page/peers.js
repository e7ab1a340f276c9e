// The link in the head of the page, its peers, and the bus of this host.

import { $, attribute, el, fixed, keyed, percent, say } from "./dom.js";
import { reach, shown } from "./robots.js";

const PEERS = [
  ["peer", "text"], ["state", "text"], ["round trip, ms", ""], ["rate, Mbit/s", ""], ["air", "roomy"], ["out, Mbit/s", "roomy"],
  ["in, Mbit/s", "roomy"], ["clock ahead, ms", "roomy"], ["lost", ""], ["refused topics", "roomy wide"],
];
const BUS = [["topic", "text"], ["type", "text roomy"], ["publishers", "roomy"], ["subscribers", "roomy"], ["Hz", ""]];

const heads = (id, columns) =>
  $(id).tHead.rows[0].append(...columns.map(([title, kind]) => el("th", { scope: "col", class: kind }, title)));
heads("peers-table", PEERS);
heads("bus-table", BUS);

const known = { peers: new Map(), bus: new Map(), facts: new Map() };

function rows(table, columns, items) {
  const body = $(`${table}-table`).tBodies[0];
  const make = () => el("tr", {}, ...columns.map(([, kind]) => el("td", { class: kind })));
  keyed(body, known[table], items, ([key]) => key, make, (row, [, cells]) => {
    cells.forEach((text, i) => say(row.cells[i], text));
  });
}

function rate(peer) {
  if (peer.rate_source === "unlimited") return "unlimited";
  return peer.rate_mbit_s === undefined ? "–" : `${fixed(peer.rate_mbit_s, 2)} ${peer.rate_source}`;
}

const clock = (peer) => (peer.clock ? `${fixed(peer.clock.ahead_ms, 2)} ± ${fixed(peer.clock.likely_error_ms, 2)}` : "–");

// One word and one line about a link.
function standing(link) {
  if (!link) return ["wait", "no link runs here"];
  if (!link.answers) return ["down", "the link does not answer"];
  const peers = Object.values(link.view.peers);
  const down = peers.filter((p) => !p.up).map((p) => p.name);
  const ways = link.view.ways.map((w) => w.host);
  const lost = down.filter((name) => !ways.includes(name));
  if (lost.length > 0) return ["down", `${lost.join(", ")} down`];
  if (down.length > 0) return ["up", "up · relay"];
  return peers.length > 0 ? ["up", "up · direct"] : ["wait", "no peer"];
}

export function showLink(link, { links, robots }) {
  const [state, text] = standing(link);
  attribute($("status"), "data-state", state);
  say($("status"), text);
  const view = link?.view;
  const peers = Object.values(view?.peers ?? {});
  const facts = [];
  if (view) facts.push(["air used", percent(view.air_share, 0)], ["Mbit/s sent", fixed(view.sent_mbit_s, 2)]);
  // With several peers, the table has them.
  if (peers.length === 1) {
    const [peer] = peers;
    if (peer.rate_mbit_s !== undefined) facts.push([`Mbit/s ${peer.rate_source}`, fixed(peer.rate_mbit_s, 1), "minor"]);
    facts.push(["round trip, ms", fixed(peer.round_trip_ms, 1), "minor"]);
    if (peer.clock) facts.push(["clocks agree, ms", `±${fixed(peer.clock.likely_error_ms, 1)}`, "minor"]);
  }
  if (view) facts.push(["kB wait", fixed(view.queued_bytes / 1000, 0), "minor"]);
  const make = () => el("div", {}, el("dt"), el("dd"));
  keyed($("facts"), known.facts, facts, ([name]) => name, make, (node, [name, value, kind]) => {
    node.className = kind ?? "";
    say(node.firstElementChild, name);
    say(node.lastElementChild, value);
  });
  const items = peers.map((p) => [
    p.name,
    [p.name, p.up ? "up" : "down", fixed(p.round_trip_ms, 1), rate(p), percent(p.air_share), fixed(p.sent_mbit_s, 3),
      fixed(p.received_mbit_s, 3), clock(p), String(p.lost), String(p.refused_topics)],
  ]);
  for (const way of view?.ways ?? []) {
    items.push([`way ${way.host}`, [way.host, "relay", `${way.hops} hops by ${way.over}`, "", "", "", "", "", "", ""]]);
  }
  for (const host of view?.unreachable ?? []) items.push([`no ${host}`, [host, "down", "no path", "", "", "", "", "", "", ""]]);
  rows("peers", PEERS, items);
  const notes = peers.filter((p) => p.unheard).map((p) => p.unheard);
  const over = Object.entries(robots).filter(([, robot]) => view && robot.link === view.link);
  if (over.length > 0) notes.push(`Robots: ${over.map(([name, robot]) => `${shown(name)}: ${reach(robot, links)[1]}`).join("; ")}.`);
  if (view?.unpublished.length) notes.push(`Nobody publishes ${view.unpublished.join(", ")} here yet.`);
  for (const [topic, why] of Object.entries(view?.unsent ?? {}).slice(0, 5)) notes.push(`Cannot send ${topic}: ${why}.`);
  say($("peers-note"), notes.join(" "));
}

export function showBus(bus) {
  const topics = Object.entries(bus.topics);
  const items = topics.map(([name, t]) => [name, [name, t.type, String(t.publishers), String(t.subscribers), fixed(t.hz, 1)]]);
  rows("bus", BUS, items);
  say($("bus-count"), bus.more > 0 ? `${topics.length} topics, ${bus.more} more` : `${topics.length} topics`);
}
