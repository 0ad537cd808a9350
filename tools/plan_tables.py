#!/usr/bin/env python3
"""Makes what the documents say about machines, from `antisd plan --json`.

    python3 tools/plan_tables.py build/antisd

Tables go between their marks in recipes/README.md, docs/cluster.md and docs/memory.md, the picture to
docs/cluster.svg. Nothing is measured here: everything is predicted by the plan.
"""
import json
import math
import pathlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTHS = "mean=8000,p99=32000"
CARDS = ("h200", "h100", "h20", "a100-40", "a100-80", "l40s", "rtx4090", "rtx5090", "b200")
MODELS = (("qwen3-4b-instruct-2507", "qwen3-4b-instruct-2507"), ("olmo3-7b-instruct", "olmo3-7b-instruct and olmo3-7b-think"),
          ("qwen3-8b", "qwen3-8b"), ("qwen3-30b-a3b", "qwen3-30b-a3b"))
COUNTS = (1, 2, 4, 8, 16, 32, 64)
SHORTER = (8192, 16384, 32768)
# Ways to train on one card; all layers are recomputed.
WAYS = (("whole", ("optim.offload=none",)), ("offload: moments", ("optim.offload=moments",)), ("offload: all", ("optim.offload=all",)),
        ("adapters", ("model.lora.rank=32",)), ("adapters, int8", ("model.lora.rank=32", "model.base_dtype=int8")),
        ("adapters, nf4", ("model.lora.rank=32", "model.base_dtype=nf4")))
# The paper's machines, and one model from 1 to 64 GPUs.
CASES = [("qwen3-8b", "h20", 8), ("qwen3-30b-a3b", "h20", 16), ("qwen3-30b-a3b", "h200", 8)]
SCALED = [("qwen3-8b", "h200", gpus) for gpus in COUNTS]


