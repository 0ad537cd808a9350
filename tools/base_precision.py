#!/usr/bin/env python3
"""What a quantised base does to a model's log-probabilities, on responses that the exact model
samples itself: mean |delta logp| of int8 and nf4 against the weights as they are.

    build/antisd data show countdown:4 --limit 64 > prompts.jsonl
    tools/base_precision.py build/antisd models/countdown prompts.jsonl --template '{problem} |'

Rows with prompt_ids need no template. Several models may be given, separated by commas.
"""
import argparse
import json

from measure_drift import difference, flat, rows_of

FORMATS = ("int8", "nf4")


def prompts_of(options, model):
    with open(options.prompts) as file:
        rows = [json.loads(line) for line in file][:options.limit]
    if not options.template:
        return [row["prompt_ids"] for row in rows]
    texts = [{"text": options.template.format(**row)} for row in rows]
    return [row["ids"] for row in rows_of(options.program, "tokenize", model, rows=texts)]


def compare(options, model):
    prompts = prompts_of(options, model)
    where = ["--device", options.device, "--dtype", options.dtype, "--threads", str(options.threads)]
    sampled = rows_of(options.program, "generate", model, *where, "--quiet", "--n", str(options.n), "--max-tokens",
                      str(options.max_tokens), rows=[{"prompt_ids": ids} for ids in prompts])
    passages = [{"prompt_ids": ids, "response_ids": sample["ids"]} for ids, row in zip(prompts, sampled, strict=True)
                for sample in row["samples"]]
    exact = rows_of(options.program, "score", model, *where, rows=passages)
    entropy = flat(exact, "entropy")
    print(f"{model}: {len(passages)} responses, {len(entropy)} tokens, mean entropy {sum(entropy) / len(entropy):.3f}")
    for base in FORMATS:
        scored = rows_of(options.program, "score", model, *where, "--base-dtype", base, rows=passages)
        print(f"  {base}: {difference(flat(scored, 'logp'), flat(exact, 'logp'))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="antisd, or a command that starts it")
    parser.add_argument("models", help="directories, separated by commas")
    parser.add_argument("prompts", help="JSONL rows")
    parser.add_argument("--template", help="the prompt of a row: a text that contains {column}")
    parser.add_argument("--limit", type=int, default=64, help="rows that are used")
    parser.add_argument("--n", type=int, default=4, help="samples per prompt")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for model in options.models.split(","):
        compare(options, model)


if __name__ == "__main__":
    main()
