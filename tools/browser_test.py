#!/usr/bin/env python3
"""The report and the dashboard in a real browser: headless Chromium through its driver, standard library alone.

    tools/browser_test.py build/antisd [--screenshots docs]

Leaves with 0 and a message where chromium or chromedriver is not installed (setup/debian-browser.txt).
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

from synthetic_runs import SyntheticRun


class Browser:
    """A session of the WebDriver protocol."""

    def __init__(self, folder, chromium, chromedriver):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        environment = dict(os.environ, HOME=str(folder), XDG_CONFIG_HOME=str(folder), XDG_CACHE_HOME=str(folder))
        self.driver = subprocess.Popen([chromedriver, f"--port={port}", "--silent"], env=environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        wait_for(lambda: self.send("GET", "/status")["ready"], "chromedriver")
        arguments = ["--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--user-data-dir={folder}/profile", "--window-size=1200,900"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium has no sandbox for root; the pages are our own
        options = {"binary": chromium, "args": arguments}
        answer = self.send("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += "/session/" + answer["sessionId"]

    def send(self, method, path, body=None):
        data = None if method == "GET" or method == "DELETE" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].split("\n")[0]) from None

    def open(self, url):
        self.send("POST", "/url", {"url": url})

    def run(self, script, *arguments):
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, **parameters):
        return self.send("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def resize(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def complaints(self):
        entries = self.send("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("SEVERE", "WARNING")]

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.send("GET", "/screenshot")))

    def close(self):
        try:
            if "/session/" in self.base:
                self.send("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()


def wait_for(condition, what, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            if condition():
                return
        except (OSError, RuntimeError, KeyError):
            pass
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def check(value, what):
    if not value:
        raise AssertionError(what)
    print(f"  {what}")


ROWS = "return document.querySelectorAll('#runs tbody tr').length"
DRAWN = "antisd.drawAll(); return [...antisd.charts.values()].filter(one => one.chart).length"
FITS = "return document.documentElement.scrollWidth <= document.documentElement.clientWidth"


def test_report(browser, program, runs, folder):
    print("report")
    page = folder / "report.html"
    subprocess.run([program, "report", *map(str, sorted(runs.iterdir())), "-o", str(page), "--title", "Three methods"],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    browser.open(page.as_uri())
    wait_for(lambda: browser.run(ROWS) == 5, "all runs in the table")
    check(browser.run(DRAWN) >= 12, "charts are drawn")
    means = browser.run("""const runs = [2, 1].map((width, i) => ({rows: {width, last: 5, columns: new Map([["m", [null, null,
      i ? [null, 1, 2, 3, 4, 5] : [1, 3, 7]]]])}})); return antisd.overSeeds(runs, "m")""")
    check([(p["x"], p["y"], p["low"], p["high"], p["seeds"]) for p in means] ==
          [(1, 1, 1, 1, 2), (3, 3, 3, 3, 2), (5, 6, 5, 7, 2)], "mean and range over seeds, of runs with different buckets")
    check(browser.run("return [...document.querySelectorAll('#runs tbody tr')].some(row => row.textContent.includes('sd <i>odd</i> name'))"),
          "a name with spaces and HTML shows as text")
    check(browser.run("return document.querySelectorAll('#sample-box .card').length") == 5, "one card a run for the same prompt")
    check(browser.run("return document.querySelector('#sample-box pre').textContent").find("<script>alert(") > 0 and
          browser.run("return document.querySelectorAll('#sample-box pre *').length") == 0, "a response with script shows as text")
    check("timeout" in browser.run("return document.getElementById('warnings').textContent"), "warnings of the log are shown")
    check(browser.run("return performance.getEntriesByType('resource').length") == 0, "nothing is loaded")
    check(browser.run("document.getElementById('other-details').open = true; return true"), "every other metric opens")
    wait_for(lambda: browser.run("return document.querySelectorAll('#others figure').length") > 20, "the other metrics")
    browser.run("document.getElementById('other-details').open = false")
    browser.resize(390, 800)
    check(browser.run(FITS), "nothing sticks out on a phone")
    browser.resize(1200, 900)
    pdf = base64.b64decode(browser.send("POST", "/print", {"background": True}))
    check(pdf.startswith(b"%PDF") and len(pdf) > 50_000, "it prints")
    browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.run("document.getElementById('entropy').parentNode.scrollIntoView()")
    wait_for(lambda: browser.run("return [...antisd.charts.values()].some(one => one.chart && one.chart.options.scales.x.ticks.color === '#e6e8eb')"),
             "charts take the dark colours")
    check(True, "charts take the dark colours")
    browser.devtools("Emulation.setEmulatedMedia", features=[])
    check(browser.complaints() == [], "no console error")


def start_dashboard(program, runs, *more):
    server = subprocess.Popen([program, "dashboard", str(runs), "--port", "0", *more], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    return server, server.stdout.readline().strip()


def test_dashboard(browser, program, runs):
    print("dashboard")
    server, url = start_dashboard(program, runs)
    try:
        browser.open(url)
        wait_for(lambda: browser.run(ROWS) == 5, "all runs in the table")
        growing = SyntheticRun(runs / "antisd-seed0", "antisd", 0, 200)
        growing.append(201)
        text = "return document.getElementById('runs').textContent"
        wait_for(lambda: "201 / 200" in browser.run(text), "the run grows")
        check(browser.run("return [...antisd.state.runs.values()].some(run => run.rows.last === 201 && run.rows.columns.get('actor/lr')[2].length === 202)"),
              "a step that was written shows, joined to what was there")
        SyntheticRun(runs / "new run", "opd", 0, 20).write_all()
        wait_for(lambda: "new run" in browser.run(text), "a new run appears")
        check(True, "a run that begins appears")
        type_into = "const box = document.getElementById('filter'); box.value = arguments[0]; box.dispatchEvent(new Event('input')); "
        check(browser.run(type_into + ROWS, "antisd") == 2, "the filter leaves runs by name")
        check(browser.run(type_into + ROWS, "no such run") == 0 or "No run" in browser.run(text), "a filter that fits nothing says so")
        browser.run(type_into + ROWS, "")
        browser.run("const step = document.getElementById('step'); step.value = '100'; step.dispatchEvent(new Event('change'))")
        wait_for(lambda: browser.run("return document.querySelectorAll('#sample-box .card').length") == 5, "samples of step 100")
        before = browser.run("return document.querySelector('#sample-box pre').textContent")
        browser.run("document.querySelector('#sample-box .card button').click()")
        check(browser.run("return document.querySelector('#sample-box pre').textContent") != before, "a sample opens, and the next one")
        check(browser.run("return performance.getEntriesByType('resource').every(one => new URL(one.name).origin === location.origin)"),
              "everything comes from the dashboard")
        check(browser.complaints() == [], "no console error, no breach of the content policy")
    finally:
        server.send_signal(signal.SIGINT)
        status = server.wait(timeout=30)
    check(status == 130, "^C ends it")
    server, url = start_dashboard(program, runs, "--token", "open-sesame")
    try:
        browser.open(url.split("?")[0])
        check("token" in browser.run("return document.body.textContent"), "without the token it shows nothing")
        browser.open(url)
        wait_for(lambda: browser.run(ROWS) == 6, "runs, with the token")
        check("token" not in browser.run("return location.href"), "the token leaves the address bar")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def take_pictures(browser, program, folder, screenshots):
    runs = folder / "pictures"
    for method, seed in (("grpo", 0), ("grpo", 1), ("antisd", 0), ("antisd", 1), ("sd", 0)):
        SyntheticRun(runs / f"{method}-seed{seed}", method, seed, 200).write_all()
    server, url = start_dashboard(program, runs)
    try:
        browser.open(url)
        wait_for(lambda: browser.run(ROWS) == 5, "all runs in the table")
        browser.resize(1000, 660)
        for part, name, scheme in (("runs", "dashboard", "light"), ("curves", "report", "light"), ("entropy", "report-dark", "dark")):
            browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.run("document.getElementById(arguments[0]).parentNode.scrollIntoView()", part)
            time.sleep(1)
            browser.screenshot(screenshots / f"{name}.png")
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--screenshots", type=pathlib.Path, help="folder for the pictures of the README")
    arguments = parser.parse_args()
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not chromedriver:
        print("browser test: skipped, chromium and chromedriver are not here (setup/debian-browser.txt names the packages)")
        return 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = pathlib.Path(temporary)
        runs = folder / "runs"
        for method, seed in (("grpo", 0), ("grpo", 1), ("antisd", 0), ("antisd", 1)):
            SyntheticRun(runs / f"{method}-seed{seed}", method, seed, 200).write_all()
        SyntheticRun(runs / "sd <i>odd<" / "i> name", "sd", 0, 150).write_all()
        browser = Browser(folder, chromium, chromedriver)
        try:
            test_report(browser, arguments.program, runs, folder)
            test_dashboard(browser, arguments.program, runs)
            if arguments.screenshots:
                take_pictures(browser, arguments.program, folder, arguments.screenshots)
        finally:
            browser.close()
    print("browser test: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
