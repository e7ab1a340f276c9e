// Foxglove Studio in a Chromium without a window, and the pixels that it shows.

import { createReadStream, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";
import puppeteer from "puppeteer-core";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".json": "application/json", ".wasm": "application/wasm", ".png": "image/png" };

// Serves the page, the layout and npm's packages on loopback.
export async function serve(here, layout) {
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://localhost").pathname);
    const file = path === "/" ? join(here, "host.html") : path.startsWith("/modules/") ? join(here, "node_modules", path.slice(9)) : null;
    if (path === "/layout.json") {
      response.writeHead(200, { "content-type": TYPES[".json"] }).end(JSON.stringify(layout));
    } else if (file && statSync(file, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
      createReadStream(file).pipe(response);
    } else {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

// Starts Chromium with a software renderer, without access to other hosts.
export function launch(folder) {
  return puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    pipe: true,
    userDataDir: join(folder, "profile"),
    defaultViewport: { width: 1600, height: 1000 },
    protocolTimeout: 120_000,
    args: [
      "--no-sandbox",
      "--disable-dev-shm-usage",
      "--use-angle=swiftshader",
      "--enable-unsafe-swiftshader",
      "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    ],
  });
}

// A panel of Studio, by its name in the layout.
export class Panel {
  constructor(page, name) {
    this.page = page;
    this.selector = `[data-testid="panel-mouseenter-container ${name}"]`;
  }

  // The pixels of its largest canvas, as the screen shows them.
  async pixels() {
    const clip = await this.page.evaluate((selector) => {
      const canvases = [...document.querySelectorAll(`${selector} canvas`)].map((canvas) => canvas.getBoundingClientRect());
      const rect = canvases.sort((a, b) => b.width * b.height - a.width * a.height)[0];
      return rect && { x: Math.ceil(rect.x), y: Math.ceil(rect.y), width: Math.floor(rect.width), height: Math.floor(rect.height) };
    }, this.selector);
    if (!clip || clip.width === 0 || clip.height === 0) return null;
    const png = await this.page.screenshot({ clip, encoding: "base64" });
    const data = await this.page.evaluate(async (png) => {
      const bitmap = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
      const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
      context.drawImage(bitmap, 0, 0);
      const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
      let text = "";
      for (let at = 0; at < data.length; at += 32768) text += String.fromCharCode(...data.subarray(at, at + 32768));
      return btoa(text);
    }, png);
    return new Pixels(clip.width, clip.height, Buffer.from(data, "base64"));
  }

  async text() {
    return this.page.evaluate((selector) => document.querySelector(selector)?.innerText ?? "", this.selector);
  }
}

// A picture, four bytes a pixel.
class Pixels {
  constructor(width, height, data) {
    Object.assign(this, { width, height, data });
  }

  at(x, y) {
    return [...this.data.subarray(4 * (Math.round(y) * this.width + Math.round(x))).subarray(0, 3)];
  }

  // The places whose colour differs by at most `tolerance` in each of red, green and blue.
  find(colour, tolerance) {
    const found = [];
    for (let at = 0; at < this.width * this.height; at++) {
      if (colour.every((part, i) => Math.abs(part - this.data[4 * at + i]) <= tolerance)) {
        found.push({ x: at % this.width, y: Math.floor(at / this.width) });
      }
    }
    return found;
  }
}

// Four rectangles of colours as a JPEG file.
export async function jpeg(page, width, height, colours) {
  const bytes = await page.evaluate(async (width, height, colours) => {
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    colours.forEach((colour, i) => {
      context.fillStyle = `rgb(${colour.join(",")})`;
      context.fillRect((i % 2) * (width / 2), Math.floor(i / 2) * (height / 2), width / 2, height / 2);
    });
    return [...new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg", quality: 0.9 })).arrayBuffer())];
  }, width, height, colours);
  return bytes;
}

export async function screenshot(page, folder, name) {
  if (folder) writeFileSync(join(folder, `${name}.png`), await page.screenshot());
}
