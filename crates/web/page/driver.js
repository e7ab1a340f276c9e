// Decides what is sent to the robot, and when nothing may be sent. It uses no DOM: held controls, the picture's age and the time are arguments.

const EVERY_MS = 50;
// The server sends a message at least once a second.
const SILENT_MS = 2000;
// By then a robot that receives nothing has stopped; it must not move again by itself.
const DEAF_MS = 1000;
const STOPS = 5;
const STOP_EVERY_MS = 100;
const STOP_FOR_MS = 2000;
const KEPT = 1000;
const SHOWN = 100;

const share = (value) => Math.round(Math.max(-1, Math.min(1, value)) * 1000) / 1000;

// Of `values`, the least one that a share of them does not exceed.
export function quantile(values, part) {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)];
}

const old = (ms) => (ms < 10000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 1000)} s`);
const past = (text) => text.replace(" is ", " was ");

// `send(message)` returns whether it was sent; `held()` returns forward and turn, `holds()` whether anything is held, and
// `drop()` disables it until it is pressed again; `age()` is that of the picture in ms or null; `changed()` is called when
// there is something new to show.
export class Driver {
  constructor(ways) {
    Object.assign(this, { now: () => performance.now() }, ways);
    Object.assign(this, { open: false, robot: null, heard: 0, limit: 500, factor: 1, moving: false, owes: false, stopping: null });
    Object.assign(this, { n: 0, sent: new Map(), roundTrips: [], robotTrips: [], failed: 0, last: "", why: "", unconfirmed: "" });
  }

  // The connection was opened, again or for the first time, or closed.
  connected(open) {
    if (!open) this.halt("no connection to the server");
    Object.assign(this, { open, robot: null, heard: this.now(), n: 0 });
    this.sent.clear();
    this.changed();
  }

  // A message of the server arrived.
  hear(robot) {
    this.heard = this.now();
    const mine = this.mine();
    if (robot !== undefined) this.robot = robot;
    if (!mine && this.mine()) this.owes = true;
    this.check();
    this.pay();
  }

  mine() {
    return this.open && this.robot?.right?.mine === true;
  }

  // After each stop, also one by another operator, the server moves the robot only after a zero.
  pay() {
    if (!this.owes || this.moving || this.stopping || !this.mine()) return;
    this.owes = !this.drive(0, 0);
  }

  // The current state, a line about it, and the same line without numbers that change all the time.
  standing() {
    const is = (state, text, brief = text) => ({ state, text, brief });
    if (!this.open) return is("off", "no connection to the server");
    if (!this.robot) return is("idle", "no robot is chosen");
    const { robot, found, right } = this.robot;
    const lost = found ? null : `${robot} is not found`;
    if (!right?.mine) {
      const holder = right?.holder ? `${right.holder.name} has control` : "nobody has control";
      return is("idle", lost ?? (right ? holder : "who has control is not known yet"));
    }
    const lock = lost !== null ? [lost] : this.silent() ?? this.deaf() ?? this.halting() ?? this.blind();
    if (lock) return is("locked", ...lock);
    return this.moving ? is("driving", "driving") : is("ready", "ready");
  }

  silent() {
    const ms = this.now() - this.heard;
    return ms > SILENT_MS ? [`nothing heard from the server for ${old(ms)}`, "nothing heard from the server"] : null;
  }

  deaf() {
    const ms = this.moving ? this.now() - this.answered : 0;
    return ms > DEAF_MS ? [`no command was answered for ${old(ms)}`, "no command was answered"] : null;
  }

  halting() {
    return this.stopping ? ["STOP is being sent"] : null;
  }

  blind() {
    if (this.limit === null) return null;
    const age = this.age();
    if (age === null) return ["there is no picture of known age"];
    return age > this.limit ? [`the picture is ${old(age)} old`, "the picture is too old"] : null;
  }

  may() {
    const { state } = this.standing();
    return state === "ready" || state === "driving";
  }

  // The held controls have changed.
  step() {
    const [forward, turn] = this.held();
    if (forward === 0 && turn === 0) this.end();
    else if (!this.moving) this.beat();
    // Otherwise the next beat sends it.
  }

  beat() {
    const [forward, turn] = this.held();
    if (forward === 0 && turn === 0) return this.end();
    if (!this.may()) return this.halt(this.standing().text);
    if (!this.drive(forward, turn)) return this.halt("no connection to the server");
    if (this.moving) return;
    Object.assign(this, { moving: true, answered: this.now(), why: "", unconfirmed: "" });
    this.timer = setInterval(() => this.beat(), EVERY_MS);
    this.changed();
  }

  check() {
    if (this.moving && !this.may()) this.halt(this.standing().text);
  }

  // Nothing is held any more.
  end() {
    if (!this.moving) return;
    this.rest();
    this.drive(0, 0);
    this.changed();
  }

  rest() {
    clearInterval(this.timer);
    this.moving = false;
  }

  // Ends movement for a reason. Held controls are ignored until they are pressed again.
  halt(reason) {
    if (this.moving) this.why = `stopped: ${past(reason)}`;
    else if (this.holds()) this.why = `not sent: ${reason}`;
    this.drop();
    this.end();
    this.changed();
  }

  // The server has stopped the robot.
  halted(reason) {
    this.rest();
    this.drop();
    Object.assign(this, { owes: true, why: `the server stopped the robot: ${reason}` });
    this.pay();
    this.changed();
  }

  drive(forward, turn) {
    const age = this.age();
    const what = { forward: share(forward * this.factor), turn: share(turn * this.factor) };
    return this.command("drive", { ...what, seen_ms: age === null ? null : Math.round(age) });
  }

  command(op, fields = {}) {
    const [n, at] = [this.n + 1, this.now()];
    if (!this.send({ op, n, t: Math.round(at * 10) / 10, ...fields })) return false;
    this.n = n;
    this.sent.set(n, { op, at });
    if (this.sent.size > KEPT) this.sent.delete(this.sent.keys().next().value);
    return true;
  }

  // STOP, several times: one may get lost.
  stop() {
    const out = this.command("stop");
    clearInterval(this.stopping?.timer);
    this.rest();
    this.drop();
    const timer = setInterval(() => this.repeat(), STOP_EVERY_MS);
    Object.assign(this, { owes: true, stopping: { timer, since: this.now(), executed: 0 } });
    Object.assign(this, { why: "", unconfirmed: out ? "" : "STOP is not sent: no connection to the server" });
    this.changed();
  }

  repeat() {
    const { since, executed } = this.stopping;
    if (this.now() - since < STOP_FOR_MS) return this.command("stop");
    this.stopped(`STOP is not confirmed: ${executed} of ${STOPS} were carried out`);
  }

  stopped(unconfirmed) {
    clearInterval(this.stopping.timer);
    Object.assign(this, { stopping: null, unconfirmed, why: unconfirmed ? "" : "stopped by STOP" });
    this.pay();
    this.changed();
  }

  // The outcome of a command.
  outcome({ n, outcome, text, ms }) {
    const sent = this.sent.get(n);
    if (!sent) return;
    this.sent.delete(n);
    this.last = text || outcome;
    if (outcome !== "executed") this.failed++;
    // An unreachable robot returned nothing.
    if (outcome !== "unreachable") {
      this.answered = this.now();
      this.roundTrips.push(this.answered - sent.at);
      // The part from the server to the robot and back.
      this.robotTrips.push(ms);
    }
    for (const trips of [this.roundTrips, this.robotTrips]) if (trips.length > KEPT) trips.shift();
    if (sent.op !== "stop" || outcome !== "executed" || !this.stopping) return;
    this.stopping.executed++;
    if (this.stopping.executed === STOPS) this.stopped("");
  }

  trip(part) {
    return quantile(this.roundTrips.slice(-SHOWN), part);
  }
}
