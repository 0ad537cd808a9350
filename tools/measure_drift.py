#!/usr/bin/env python3
"""The differences of a model's log-probabilities between the sampler, the scorer and fp32 on the
CPU, on responses that the model samples itself.

    build/antisd data show countdown:4 --limit 64 > prompts.jsonl
    tools/measure_drift.py build/antisd models/countdown prompts.jsonl --template '{problem} |' --device cuda --dtype bf16

Prints the mean and the largest |delta logp| of the sampled tokens, sampler against scorer and
scorer against fp32.
"""
import argparse
import json
import pathlib
import shlex
import shutil
import subprocess


def rows_of(program, *arguments, rows=None):
    text = None if rows is None else "".join(json.dumps(row) + "\n" for row in rows)
    output = subprocess.run([*shlex.split(program), *arguments], input=text, capture_output=True, text=True)
    if output.returncode != 0:
        raise SystemExit(f"{program} {' '.join(arguments)}: {output.stderr.strip()}")
    return [json.loads(line) for line in output.stdout.splitlines()]


def bf16_copy(model, directory):
    """The model with its weights rounded to bf16, as models are published: both precisions then
    have the same weights."""
    from safetensors.torch import load_file, save_file
    shutil.copytree(model, directory, ignore=shutil.ignore_patterns("*.safetensors*"), dirs_exist_ok=True)
    weights = {}
    for path in pathlib.Path(model).glob("*.safetensors"):
        weights.update(load_file(path))
    save_file({name: value.bfloat16() for name, value in weights.items()}, pathlib.Path(directory) / "model.safetensors",
              metadata={"format": "pt"})
    return directory


def flat(rows, field):
    return [value for row in rows for value in row[field]]


def difference(a, b):
    gaps = [abs(x - y) for x, y in zip(a, b, strict=True)]
    return f"mean |delta logp| {sum(gaps) / len(gaps):.5f}, largest {max(gaps):.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="antisd, or a command that starts it")
    parser.add_argument("model")
    parser.add_argument("prompts", help="JSONL rows")
    parser.add_argument("--template", default="{prompt}", help="the prompt of a row: a text that contains {column}")
    parser.add_argument("--n", type=int, default=4, help="samples per prompt")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bf16-copy", metavar="DIR", help="round the weights first; the rounded model is written there")
    options = parser.parse_args()
    if options.bf16_copy:
        options.model = bf16_copy(options.model, options.bf16_copy)
    with open(options.prompts) as file:
        rows = [json.loads(line) for line in file]
    texts = [{"text": options.template.format(**row)} for row in rows]
    prompts = [row["ids"] for row in rows_of(options.program, "tokenize", options.model, rows=texts)]

    where = ["--device", options.device, "--dtype", options.dtype, "--threads", str(options.threads)]
    sampled = rows_of(options.program, "generate", options.model, *where, "--quiet", "--n", str(options.n), "--max-tokens",
                      str(options.max_tokens), rows=[{"prompt_ids": ids} for ids in prompts])
    samples = [sample for row in sampled for sample in row["samples"]]
    passages = [{"prompt_ids": ids, "response_ids": sample["ids"]} for ids, row in zip(prompts, sampled, strict=True)
                for sample in row["samples"]]
    scored = rows_of(options.program, "score", options.model, *where, rows=passages)
    exact = rows_of(options.program, "score", options.model, "--device", "cpu", "--dtype", "fp32", "--threads",
                    str(options.threads), rows=passages)
    entropy = flat(exact, "entropy")
    print(f"{options.model}, {options.device} {options.dtype}: {len(samples)} responses, {len(entropy)} tokens, "
          f"mean entropy {sum(entropy) / len(entropy):.3f}")
    print(f"  sampled against scored: {difference(flat(samples, 'logp'), flat(scored, 'logp'))}")
    print(f"  scored against fp32 on the CPU: {difference(flat(scored, 'logp'), flat(exact, 'logp'))}")


if __name__ == "__main__":
    main()
