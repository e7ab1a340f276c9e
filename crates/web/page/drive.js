// Driving: the WebSocket to the robots, the controls, and STOP.

import { $, attribute, el, fixed, say } from "./dom.js";
import { Connection } from "./server.js";
import { Driver } from "./driver.js";
import { Hold } from "./hold.js";

const DRIVE = "ropewalk.drive.v1";
const TELL_MS = 250;
const TEXTS = "textarea, [contenteditable], input:not([type=range])";

const keep = (name, value) => localStorage.setItem(`drive-${name}`, value);
const kept = (name) => localStorage.getItem(`drive-${name}`);

export class Drive extends Connection {
  // `camera.age()` is the age of the shown picture.
  constructor(secret, camera) {
    super(secret, DRIVE);
    Object.assign(this, { may: false, refused: false, robots: [], choice: null, asked: new Map(), asking: null });
    this.driver = new Driver({
      send: (message) => this.tell(message),
      held: () => this.hold.value(),
      holds: () => this.hold.holds(),
      drop: () => this.hold.drop(),
      age: () => camera.age(),
      changed: () => this.draw(),
    });
    this.hold = new Hold($("pad"), () => this.driver.mine(), () => this.driver.step());
    window.ropewalkDrive = { roundTrips: this.driver.roundTrips, robotTrips: this.driver.robotTrips };
    this.controls();
    this.keys();
    this.ends();
    setInterval(() => this.draw(), TELL_MS);
    this.draw();
  }

  // The role that the server gives this page, null without a connection, and whether the server drives robots.
  allow(role, drives) {
    if (role !== null) {
      this.may = role === "drive" && drives;
      this.refused = role === "drive" && !drives;
      if (this.may && this.isClosed()) this.start();
      if (!this.may) this.socket?.close();
    }
    this.draw();
  }

  isClosed() {
    return this.socket === null || this.socket.readyState === WebSocket.CLOSED;
  }

  start() {
    clearTimeout(this.timer);
    if (this.may) super.start();
  }

  tell(message) {
    return this.send(JSON.stringify(message));
  }

  opened() {
    this.driver.connected(true);
  }

  closed() {
    this.asked.clear();
    this.driver.connected(false);
  }

  text(message) {
    const driver = this.driver;
    switch (message.op) {
      case "robots":
        this.offer(message.robots);
        break;
      case "robot":
        if (message.robot !== this.choice) break;
        if (!message.right?.mine) this.asked.clear();
        if (message.right?.holder?.id !== this.asking) this.asking = null;
        if (Boolean(message.right?.mine) !== driver.mine()) say($("drive-error"), "");
        driver.hear(message);
        return this.draw();
      case "asked":
        if (message.robot === this.choice) this.asked.set(message.by.id, message.by);
        break;
      case "outcome":
        driver.outcome(message);
        // Outcomes come too often to draw each.
        return driver.hear();
      case "stopping":
      case "stopped":
        this.reported(message);
        break;
      case "halted":
        driver.halted(message.reason);
        break;
      case "error":
        this.asking = null;
        say($("drive-error"), message.error);
        break;
    }
    driver.hear();
    this.draw();
  }

  // The robots that may be driven. A chosen one that is gone stays chosen: the page never changes to another by itself.
  offer(robots) {
    this.choice ??= [kept("robot"), robots[0]].find((name) => robots.includes(name)) ?? null;
    const names = this.choice === null || robots.includes(this.choice) ? robots : [...robots, this.choice];
    const select = $("drive-robot");
    select.replaceChildren(...names.map((name) => el("option", { value: name }, name)));
    select.disabled = names.length === 0;
    select.value = this.choice ?? "";
    const isBack = robots.includes(this.choice) && !this.robots.includes(this.choice);
    this.robots = robots;
    if (this.driver.robot === null) this.choose(this.choice);
    else if (isBack) this.tell({ op: "robot", robot: this.choice });
  }

  // Called with messages about STOP for all robots.
  reported() {}

  choose(robot) {
    if (robot === null) return;
    this.driver.halt(`${robot} is chosen`);
    Object.assign(this, { choice: robot, asking: null });
    this.asked.clear();
    this.driver.hear({ robot, found: false, right: null });
    this.tell({ op: "robot", robot });
    this.draw();
  }

  // Sends a request to the server and clears the last error.
  want(op, fields = {}) {
    say($("drive-error"), "");
    this.tell({ op, ...fields });
    this.draw();
  }

