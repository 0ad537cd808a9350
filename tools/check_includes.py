#!/usr/bin/env python3
"""Checks every #include between the directories of src/ against src/CMakeLists.txt, and the
documents too.

A layer may include itself and the layers that its antisd_layer(... USES ...) line names. Layers
below the tensor line may not include torch, and no layer may include <torch/torch.h>, which takes
20 s to compile. docs/architecture.md lists the same layers from the top down, and the map of
README.md has every directory of src/.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
APART = ("core/faults/", "io/parquet/", "ops/optest/")  # separate libraries and programs
TORCH = re.compile(r"^(ATen|c10|torch|caffe2)/")


def read_layers():
    """name -> (its directory, layers it may use, whether it is above the tensor line)"""
    text = (SOURCE / "CMakeLists.txt").read_text()
    line = text.index("tensor line")
    layers = {}
    for match in re.finditer(r"antisd_layer\(([\w/]+)([^)]*)\)", text):
        path, rest = match.groups()
        name = path.split("/")[-1]
        uses = re.search(r"USES (.*?)(?: LINKS| LONG|$)", rest, re.DOTALL)
        named = [word for word in (uses.group(1).split() if uses else []) if not word.startswith("$")]
        for used in named:
            if used not in layers:
                sys.exit(f"src/CMakeLists.txt: layer {name} uses {used}, which is not below it")
        layers[name] = (path, set(named), match.start() > line)
    return layers


def layer_of(file, layers):
    """The layer of the deepest directory that contains the file; None for a separate program or
    library."""
    holders = [(path, name) for name, (path, _, _) in layers.items() if file.startswith(path + "/")]
    return max(holders)[1] if holders and not file.startswith(APART) else None


def check_documents(layers):
    problems = []
    listed = re.search(r"```\n(weights .*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL).group(1)
    names = [line.split()[0] for line in listed.splitlines() if re.match(r"\w", line)]
    if names != list(reversed(layers)):
        problems.append(f"docs/architecture.md: the layers, top down, are {', '.join(reversed(layers))}")
    readme = (ROOT / "README.md").read_text()
    for folder in sorted(path.name for path in SOURCE.iterdir() if path.is_dir()):
        if f"`src/{folder}`" not in readme:
            problems.append(f"README.md: the map lacks src/{folder}")
    return problems


def main():
    layers = read_layers()
    problems = check_documents(layers)
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix not in {".h", ".cpp", ".cu", ".cuh"}:
            continue
        layer = layer_of(path.relative_to(SOURCE).as_posix(), layers)
        where = path.relative_to(ROOT)
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not match:
                continue
            quote, name = match.groups()
            if name == "torch/torch.h":
                problems.append(f"{where}:{number}: include ATen headers instead of <torch/torch.h>")
            if layer is None:
                continue
            _, uses, above = layers[layer]
            if TORCH.match(name) and not above:
                problems.append(f"{where}:{number}: {layer} is below the tensor line and includes {name}")
            target = layer_of(name, layers)
            if quote == '"' and target not in {None, layer} and target not in uses:
                problems.append(f"{where}:{number}: {layer} may not include {target} ({name})")
            if path.suffix in {".cu", ".cuh"} and re.match(r"(fmt|toml\+\+|nlohmann)/", name):
                problems.append(f"{where}:{number}: nvcc rejects {name}")
    print("\n".join(problems) if problems else f"includes: {len(layers)} layers, all point down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
