#!/usr/bin/env python3
"""The report, the dashboard and inspect's page in a real browser: headless Chromium through its
driver, with only the standard library.

    tools/browser_test.py build/antisd [--screenshots docs --runs runs/evidence]

Exits with 0 and a message if chromium or chromedriver is not installed (setup/debian-browser.txt).
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
            arguments.append("--no-sandbox")  # Chromium has none for root
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

    def forget(self):
        """Errors logged by earlier pages: a server that ended, a rejected request."""
        self.open("about:blank")
        self.complaints()

    def run(self, script, *arguments):
        return self.send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def point_at(self, css):
        found = self.send("POST", "/element", {"using": "css selector", "value": css})
        move = {"type": "pointerMove", "duration": 0, "x": 0, "y": 0, "origin": found}
        self.send("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

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


def check_fits(browser):
    # Charts take their new size after the next frame, which is late on a busy machine.
    wait_for(lambda: browser.run(FITS), "nothing sticks out on a phone")
    check(True, "nothing sticks out on a phone")


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
    check_fits(browser)
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
        speedups = "return [...document.querySelectorAll('#comparison tbody tr')].map(row => [row.firstChild, row.lastChild].map(cell => cell.textContent))"
        check(["antisd-seed1", "2.0"] in browser.run(speedups), "the table of speedups")
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
        check({name for name, _ in browser.run(speedups)} <= {"base", "antisd-seed0", "antisd-seed1"}, "in the table of speedups too")
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


def test_inspect(browser, program, folder):
    print("inspect")
    page = folder / "u.html"
    row = {"id": "<b>id</b>", "problem": "Numbers 3 16 18 target 30", "answer": "30", "solution": "Let 3 * 16 = 48 ; 48 - 18 = 30 holds So boxed 30",
           "response": "Let 3 * 18 = 54 ; 54 - 16 = 38 no Wait Let 3 * 16 = 48 ; 48 - 18 = 30 holds So boxed 30"}
    home = pathlib.Path(__file__).resolve().parent.parent
    done = subprocess.run([program, "inspect", str(home / "models/countdown"), str(home / "recipes/countdown/task.toml"), "-", "--json", "--html", str(page)],
                          input=json.dumps(row), check=True, capture_output=True, text=True)
    response = json.loads(done.stdout)["responses"][0]
    browser.forget()
    browser.open(page.as_uri())
    check(browser.run("return [...document.querySelectorAll('.heat span')].map(span => span.textContent).join('')") == "".join(response["tokens"]),
          "the heatmap holds every token")
    names = {"s": "s", "t": "t", "u": "u", "phi": "phi", "term": "term", "advantage": "A_t", "h_s": "H_S", "h_t": "H_T"}

    def shown(text):
        return dict(part.split(" ") for part in text.split(": ", 1)[1].split(", "))

    def expected(i):
        return {name: response[key][i] for key, name in names.items()}

    same = lambda found, wanted: all(found[name] == "-" if value is None else float(found[name]) == value for name, value in wanted.items())
    wait = response["tokens"].index(" Wait")
    browser.point_at(f".heat [data-token='{wait}']")
    line = browser.run("return document.querySelector('.numbers').textContent")
    check(line.startswith(f"token {wait}, id {response['ids'][wait]}, ") and same(shown(line), expected(wait)), "pointing at a token shows its numbers")
    check("\nu " in browser.run("return document.querySelector(arguments[0]).title", f".heat [data-token='{wait}']"), "beside the pointer too")
    lines = browser.run("""return [...document.querySelectorAll('.heat span')].map(span => {
      span.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); return document.querySelector('.numbers').textContent; })""")
    check(len(lines) == response["token_count"] and all(same(shown(text), expected(i)) for i, text in enumerate(lines)),
          "the numbers of every token equal the JSON's")
    check(browser.run("return document.querySelector('.given').textContent") == response["teacher_prompt"], "beside the teacher's prompt")
    check("<b>id</b>" in browser.run("return document.querySelector('h2').textContent"), "a problem's name with HTML shows as text")
    check(browser.run("return performance.getEntriesByType('resource').length") == 0, "nothing is loaded")
    browser.resize(390, 800)
    check_fits(browser)
    browser.resize(1200, 900)
    check(browser.complaints() == [], "no console error")


EVIL = '</script><script>window.pwned = 1</script><img src=x onerror="window.pwned = 2">'


def write_hostile_runs(runs):
    """Markup and names of JavaScript built-ins in every place that a page shows; damaged and
    incomplete files."""
    SyntheticRun(runs / "plain grpo", "grpo", 0, 60, every=20).write_all()
    run = SyntheticRun(runs / 'x"><img src=q onerror="window.pwned = 3">', "antisd", 0, 60, every=20)
    run.write_all()
    folder, evil = run.folder, json.dumps(EVIL)
    (folder / "config.toml").write_text(f"[model]\npath = {evil}\n[method]\nname = {evil}\n[train]\nseed = 0\nsteps = 60\n[data]\ntemplate = {evil}\n")
    (folder / "run.json").write_text(json.dumps({"method": EVIL, "exit_reason": EVIL, "version": EVIL, "command": [EVIL]}))
    (folder / "log.txt").write_text(f"2026-01-01T00:00:00Z warning: {EVIL}\n")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    strange = {EVIL: 1, "__proto__": 2, "constructor": 3, f"val-core/{EVIL}/acc/mean@1": 0.5, f"timing_s/{EVIL}": 1, "not a number": float("nan")}
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row | strange) + "\n" for row in rows) + '{"training/global_step": 61, "cri')
    summary = json.loads((folder / "eval/step-000020/summary.json").read_text())
    for name in (EVIL, "__proto__", "constructor", "toString"):
        summary["benches"][name] = dict(summary["benches"]["aime24"])
    (folder / "eval/step-000020/summary.json").write_text(json.dumps(summary))
    (runs / "empty").mkdir()
    (runs / "empty" / "metrics.jsonl").write_text("")
    damaged = SyntheticRun(runs / "damaged", "sd", 1, 60, every=20)
    damaged.write_all()
    for name, content in (("config.toml", b"[[[["), ("run.json", b"{"), ("eval/step-000020/summary.json", b"[1,"),
                          ("metrics.jsonl", b"\xff\xfe\0" * 1000 + b'\n{"training/global_step":1e400}\n{"training/global_step":-5,"a":1}\nnull\n')):
        (damaged.folder / name).write_bytes(content)
    for file in runs.glob("*/rollouts/step-000020.jsonl"):
        samples = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps(row | {"prompt_id": EVIL, "text": EVIL, "reason": EVIL}) + "\n" for row in samples) + '{"torn')


def check_harmless(browser):
    wait_for(lambda: browser.run(ROWS) == 4, "all runs in the table")
    browser.run("document.getElementById('other-details').open = true")
    wait_for(lambda: browser.run("return document.querySelectorAll('#others figure').length") > 20, "the other metrics")
    browser.run("const step = document.getElementById('step'); step.value = '20'; step.dispatchEvent(new Event('change'))")
    wait_for(lambda: browser.run("return [...document.querySelectorAll('#prompt option')].some(one => one.textContent.includes('pwned'))"), "samples of step 20")
    browser.run("const prompt = document.getElementById('prompt'); prompt.value = arguments[0]; prompt.dispatchEvent(new Event('change'))", EVIL)
    check(browser.run("return document.querySelector('#sample-box pre').textContent") == EVIL, "a response of markup shows as text")
    for part in ("runs", "comparison", "evaluation", "phases", "differences", "warnings"):
        check("onerror" in browser.run("return document.getElementById(arguments[0]).textContent", part), f"so does what is in {part}")
    check(browser.run(DRAWN) >= 20, "charts are drawn")
    check(browser.run("return window.pwned === undefined && document.images.length === 0"), "nothing of it becomes markup")
    check(browser.complaints() == [], "no console error")


def test_hostile(browser, program, folder):
    print("hostile text and damaged files")
    runs = folder / "hostile"
    write_hostile_runs(runs)
    page = folder / "hostile.html"
    subprocess.run([program, "report", str(runs), "-o", str(page), "--title", EVIL], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    browser.open(page.as_uri())
    check_harmless(browser)
    server, url = start_dashboard(program, runs)
    try:
        browser.open(url)
        check_harmless(browser)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=30)


def take_pictures(browser, program, runs, screenshots):
    count = len(list(runs.rglob("metrics.jsonl")))
    server, url = start_dashboard(program, runs)
    try:
        browser.open(url)
        wait_for(lambda: browser.run(ROWS) == count, "all runs in the table")
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
    parser.add_argument("--screenshots", type=pathlib.Path, help="folder for the README's screenshots")
    parser.add_argument("--runs", type=pathlib.Path, default="runs/evidence", help="the runs they show, from tools/evidence_runs")
    arguments = parser.parse_args()
    if arguments.screenshots and not arguments.runs.is_dir():
        parser.error(f"{arguments.runs} is not here: tools/evidence_runs makes the runs that the pictures show")
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
            test_inspect(browser, arguments.program, folder)
            test_hostile(browser, arguments.program, folder)
            if arguments.screenshots:
                take_pictures(browser, arguments.program, arguments.runs, arguments.screenshots)
        finally:
            browser.close()
    print("browser test: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
