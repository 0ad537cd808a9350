#!/usr/bin/env python3
"""How long the report and the dashboard take for long runs (8 runs of 10,000 steps unless told otherwise).

    tools/bench_report.py build/antisd [--runs 8] [--steps 10000] [--browsers 50] [--seconds 20]

Report: wall time and size of the page. Dashboard: while one row a second is appended to every run, as many clients as
--browsers ask for what is new every two seconds, as the page does; latency of these updates and of first loads.
"""
import argparse
import http.client
import json
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import urllib.parse

from synthetic_runs import SyntheticRun


def ask(address, path):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    begin = time.perf_counter()
    connection.request("GET", path)
    body = connection.getresponse().read()
    seconds = time.perf_counter() - begin
    connection.close()
    return seconds, body


class Client(threading.Thread):
    def __init__(self, address, end, delay):
        super().__init__()
        self.address, self.end, self.delay = address, end, delay
        self.first, self.updates, self.news, self.failed = None, [], 0, 0

    def run(self):
        time.sleep(self.delay)  # browsers do not march in step
        self.first, body = ask(self.address, "/api/update?since=0")
        known = json.loads(body)
        while time.monotonic() < self.end:
            time.sleep(2)
            try:
                seconds, body = ask(self.address, f"/api/update?since={known['version']}&server={known['server']}")
            except OSError:
                self.failed += 1
                continue
            self.updates.append(seconds)
            known = json.loads(body)
            self.news += len(known["runs"]) > 0


def share(values, part):
    return sorted(values)[min(len(values) - 1, int(part * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--browsers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "runs"
        methods = ["antisd", "grpo", "sd", "opd"]
        runs = [SyntheticRun(folder / f"run{i}", methods[i % 4], i // 4, arguments.steps, every=2000) for i in range(arguments.runs)]
        for run in runs:
            run.write_all()
        size = sum(path.stat().st_size for path in folder.rglob("metrics.jsonl"))
        page = pathlib.Path(temporary) / "report.html"
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run([arguments.program, "report", str(folder), "-o", str(page)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - begin)
        print(f"report: {arguments.runs} runs x {arguments.steps} steps ({size / 1e6:.0f} MB of metrics): "
              f"{min(times):.2f} s best of 3 ({max(times):.2f} s worst), page {page.stat().st_size / 1e6:.2f} MB")
        server = subprocess.Popen([arguments.program, "dashboard", str(folder), "--port", "0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        address = urllib.parse.urlparse(server.stdout.readline().strip())
        alone = [ask(address, "/api/update?since=0") for _ in range(5)]
        print(f"dashboard: a first load is {len(alone[0][1]) / 1e6:.2f} MB in {1000 * min(seconds for seconds, _ in alone):.1f} ms, alone")
        end = time.monotonic() + arguments.seconds
        clients = [Client(address, end, 2 * i / arguments.browsers) for i in range(arguments.browsers)]
        for client in clients:
            client.start()
        step = arguments.steps
        while time.monotonic() < end:
            step += 1
            for run in runs:
                run.append(step)
            time.sleep(1)
        for client in clients:
            client.join()
        server.send_signal(signal.SIGINT)
        server.wait()
        updates = [seconds for client in clients for seconds in client.updates]
        print(f"{arguments.browsers} browsers: {len(updates)} updates, {sum(client.news for client in clients)} of them with news, "
              f"{sum(client.failed for client in clients)} failed; median {1000 * share(updates, .5):.1f} ms, "
              f"99 % {1000 * share(updates, .99):.1f} ms, worst {1000 * max(updates):.1f} ms; "
              f"worst first load {1000 * max(client.first for client in clients):.0f} ms")


if __name__ == "__main__":
    main()
