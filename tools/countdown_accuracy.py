#!/usr/bin/env python3
"""Held-out accuracy of a model on the countdown task, sampled at temperature 1: `data show`,
`generate` and `grade` piped together.

    tools/countdown_accuracy.py build/antisd MODEL [--problems 512] [--seed 0] [--max-tokens 224] [-- options of generate]
"""

import argparse
import json
import subprocess


def run(command, rows=None):
    text = None if rows is None else "".join(json.dumps(row) + "\n" for row in rows)
    out = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("antisd")
    parser.add_argument("model")
    parser.add_argument("--problems", type=int, default=512)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-tokens", type=int, default=224)
    parser.add_argument("options", nargs="*")
    arguments = parser.parse_args()
    for numbers in (3, 4):
        problems = run([arguments.antisd, "data", "show", f"countdown:{numbers}:held-out:{arguments.problems}"])
        prompts = [{"id": row["id"], "prompt": row["problem"] + " |"} for row in problems]
        sampling = ["--temperature", "1", "--max-tokens", str(arguments.max_tokens), "--seed", str(arguments.seed), "--quiet"]
        responses = run([arguments.antisd, "generate", arguments.model, "-", *sampling, *arguments.options], prompts)
        answers = [{"problem": p["problem"], "response": r["text"]} for p, r in zip(problems, responses, strict=True)]
        grades = run([arguments.antisd, "grade", "countdown", "-"], answers)
        right = sum(grade["correct"] is True for grade in grades)
        error = 1.96 * (right / len(grades) * (1 - right / len(grades)) / len(grades)) ** 0.5
        print(
            f"{numbers} numbers: {right} of {len(grades)} right, {right / len(grades):.3f} +- {error:.3f}; "
            f"{sum(r['finish_reason'] == 'length' for r in responses)} truncated, "
            f"{sum(len(r['ids']) for r in responses) / len(responses):.1f} tokens on average"
        )


if __name__ == "__main__":
    main()
