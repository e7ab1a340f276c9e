#!/usr/bin/env python3
"""Serves crates that are not published yet as crates.io will: their index and files from a folder that `cargo publish --dry-run` made
(target/package/tmp-registry), everything else by redirecting to crates.io. Prints its port.
Usage: registry.py FOLDER"""
import json
import pathlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER = pathlib.Path(sys.argv[1])


class Registry(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parts = self.path.strip("/").split("/")
        if parts == ["config.json"]:
            return self.answer(200, json.dumps({"dl": f"http://{self.headers['Host']}/crates"}).encode())
        if parts[0] == "crates":
            name, version = parts[1:3]
            file, elsewhere = FOLDER / f"{name}-{version}.crate", f"https://static.crates.io/crates/{name}/{name}-{version}.crate"
        else:
            file, elsewhere = FOLDER.joinpath("index", *parts), "https://index.crates.io" + self.path
        if file.is_file():
            return self.answer(200, file.read_bytes())
        self.answer(302, b"", elsewhere)

    def answer(self, status, body, location=None):
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
print(server.server_port, flush=True)
server.serve_forever()
