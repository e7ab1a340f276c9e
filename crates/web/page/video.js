// Decodes H.264 video by WebCodecs, picture by picture (decision 354).

import { Order } from "./h264.js";

// Maximum number of pictures in the decoder; the server keeps as many.
const MOST_WAITING = 10;
// Maximum number of notes: a decoder may return no frame for some pictures.
const MOST_NOTES = 64;

export class Video {
  // `show(frame, note)` gets each decoded picture with its note and must close it; `tell(text)` gets the reason why there is
  // none.
  constructor({ show, tell }) {
    Object.assign(this, { show, tell, order: new Order(), decoder: null, codec: null, number: 0, notes: new Map(), trouble: null });
  }

  // Takes a picture published at `at` (seconds). Throws if the picture cannot be read.
  take(bytes, at, note) {
    const next = this.order.take(bytes, at);
    if (!next) return this.wait();
    const isFull = this.decoder !== null && this.decoder.decodeQueueSize >= MOST_WAITING;
    if (isFull && !next.isKey) return this.wait();
    try {
      // Pictures that wait before a key frame are out of date.
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

  // Starts again at the next key frame.
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
