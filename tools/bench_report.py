#!/usr/bin/env python3
"""How long the report and the dashboard take for long runs (8 runs of 10,000 steps unless told
otherwise).

    tools/bench_report.py build/antisd [--runs 8] [--steps 10000] [--browsers 50] [--seconds 20]

Report: wall time and size of the page. Dashboard: one row per second is appended to every run while
--browsers clients request updates every two seconds, as the page does; latency of these updates and
of first loads.
"""
import argparse
import http.client
import os
import pathlib
import re
import resource
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


def cursor(body):
    """Server and version of an answer, without parsing all of it: the clients share one
    interpreter."""
    head = body[:200].decode()
    return re.search(r'"server":"(\w+)"', head)[1], re.search(r'"version":(\d+)', head)[1]


def cpu_seconds(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client(threading.Thread):
    def __init__(self, address, end, delay):
        super().__init__()
        self.address, self.end, self.delay = address, end, delay
        self.first, self.updates, self.news, self.failed = None, [], 0, 0

    def run(self):
        time.sleep(self.delay)  # browsers are not synchronised
        self.first, body = ask(self.address, "/api/update?since=0")
        server, version = cursor(body)
        while time.monotonic() < self.end:
            time.sleep(2)
            try:
                seconds, body = ask(self.address, f"/api/update?since={version}&server={server}")
            except OSError:
                self.failed += 1
                continue
            self.updates.append(seconds)
            server, version = cursor(body)
            self.news += b'"id":' in body


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
        times, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run([arguments.program, "report", str(folder), "-o", str(page)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            times.append(time.perf_counter() - begin)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 3
        print(f"report: {arguments.runs} runs x {arguments.steps} steps ({size / 1e6:.0f} MB of metrics): "
              f"{min(times):.2f} s best of 3 ({max(times):.2f} s worst), {cpu:.2f} s of CPU; page {page.stat().st_size / 1e6:.2f} MB")
        server = subprocess.Popen([arguments.program, "dashboard", str(folder), "--port", "0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True)
        address = urllib.parse.urlparse(server.stdout.readline().strip())
        alone = [ask(address, "/api/update?since=0") for _ in range(5)]
        print(f"dashboard: a first load is {len(alone[0][1]) / 1e6:.2f} MB in {1000 * min(seconds for seconds, _ in alone):.1f} ms, alone")
        end, cpu = time.monotonic() + arguments.seconds, cpu_seconds(server)
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
        cpu = cpu_seconds(server) - cpu
        server.send_signal(signal.SIGINT)
        server.wait()
        updates = [seconds for client in clients for seconds in client.updates]
        print(f"{arguments.browsers} browsers: {len(updates)} updates, {sum(client.news for client in clients)} of them with news, "
              f"{sum(client.failed for client in clients)} failed; median {1000 * share(updates, .5):.1f} ms, "
              f"99 % {1000 * share(updates, .99):.1f} ms, worst {1000 * max(updates):.1f} ms; "
              f"worst first load {1000 * max(client.first for client in clients):.0f} ms; the server used {cpu:.2f} s of CPU in {arguments.seconds:.0f} s; "
              f"load of the machine {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
