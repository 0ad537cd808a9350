#!/usr/bin/env python3
"""A Hugging Face hub on loopback addresses, for tests: it speaks the part of the protocol that
downloads need, with the faults that a test asks for.

    python3 tools/loopback_hub.py ROOT [--seconds 120] [--log FILE] [--FAULT ...]

ROOT/models/OWNER/NAME/ and ROOT/datasets/OWNER/NAME/ are the repositories. It prints the address,
http://127.0.0.1:PORT, and ends after --seconds or when its standard input closes. Files that end in
.safetensors, .parquet or .bin are stored as large files: a request for one is sent on to another
server of this process, at 127.0.0.2, as the hub sends it to its storage. The log has a line for
each request: SERVER METHOD PATH, with its range and whether a token came.
"""
import argparse
import hashlib
import http.server
import json
import os
import pathlib
import re
import sys
import threading
import urllib.parse

LARGE = (".safetensors", ".parquet", ".bin")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--log", default=os.devnull)
    parser.add_argument("--token", help="every repository is gated: it needs this token")
    parser.add_argument("--cut", type=int, default=0, help="bytes after which a large file breaks off")
    parser.add_argument("--cuts", type=int, default=1, help="how many times")
    parser.add_argument("--corrupt", type=int, default=0, help="how many large files come damaged")
    parser.add_argument("--no-range", action="store_true", help="ranges are ignored")
    parser.add_argument("--wrong-range", action="store_true", help="ranges begin elsewhere")
    parser.add_argument("--busy", type=int, default=0, help="how many requests are answered with 429")
    parser.add_argument("--broken", type=int, default=0, help="how many are answered with 503")
    parser.add_argument("--slow", type=float, default=0, help="seconds between pieces of a large file")
    parser.add_argument("--list", help="a file name that the list of files has in addition")
    parser.add_argument("--etag", help="the ETag of every file")
    parser.add_argument("--escape", help="where large files are sent to, instead of 127.0.0.2")
    return parser.parse_args()


class Hub:
    """What both servers share."""

    def __init__(self, options):
        self.options = options
        self.lock = threading.Lock()
        self.log = open(options.log, "a", buffering=1)
        self.left = {"cut": options.cuts if options.cut else 0, "corrupt": options.corrupt,
                     "busy": options.busy, "broken": options.broken}
        self.storage = None  # the address of the second server

    def take(self, fault):
        with self.lock:
            self.left[fault] -= 1
            return self.left[fault] >= 0

    def write(self, line):
        with self.lock:
            self.log.write(line + "\n")

    def repository(self, kind, name):
        folder = self.options.root / kind / name
        return folder if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and folder.is_dir() else None

    @staticmethod
    def files(folder):
        return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")
                      if path.is_file())

    def commit(self, folder):
        digest = hashlib.sha1()
        for path in self.files(folder):
            digest.update(path.encode() + b"\0" + (folder / path).read_bytes())
        return digest.hexdigest()

    @staticmethod
    def git_hash(content):
        return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub = None
    server_name = ""

    def log_message(self, *_):
        pass

    def note(self):
        token = self.headers.get("Authorization")
        span = self.headers.get("Range")
        self.hub.write(" ".join([self.server_name, self.command, self.path]
                                + ([f"range={span}"] if span else [])
                                + ([f"token={token.removeprefix('Bearer ')}"] if token else [])))

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()