class Plans:
    """Runs plans side by side and keeps them."""

    def __init__(self, program):
        self.program, self.known = program, {}

    def make(self, requests):
        with ThreadPoolExecutor(2) as pool:
            self.known.update(zip(requests, pool.map(self.run, requests)))

    def run(self, request):
        recipe, card, gpus, settings = request
        command = [self.program, "plan", f"{ROOT}/recipes/{recipe}/antisd.toml", *settings, "--gpus", str(gpus), "--per-node", "8",
                   "--device", card, "--lengths", LENGTHS, "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def __call__(self, recipe, card, gpus, settings=()):
        return self.known[(recipe, card, gpus, tuple(settings))]


def shorter(tokens):
    return ("eval.every=0", f"rollout.max_sequence_tokens={tokens}", f"train.micro_batch_tokens={tokens}")


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def form(plan):
    """n, o, g or w for dist.shard; +m or +a for what is on the host."""
    return plan["shard"][0] + ("" if plan["offload"] == "none" else "+" + plan["offload"][0])


def where_tables(plans):
    lines = []
    for recipe, name in MODELS:
        rows = []
        for gpus in COUNTS:
            cells = []
            for card in CARDS:
                plan = plans(recipe, card, gpus, ("eval.every=0",))
                cells.append(f"{plan['step_seconds']:.0f} {form(plan)}" if plan["fits"] else "")
            rows.append([gpus] + cells)
        lines += [f"`{name}`, seconds of a step:", ""] + table(("GPUs",) + CARDS, rows) + [""]
    rows = []
    for recipe, name in MODELS:
        cells = [", ".join(str(plans(recipe, card, 8, shorter(tokens))["smallest_gpus"] or "-") for tokens in SHORTER) for card in CARDS]
        rows.append([f"`{name}`"] + cells)
    return lines + ["The fewest GPUs for sequences of up to 8K, 16K and 32K tokens:", ""] + table(("model",) + CARDS, rows)


def way(settings, tokens):
    return shorter(tokens) + ("model.gradient_checkpointing=true",) + settings


def memory_tables(plans):
    available = {card: plans("qwen3-8b", card, 1, ("eval.every=0",))["memory"]["available"] for card in CARDS}
    lines = []
    for recipe, name in MODELS:
        rows = []
        for kind, settings in WAYS:
            needed = {tokens: plans(recipe, "h200", 1, way(settings, tokens))["memory"]["needed"] for tokens in SHORTER}
            shortest = plans(recipe, "h200", 1, way(settings, SHORTER[0]))
            on_host = shortest["offloads"][shortest["offload"]]["on_host"]
            cells = []
            for card in CARDS:
                fits = [tokens for tokens in SHORTER if needed[tokens] <= available[card]]
                cells.append(f"{fits[-1] // 1024}K" if fits else "")
            sizes = ", ".join(f"{needed[tokens] / 2**30:.0f}" for tokens in SHORTER)
            rows.append([kind, sizes, f"{on_host / 2**30:.0f}" if on_host else ""] + cells)
        lines += [f"`{name}`:", ""] + table(("way", "GiB", "host") + CARDS, rows) + [""]
    return lines[:-1]


def case_tables(plans):
    sizes, times = [], []
    for recipe, card, gpus in CASES + SCALED:
        plan = plans(recipe, card, gpus)
        name, memory = f"{recipe}, {gpus} x {card}", plan["memory"]
        size = [name, plan["shard"], plan["offload"], f"{memory['needed'] / 2**30:.0f}/{memory['available'] / 2**30:.0f}"]
        if not plan["fits"]:
            sizes.append(size + ["", "", "does not fit"])
            continue
        sizes.append(size + [f"{plan['cache_tokens']:,}", f"{plan['hours']:.0f}", plan["limit"].split(":")[0]])
        seconds = plan["seconds"]
        times.append([name] + [f"{seconds[key]:.0f}" for key in ("sampling", "scoring", "update")] +
                     [f"{seconds['collectives_exposed']:.1f}", f"{seconds['collectives_hidden']:.1f}", f"{plan['step_seconds']:.0f}",
                      f"{seconds['saving']:.0f}", f"{seconds['evaluation']:.0f}"])
    return (table(("recipe, machine", "`dist.shard`", "`optim.offload`", "GiB", "cache tokens", "hours", "limit"), sizes) +
            ["", "Seconds; the collectives are those that are waited for, and those behind the update:", ""] +
            table(("recipe, machine", "sampling", "scoring", "update", "collectives", "hidden", "step", "save", "evaluation"), times))


def picture(plans):
    """Seconds of a step by number of GPUs, both axes logarithmic."""
    width, height, left, right, top, bottom = 640, 360, 60, 190, 30, 50
    points = [(gpus, plans(recipe, card, gpus)) for recipe, card, gpus in SCALED]
    points = [(gpus, plan) for gpus, plan in points if plan["fits"]]
    curves = (("a step", "#222222", "", lambda p: p["step_seconds"]), ("sampling", "#1f5fa8", "", lambda p: p["seconds"]["sampling"]),
              ("the longest response", "#c0392b", "5 4", lambda p: p["seconds"]["longest_response"]),
              ("scoring and update", "#2e8b57", "", lambda p: p["seconds"]["scoring"] + p["seconds"]["update"]))
    most, least = 2000, 10

    def x(gpus):
        return left + math.log2(gpus / points[0][0]) / math.log2(points[-1][0] / points[0][0]) * (width - left - right)

    def y(seconds):
        return top + math.log(most / max(seconds, least)) / math.log(most / least) * (height - top - bottom)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="18">predicted seconds of a step, qwen3-8b, by number of H200</text>']
    for seconds in (10, 20, 50, 100, 200, 500, 1000, 2000):
        parts.append(f'<path d="M{left},{y(seconds):.1f} H{width - right}" stroke="#ddd"/>'
                     f'<text x="{left - 6}" y="{y(seconds) + 4:.1f}" text-anchor="end">{seconds}</text>')
    for gpus, _ in points:
        parts.append(f'<text x="{x(gpus):.1f}" y="{height - bottom + 18}" text-anchor="middle">{gpus}</text>')
    labels = []
    for label, colour, dash, value in curves:
        path = " L".join(f"{x(gpus):.1f},{y(value(plan)):.1f}" for gpus, plan in points)
        parts.append(f'<path d="M{path}" stroke="{colour}" stroke-width="2.5" stroke-dasharray="{dash}" fill="none"/>')
        labels.append((y(value(points[-1][1])) + 4, label, colour))
    place = 0
    for wanted, label, colour in sorted(labels):  # below each other
        place = max(wanted, place + 16)
        parts.append(f'<text x="{width - right + 8}" y="{place:.1f}" fill="{colour}">{label}</text>')
    (ROOT / "docs/cluster.svg").write_text("\n".join(parts + ["</svg>"]) + "\n")


def write_between(path, mark, lines):
    begin, end = f"<!-- {mark}: made by tools/plan_tables.py -->\n", f"<!-- end of {mark} -->\n"
    text = path.read_text()
    head, rest = text.split(begin)
    path.write_text(head + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end)[1])


def main(program):
    plans = Plans(program)
    plans.make([(recipe, card, gpus, ()) for recipe, card, gpus in CASES + SCALED])
    plans.make([(recipe, card, gpus, ("eval.every=0",)) for recipe, _ in MODELS for card in CARDS for gpus in COUNTS])
    plans.make([(recipe, card, 8, shorter(tokens)) for recipe, _ in MODELS for card in CARDS for tokens in SHORTER])
    plans.make([(recipe, "h200", 1, way(settings, tokens)) for recipe, _ in MODELS for _, settings in WAYS for tokens in SHORTER])
    write_between(ROOT / "docs/memory.md", "ways to train", memory_tables(plans))
    write_between(ROOT / "recipes/README.md", "where recipes run", where_tables(plans))
    write_between(ROOT / "docs/cluster.md", "planned machines", case_tables(plans))
    picture(plans)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(str(pathlib.Path(sys.argv[1]).resolve()))
