#!/usr/bin/env python3
"""How fast the dashboard answers while other connections are idle or very slow, all from loopback.

    tools/dashboard_load.py build/antisd                  # 500 idle, 64 dripping, 20 s
    tools/dashboard_load.py build/antisd --idle 2000      # more than its table holds

Idle ones connect and send nothing; dripping ones send a byte of a header every half second and
reconnect when they are closed. Each update is requested on a new connection. Uses only the standard
library.
"""
import argparse
import os
import pathlib
import selectors
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

from synthetic_runs import SyntheticRun

HEADER = b"GET /api/update HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "


class Load(threading.Thread):
    """Keeps the idle and the dripping connections up until stop()."""

    def __init__(self, address, idle, dripping):
        super().__init__()
        self.address, self.stopping = address, threading.Event()
        self.selector = selectors.DefaultSelector()
        self.closed = {"idle": 0, "dripping": 0}  # by the server
        self.drips = {}
        for kind, count in (("idle", idle), ("dripping", dripping)):
            for _ in range(count):
                self.open(kind)

    def open(self, kind):
        connection = socket.create_connection(self.address, timeout=10)
        connection.setblocking(False)
        self.selector.register(connection, selectors.EVENT_READ, kind)
        if kind == "dripping":
            self.drips[connection] = 0

    def run(self):
        while not self.stopping.is_set():
            deadline = time.monotonic() + 0.5
            while (left := deadline - time.monotonic()) > 0 and not self.stopping.is_set():
                for key, _ in self.selector.select(left):
                    self.read(key.fileobj, key.data)
            for connection in list(self.drips):
                self.drip(connection)
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()

    def drip(self, connection):
        at = self.drips[connection]
        self.drips[connection] += 1
        try:
            connection.send(HEADER[at:at + 1] or b"x")
        except OSError:
            pass  # closed: read() notices

    def read(self, connection, kind):
        try:
            if connection.recv(4096):
                return  # a 408, then the end
        except BlockingIOError:
            return
        except OSError:
            pass
        self.selector.unregister(connection)
        self.drips.pop(connection, None)
        connection.close()
        self.closed[kind] += 1
        if kind == "dripping":
            self.open(kind)

    def stop(self):
        self.stopping.set()
        self.join()


def ask(address, path):
    """Seconds until the answer is complete, and the answer."""
    begin = time.perf_counter()
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    if not answer.startswith(b"HTTP/1.1 200"):
        raise OSError(f"no answer: {answer[:100]!r}")
    return time.perf_counter() - begin, answer


def measure(address, seconds):
    times, failed, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            times.append(ask(address, "/api/update?since=0")[0])
        except OSError:
            failed += 1
        time.sleep(0.05)
    times.sort()
    return (f"{len(times)} updates, {failed} failed; median {1000 * times[len(times) // 2]:.1f} ms, "
            f"99 % {1000 * times[int(0.99 * len(times))]:.1f} ms, worst {1000 * times[-1]:.1f} ms") if times else f"0 updates, {failed} failed"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--idle", type=int, default=500)
    parser.add_argument("--dripping", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "runs"
        for i in range(2):
            SyntheticRun(folder / f"run{i}", ["antisd", "grpo"][i], 0, 200, every=100).write_all()
        server = subprocess.Popen([arguments.program, "dashboard", str(folder), "--port", "0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        try:
            url = urllib.parse.urlparse(server.stdout.readline().strip())
            address = (url.hostname, url.port)
            print(f"alone: {measure(address, min(5, arguments.seconds))}")
            load = Load(address, arguments.idle, arguments.dripping)
            load.start()
            print(f"beside {arguments.idle} idle and {arguments.dripping} dripping: {measure(address, arguments.seconds)}")
            load.stop()
            print(f"closed by the server: {load.closed['idle']} idle, {load.closed['dripping']} dripping; load of the machine {os.getloadavg()[0]:.1f}")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()


if __name__ == "__main__":
    main()
