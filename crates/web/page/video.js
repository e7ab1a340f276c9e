// Decodes H.264 video by WebCodecs, picture by picture (decision 354).

import { Order } from "./h264.js";

// Pictures that the decoder may hold, as many as may wait at the server.
const MOST_WAITING = 10;
// Those whose notes are kept: a decoder may give back none for some.
const MOST_NOTES = 64;

export class Video {
  // `show(frame, note)` gets each decoded picture with its note and has to close it; `tell(text)` says why there is
  // none.
  constructor({ show, tell }) {
    Object.assign(this, { show, tell, order: new Order(), decoder: null, codec: null, number: 0, notes: new Map(), trouble: null });
  }

  // Takes a picture that was published at `at`, in seconds. Throws where it cannot be read.
  take(bytes, at, note) {
    const next = this.order.take(bytes, at);
    if (!next) return this.wait();
    const isFull = this.decoder !== null && this.decoder.decodeQueueSize >= MOST_WAITING;
    if (isFull && !next.isKey) return this.wait();
    try {
      // What waits in front of a key frame is out of date.
      if (next.isKey && (isFull || this.decoder === null || this.codec !== next.codec)) this.open(next.codec);
      const timestamp = this.number++;
      this.notes.set(timestamp, note);
      if (this.notes.size > MOST_NOTES) this.notes.delete(this.notes.keys().next().value);
      this.decoder.decode(new EncodedVideoChunk({ type: next.isKey ? "key" : "delta", timestamp, data: next.data }));
    } catch (error) {
      this.fail(error);
    }
  }

  wait() {
    this.order.lose();
    this.tell(this.trouble ?? "waiting for a key frame");
  }

  open(codec) {
    if (typeof VideoDecoder === "undefined") {
      throw new Error(window.isSecureContext ? "this browser has no WebCodecs to decode it" : "browsers decode it only at localhost or over https");
    }
    this.close();
    this.codec = codec;
    const decoder = (this.decoder = new VideoDecoder({
      output: (frame) => {
        const note = this.notes.get(frame.timestamp);
        this.notes.delete(frame.timestamp);
        if (decoder !== this.decoder || note === undefined) return frame.close();
        this.trouble = null;
        this.show(frame, note);
      },
      error: (error) => decoder === this.decoder && this.fail(error),
    }));
    decoder.configure({ codec, optimizeForLatency: true });
  }

  // Begins again with the next key frame.
  fail(error) {
    this.close();
    this.trouble = `${this.codec ?? "video"}: ${error.message}`;
    this.wait();
  }

  close() {
    if (this.decoder !== null && this.decoder.state !== "closed") this.decoder.close();
    this.decoder = null;
    this.notes.clear();
  }
}