  controls() {
    const click = (id, act) => $(id).addEventListener("click", act);
    const driver = this.driver;
    click("drive-request", () => this.want("request"));
    click("drive-release", () => {
      driver.halt("control was released");
      this.want("release");
    });
    click("drive-ask", () => {
      this.asking = driver.robot.right.holder?.id ?? null;
      this.want("ask");
    });
    click("drive-take", () => this.want("take_over"));
    click("drive-hand", () => {
      const [by] = this.asked.values();
      this.asked.clear();
      driver.halt(`${by.name} was given control`);
      this.want("hand_over", { to: by.id });
    });
    click("drive-keep", () => {
      this.asked.delete(this.asked.keys().next().value);
      this.draw();
    });
    $("drive-robot").addEventListener("change", () => {
      keep("robot", $("drive-robot").value);
      this.choose($("drive-robot").value);
    });
    const factor = $("drive-factor");
    const limit = $("drive-limit");
    if (kept("factor")) factor.value = kept("factor");
    if ([...limit.options].some((option) => option.value === kept("limit"))) limit.value = kept("limit");
    const take = () => {
      keep("factor", factor.value);
      keep("limit", limit.value);
      driver.factor = factor.value / 100;
      driver.limit = limit.value === "none" ? null : Number(limit.value);
      this.draw();
    };
    factor.addEventListener("input", take);
    // Afterwards the arrow keys drive again.
    factor.addEventListener("pointerup", () => factor.blur());
    limit.addEventListener("change", take);
    take();
    // Acts on press, not on release.
    $("stop-button").addEventListener("pointerdown", () => this.stop());
    click("stop-button", () => this.stop());
  }

  // Space is STOP, whatever has the focus, unless text is written there.
  keys() {
    const stops = (event) => {
      if ((event.code !== "Space" && event.key !== " ") || $("stop").hidden || event.target.closest?.(TEXTS)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      if (event.type === "keydown" && !event.repeat) this.stop();
    };
    addEventListener("keydown", stops, true);
    addEventListener("keyup", stops, true);
  }

  // Events that end movement, in addition to letting go.
  ends() {
    const halt = (reason) => () => this.driver.halt(reason);
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.driver.halt("the page was hidden");
    });
    document.addEventListener("freeze", halt("the page was frozen"));
    addEventListener("pagehide", halt("the page was left"));
    addEventListener("blur", halt("the window lost the focus"));
  }

  stop() {
    this.driver.stop();
  }

  draw() {
    const driver = this.driver;
    driver.check();
    const { state, text, brief } = driver.standing();
    const none = this.refused;
    const off = none || !this.may;
    document.body.dataset.drive = off ? "off" : state;
    document.body.toggleAttribute("data-stop", !off);
    $("stop").hidden = off;
    $("drive").hidden = !this.may && !none;
    for (const button of document.querySelectorAll('nav [data-tab="drive"]')) button.hidden = $("drive").hidden;
    $("drive-none").hidden = !none;
    $("drive-body").hidden = none;
    attribute($("drive"), "data-robots", none ? "none" : null);
    $("drive-robot").hidden = none;
    say($("stop-note"), driver.unconfirmed);
    if (off) return;
    this.drawRight();
    const locked = state === "locked" ? `locked: ${text}` : state === "ready" ? "ready: hold the pad or the keys" : text;
    say($("drive-state"), locked);
    attribute($("drive-state"), "data-state", state);
    // Read out without numbers that change all the time.
    say($("drive-live"), [state === "locked" ? `locked: ${brief}` : brief, driver.why].filter(Boolean).join("; "));
    say($("drive-why"), driver.why);
    attribute($("pad"), "data-state", state);
    this.drawFacts();
  }

  drawRight() {
    const { right, found } = this.driver.robot ?? {};
    const holder = right?.holder;
    const mine = this.driver.mine();
    const other = !mine && holder ? holder.name : null;
    $("drive-request").hidden = mine || other !== null;
    $("drive-request").disabled = !found;
    $("drive-release").hidden = !mine;
    for (const id of ["drive-ask", "drive-take"]) $(id).hidden = other === null;
    $("drive-ask").disabled = this.asking !== null;
    const asking = this.asking !== null ? "; asked for it" : "";
    const [by] = mine ? this.asked.values() : [];
    for (const id of ["drive-hand", "drive-keep"]) $(id).hidden = !by;
    const who = by ? `${by.name} asks for control` : mine ? "you have control" : other !== null ? `${other} has control${asking}` : "";
    say($("drive-holder"), who);
    $("drive-holder").classList.toggle("asked", Boolean(by));
  }

  drawFacts() {
    const driver = this.driver;
    const { rtt_ms: link, speed, turn } = driver.robot ?? {};
    const part = Number($("drive-factor").value);
    const of = (most, unit) => (typeof most === "number" ? ` · ${fixed((most * part) / 100, 2)} ${unit}` : "");
    say($("drive-factor-text"), `${part} %${of(speed, "m/s")}${of(turn, "rad/s")}`);
    attribute($("drive-factor"), "aria-valuetext", `${part} percent`);
    say($("drive-trip"), `${fixed(driver.trip(0.5), 0)} / ${fixed(driver.trip(0.99), 0)} ms`);
    say($("drive-link"), `${fixed(link, 0)} ms`);
    say($("drive-failed"), String(driver.failed));
    say($("drive-last"), driver.last || "–");
  }
}