class Front(Answer):
    server_name = "hub"

    def do_GET(self):
        self.note()
        if self.hub.take("broken"):
            return self.reply(503)
        if self.hub.take("busy"):
            return self.reply(429, Retry_After="0")
        url = urllib.parse.urlsplit(self.path)
        parts = urllib.parse.unquote(url.path).strip("/").split("/")
        if parts[:1] == ["api"]:
            return self.api(parts[1:], url.path)
        kind = "datasets" if parts[0] == "datasets" else "models"
        parts = parts[1:] if kind == "datasets" else parts
        if len(parts) < 5 or parts[2] != "resolve":
            return self.reply(404)
        self.resolve(kind, "/".join(parts[:2]), parts[3], "/".join(parts[4:]))

    def allowed(self):
        wanted = self.hub.options.token
        if wanted is None or self.headers.get("Authorization") == f"Bearer {wanted}":
            return True
        self.reply(401 if "Authorization" not in self.headers else 403, X_Error_Code="GatedRepo")
        return False

    def found(self, kind, name, revision):
        folder = self.hub.repository(kind, name)
        if folder is None:
            self.reply(401, X_Error_Code="RepoNotFound")
            return None
        commit = self.hub.commit(folder)
        if revision not in ("main", "v1", commit, commit[:7]):
            self.reply(404, X_Error_Code="RevisionNotFound")
            return None
        return (folder, commit) if self.allowed() else None

    def api(self, parts, path):
        # The revision is one escaped part: branches may have slashes.
        kind, name = parts[0], "/".join(parts[1:3])
        raw = path.strip("/").split("/")
        if len(raw) < 6 or kind not in ("models", "datasets"):
            return self.reply(404)
        found = self.found(kind, name, urllib.parse.unquote(raw[5]))
        if not found:
            return None
        folder, commit = found
        described = [self.describe(folder, file) for file in self.hub.files(folder)]
        if raw[4] == "tree":
            body = [{"type": "file", "oid": d["blobId"], "size": d["size"], "path": d["rfilename"],
                     **({"lfs": {"oid": d["lfs"]["sha256"], "size": d["size"], "pointerSize": 1}}
                        if "lfs" in d else {})} for d in described]
        else:
            if self.hub.options.list is not None:
                described.append({"rfilename": self.hub.options.list, "size": 3})
            body = {"id": name, "sha": commit, "siblings": described, "private": False,
                    "tags": [], "downloads": 0, "likes": 0}
        return self.reply(200, json.dumps(body).encode(), Content_Type="application/json")

    def describe(self, folder, file):
        content = (folder / file).read_bytes()
        entry = {"rfilename": file, "size": len(content), "blobId": self.hub.git_hash(content)}
        if file.endswith(LARGE):
            entry["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content),
                            "pointerSize": 1}
        return entry

    def resolve(self, kind, name, revision, file):
        found = self.found(kind, name, revision)
        if not found:
            return None
        folder, commit = found
        if file not in self.hub.files(folder):
            return self.reply(404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit)
        content = (folder / file).read_bytes()
        etag = self.hub.options.etag
        if not file.endswith(LARGE):
            etag = etag or self.hub.git_hash(content)
            return self.reply(200, content, ETag=f'"{etag}"', X_Repo_Commit=commit)
        etag = etag or hashlib.sha256(content).hexdigest()
        where = self.hub.options.escape or self.hub.storage
        return self.reply(302, Location=f"{where}/{kind}/{name}/{urllib.parse.quote(file)}",
                          X_Linked_Etag=f'"{etag}"', X_Linked_Size=str(len(content)),
                          X_Repo_Commit=commit)


class Storage(Answer):
    server_name = "storage"

    def do_GET(self):
        self.note()
        path = self.hub.options.root / urllib.parse.unquote(self.path).lstrip("/")
        content = path.read_bytes()
        span = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        start = int(span.group(1)) if span and not self.hub.options.no_range else 0
        if span and start >= len(content):
            return self.reply(416)
        if self.hub.take("corrupt"):
            content = content[:-1] + bytes([content[-1] ^ 1])
        body = content[start:]
        self.send_response(206 if start else 200)
        if start:
            begins = start + (1 if self.hub.options.wrong_range else 0)
            self.send_header("Content-Range", f"bytes {begins}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return None
        if self.hub.take("cut"):
            self.wfile.write(body[:self.hub.options.cut])
            self.wfile.flush()
            self.close_connection = True
            return None
        return self.send_slowly(body) if self.hub.options.slow else self.wfile.write(body)

    def send_slowly(self, body):
        try:
            for at in range(0, len(body), 1000):
                self.wfile.write(body[at:at + 1000])
                threading.Event().wait(self.hub.options.slow)
        except OSError:  # the client has gone
            self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):  # a client that has gone
        pass


def main():
    options = arguments()
    Answer.hub = hub = Hub(options)
    servers = [Server(("127.0.0.1", 0), Front), Server(("127.0.0.2", 0), Storage)]
    hub.storage = f"http://127.0.0.2:{servers[1].server_port}"
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{servers[0].server_port}", flush=True)
    closed = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), closed.set()), daemon=True).start()
    closed.wait(options.seconds)


if __name__ == "__main__":
    main()
