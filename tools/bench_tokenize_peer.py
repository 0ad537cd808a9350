"""PyPI tokenizers measured in the same way as `antisd-bench tokenize`: texts one by one, one
thread, the fastest repeat.

    .deps/reference/bin/python tools/bench_tokenize_peer.py --model DIR --texts FILE.jsonl [--field problem] [--json] \
        [--against build/antisd-bench]

With --against, the program then runs on the same texts, and the ratio is printed.
"""

import argparse
import json
import os
import subprocess
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from transformers import AutoTokenizer, PreTrainedTokenizerFast  # noqa: E402

STRESS_BYTES = 1_000_000


def measure(backend, texts, repeats):
    size = sum(len(text.encode()) for text in texts)
    best, tokens = float("inf"), 0
    for _ in range(repeats):
        start = time.perf_counter()
        tokens = sum(len(backend.encode(text, add_special_tokens=False).ids) for text in texts)
        best = min(best, time.perf_counter() - start)
    return size / best / 1e6, tokens / best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--texts", required=True, nargs="+")
    parser.add_argument("--field", nargs="+", default=["problem"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stress", action="store_true", help="also the megabyte lines, which may take long")
    parser.add_argument("--against", help="antisd-bench, to compare in one run")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    start = time.perf_counter()
    has_config = os.path.exists(os.path.join(options.model, "tokenizer_config.json"))
    tokenizer = (AutoTokenizer if has_config else PreTrainedTokenizerFast).from_pretrained(options.model)
    result = {"load_seconds": time.perf_counter() - start}
    texts = []
    for i, path in enumerate(options.texts):
        field = options.field[min(i, len(options.field) - 1)]
        with open(path, encoding="utf-8") as file:
            texts += [json.loads(line)[field] for line in file]
    speed, result["tokens_per_second"] = measure(tokenizer.backend_tokenizer, texts, options.repeats)
    result["megabytes_per_second"] = speed
    if options.stress:
        lines = {"letter": "a", "space": " ", "digit": "7"}
        result["stress"] = {
            name: speed / measure(tokenizer.backend_tokenizer, [letter * STRESS_BYTES], 1)[0] for name, letter in lines.items()
        }
    if options.against:
        command = [options.against, "tokenize", "--json", "--model", options.model, "--repeats", str(options.repeats)]
        command += ["--texts", *options.texts, "--field", *options.field]
        ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        result["ours"] = ours
        result["ratio"] = ours["megabytes_per_second"] / speed
    if options.json:
        print(json.dumps(result))
        return
    print(f"tokenizers: load {result['load_seconds']:.3f} s, {speed:.2f} MB/s, {result['tokens_per_second'] / 1e6:.2f} M tokens/s")
    for name, ratio in result.get("stress", {}).items():
        print(f"1 MB of one {name}: {ratio:.2f} times its share")
    if options.against:
        print(f"antisd: load {ours['load_seconds']:.3f} s, {ours['megabytes_per_second']:.1f} MB/s, {result['ratio']:.1f} times as fast")
        print(f"antisd, 1 MB lines: {ours['stress']}")


main()
