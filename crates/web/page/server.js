// WebSockets to the server: the observed state, and messages of topics. drive.js has one more.

const STATE = "ropewalk.page.v1";
const MESSAGES = "foxglove.websocket.v1";
const LONGEST_PAUSE_MS = 8000;
// Operations with which messages of topics come.
const [PLAIN, TIMED] = [1, 0x80];

// The token from the address, which is taken out of it. It stays in this tab only: cookies would go to other ports of
// the host, too.
export function token() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    history.replaceState(null, "", location.pathname);
  }
  return given || sessionStorage.getItem("token");
}

// The role that the token gives, or the server's refusal.
export async function role(secret) {
  const headers = secret ? { authorization: `Bearer ${secret}` } : {};
  const answer = await fetch("/role", { headers, cache: "no-store" });
  const line = (await answer.text()).trim();
  return answer.ok ? { role: line } : { refusal: line };
}

function open(secret, protocol) {
  const scheme = location.protocol === "https:" ? "wss" : "ws";
  const query = secret ? `?token=${encodeURIComponent(secret)}` : "";
  const socket = new WebSocket(`${scheme}://${location.host}/${query}`, protocol);
  socket.binaryType = "arraybuffer";
  return socket;
}

// Connects again and again.
export class Connection {
  constructor(secret, protocol) {
    Object.assign(this, { secret, protocol, pause: 500, socket: null });
  }

  start() {
    const socket = (this.socket = open(this.secret, this.protocol));
    socket.onopen = () => {
      this.pause = 500;
      this.opened();
    };
    socket.onmessage = (event) => {
      if (typeof event.data === "string") this.text(JSON.parse(event.data));
      else this.bytes(event.data);
    };
    socket.onclose = () => {
      this.closed();
      this.timer = setTimeout(() => this.start(), this.pause);
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MS);
    };
  }

  send(message) {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(message);
    return true;
  }

  opened() {}
  closed() {}
  text() {}
  bytes() {}
}

// RFC 7396: null removes a member.
function merge(target, patch) {
  if (patch === null || typeof patch !== "object" || Array.isArray(patch)) return patch;
  const result = target !== null && typeof target === "object" && !Array.isArray(target) ? target : {};
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete result[name];
    else result[name] = merge(result[name], value);
  }
  return result;
}

// The observed state. Calls `changed(state)`, `happened(events)`, `past(history)`, `recording(what)`, `connected(role or
// null)`, and `clock(server time, asked at, answered at)`, where the last two are in ms of this page's clock.
export class Observed extends Connection {
  constructor(secret, listener) {
    super(secret, STATE);
    Object.assign(this, { listener, state: null, asked: new Map(), number: 0 });
  }

  closed() {
    for (const { reject } of this.asked.values()) reject(new Error("the server is gone"));
    this.asked.clear();
    this.listener.connected(null);
  }

  text(message) {
    switch (message.op) {
      case "hello":
        this.state = null;
        this.listener.connected(message.role, message.version, message.drive);
        break;
      case "history":
        this.listener.past(message);
        break;
      case "state":
        // Without null members, as after a difference.
        this.state = merge({}, message.state);
        this.listener.changed(this.state);
        break;
      case "delta":
        this.state = merge(this.state, message.patch);
        this.listener.changed(this.state);
        this.time();
        break;
      case "recording":
        this.listener.recording(message);
        break;
      case "events":
        this.listener.happened(message.events);
        break;
      case "answer": {
        const asked = this.asked.get(message.id);
        this.asked.delete(message.id);
        if (message.error) asked?.reject(new Error(message.error));
        else asked?.resolve(message.now);
        break;
      }
    }
  }

  // Sends a request; resolves to the answer, for a change the resulting settings.
  ask(request) {
    const id = ++this.number;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject });
      if (this.send(JSON.stringify({ ...request, id }))) return;
      this.asked.delete(id);
      reject(new Error("the server is gone"));
    });
  }

  async time() {
    const asked = performance.now();
    try {
      const there = await this.ask({ op: "time" });
      this.listener.clock(there, asked, performance.now());
    } catch {
      // The clock is compared again on the next connection.
    }
  }
}

// Messages of topics, by the Foxglove protocol. Calls `channels(list)` when topics come and go.
export class Messages extends Connection {
  constructor(secret, listener) {
    super(secret, MESSAGES);
    Object.assign(this, { listener, known: new Map(), wanted: new Map(), number: 0 });
  }

  closed() {
    this.known.clear();
    for (const want of this.wanted.values()) want.channel = null;
    this.listener.channels([]);
  }

  text(message) {
    if (message.op === "advertise") for (const channel of message.channels) this.known.set(channel.id, channel);
    else if (message.op === "unadvertise") for (const id of message.channelIds) this.known.delete(id);
    else if (message.op === "status") return this.listener.reported?.(message);
    else return;
    this.listener.channels([...this.known.values()]);
    for (const [id, want] of this.wanted) this.subscribe(id, want);
  }

  bytes(buffer) {
    const view = new DataView(buffer);
    const head = { [PLAIN]: 13, [TIMED]: 29 }[view.byteLength > 0 ? view.getUint8(0) : -1];
    if (!(view.byteLength >= head)) return;
    const want = this.wanted.get(view.getUint32(1, true));
    const seconds = (at) => Number(view.getBigUint64(at, true)) / 1e9;
    const times = head > 13 ? { taken: seconds(13), sent: seconds(21) } : null;
    if (want?.channel) want.take(new DataView(buffer, head), seconds(5), want.channel, times);
  }

  // Subscribes to a topic; with `timed`, each message has the times at which the server took it from the bus and sent it.
  // Returns a function that unsubscribes.
  watch(topic, take, timed = false) {
    const id = ++this.number;
    const want = { topic, take, timed, channel: null };
    this.wanted.set(id, want);
    this.subscribe(id, want);
    return () => {
      this.wanted.delete(id);
      if (want.channel) this.send(JSON.stringify({ op: "unsubscribe", subscriptionIds: [id] }));
    };
  }

  subscribe(id, want) {
    if (want.channel && this.known.has(want.channel.id)) return;
    want.channel = [...this.known.values()].find((channel) => channel.topic === want.topic) ?? null;
    if (!want.channel) return;
    const subscriptions = [{ id, channelId: want.channel.id, ropewalkTimes: want.timed }];
    this.send(JSON.stringify({ op: "subscribe", subscriptions }));
  }
}
