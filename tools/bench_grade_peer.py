"""Grades per second of PyPI's math-verify over the texts of `antisd-bench grade`, on one core.

    .deps/reference/bin/python tools/bench_grade_peer.py --answers FILE.jsonl [--json]
"""
import argparse
import json
import logging
import time

from math_verify import parse, verify

TEXT = ("We simplify step by step and check each case. Putting everything together, we conclude that "
        "the final answer is $\\boxed{%s}$.")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--answers", required=True)
    options.add_argument("--json", action="store_true")
    options = options.parse_args()
    logging.disable(logging.CRITICAL)
    with open(options.answers, encoding="utf-8") as file:
        answers = [json.loads(line)["answer"] for line in file if line.strip()]
    right = 0
    start = time.perf_counter()
    for answer in answers:
        right += bool(verify(parse("$" + answer + "$"), parse(TEXT % answer)))
    rate = len(answers) / (time.perf_counter() - start)
    if options.json:
        print(json.dumps({"bench": "grade", "peer": "math-verify", "answers": len(answers),
                          "grades_per_s_one_core": rate, "correct": right / len(answers)}))
    else:
        print(f"math-verify: {rate:.0f} grades/s on one core, {100 * right / len(answers):.2f} % correct")


if __name__ == "__main__":
    main()
