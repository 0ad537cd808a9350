"""Agreement of the math grader with labelled pairs, and of PyPI's math-verify for comparison.

    .deps/reference/bin/python tools/measure_agreement.py FILE... [--peer] [--whole] [--list]

A FILE is JSONL with rows {"answer", "response", "correct"}, or a Python test file whose
pytest.mark.parametrize tables name their columns gold, pred and expected (or result); such a file
is parsed, never run. Every pair is graded by `antisd grade math --raw`, whatever options its test
would set; --whole grades responses as a rollout's whole text instead. --list prints the pairs that
our grader labels differently. A pair left undecided disagrees with either label.
"""
import argparse
import ast
import json
import logging
import subprocess
from pathlib import Path

EXPECTED = ("expected", "result")


def jsonl_pairs(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            row = json.loads(line)
            yield str(row["answer"]), row["response"], bool(row["correct"])


def parametrize_tables(tree):
    """(column names, list of rows) of every parametrize decorator, as syntax."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("parametrize"):
                continue
            names = ast.literal_eval(call.args[0])
            names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            if isinstance(call.args[1], (ast.List, ast.Tuple)):
                yield names, call.args[1].elts


def python_pairs(path):
    for names, rows in parametrize_tables(ast.parse(path.read_text(encoding="utf-8"))):
        label = next((name for name in EXPECTED if name in names), None)
        if label is None or "gold" not in names or "pred" not in names:
            continue
        for row in rows:
            cells = dict(zip(names, row.elts))
            try:
                gold, found, correct = (ast.literal_eval(cells[name]) for name in ("gold", "pred", label))
            except ValueError:
                print(f"{path.name}:{row.lineno}: left out, its cells are not plain literals")
                continue
            yield str(gold), str(found), bool(correct)


def read_pairs(path):
    return list(python_pairs(path) if path.suffix == ".py" else jsonl_pairs(path))


def our_verdicts(pairs, program, whole):
    rows = "".join(json.dumps({"answer": gold, "response": found}) + "\n" for gold, found, _ in pairs)
    command = [program, "grade", "math"] + ([] if whole else ["--raw"])
    done = subprocess.run(command, input=rows, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def peer_verdicts(pairs):
    from math_verify import parse, verify
    logging.disable(logging.CRITICAL)
    verdicts = []
    for gold, found, _ in pairs:
        try:
            verdicts.append(bool(verify(parse(gold), parse(found))))
        except Exception:  # its parsers raise many kinds of errors; none is a verdict
            verdicts.append(None)
    return verdicts


def share(name, right, total):
    print(f"{name}: {right} of {total}, {100 * right / max(total, 1):.2f} %")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("files", nargs="+", type=Path, metavar="FILE")
    options.add_argument("--program", default="build/antisd")
    options.add_argument("--peer", action="store_true", help="grade with math-verify too")
    options.add_argument("--whole", action="store_true", help="responses are whole texts, not bare answers")
    options.add_argument("--list", action="store_true", help="print the disagreements")
    options = options.parse_args()
    ours = peers = total = 0
    for path in options.files:
        pairs = read_pairs(path)
        grades = our_verdicts(pairs, options.program, options.whole)
        peer = peer_verdicts(pairs) if options.peer else [None] * len(pairs)
        agreed = sum(grade["correct"] is pair[2] for pair, grade in zip(pairs, grades))
        ours, total = ours + agreed, total + len(pairs)
        share(f"{path.name}: antisd", agreed, len(pairs))
        if options.peer:
            agreed = sum(verdict is pair[2] for pair, verdict in zip(pairs, peer))
            peers += agreed
            share(f"{path.name}: math-verify", agreed, len(pairs))
        for (gold, found, correct), grade, verdict in zip(pairs, grades, peer):
            if options.list and grade["correct"] is not correct:
                print(json.dumps({"answer": gold, "response": found, "label": correct, "ours": grade["correct"],
                                  "extracted": grade["extracted"], "reason": grade["reason"]} |
                                 ({"peer": verdict} if options.peer else {})))
    if len(options.files) > 1:
        share("all: antisd", ours, total)
        if options.peer:
            share("all: math-verify", peers, total)


if __name__ == "__main__":
    main()
