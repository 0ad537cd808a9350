#!/usr/bin/env python3
"""Checks what the documents say about the source tree, so that they stay right when files are
renamed.

Every source path in backticks exists (src/..., tools/..., ...), every function that is named with
its class exists, every relative link has a target, README links every page of docs/, and no line
has more than 100 columns. docs/options.md is generated from the options' help texts, whose width is
free.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS = 100
GENERATED = ROOT / "docs/options.md"
QUOTES_OUTPUT = {ROOT / "docs/inspect.md"}  # a table of the program's output, 112 columns wide
PLACES = ("src", "tools", "fuzz", "bench", "setup", "recipes", "docs", "cmake")
# Placeholders for a name: src/cli/<name>.cpp, src/ops/<name>.h/.cu.
PLACEHOLDER = re.compile(r"[<>*$]|\.h/")


def documents():
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/RESULTS.md",
            *sorted((ROOT / "docs").glob("*.md"))]


def blocks(text):
    """(number, line, whether it is code) of each line; the fences of a block count as code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        mark = line.lstrip().startswith("```")
        yield number, line, code or mark
        code ^= mark


def too_long(path, text):
    return [f"line {number}: {len(line)} columns, more than {COLUMNS}"
            for number, line, code in blocks(text)
            if len(line) > COLUMNS and not (code and path in QUOTES_OUTPUT)]


def missing_paths(prose):
    problems = []
    for span in re.findall(r"`([^`]+)`", prose):
        for word in span.split():
            if re.match(rf"({'|'.join(PLACES)})/\w", word) and not PLACEHOLDER.search(word):
                if not (ROOT / word.rstrip("/")).exists():
                    problems.append(f"`{word}` does not exist")
    return problems


def missing_functions(prose, words):
    named = re.findall(r"`[A-Z]\w+::(\w+)`", prose)
    return [f"`::{name}` is nowhere in src/" for name in named if name not in words]


def missing_links(path, prose):
    targets = [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", prose)]
    return [f"the link {target} leads nowhere" for target in targets
            if target and "://" not in target and not (path.parent / target).exists()]


def main():
    sources = (path for path in (ROOT / "src").rglob("*") if path.suffix in {".h", ".cpp", ".cu", ".cuh"})
    words = set(re.findall(r"\w+", "\n".join(path.read_text() for path in sources)))
    problems = []
    for path in documents():
        text = path.read_text()
        prose = "\n".join(line for _, line, code in blocks(text) if not code)
        found = missing_paths(prose) + missing_functions(prose, words) + missing_links(path, prose)
        if path != GENERATED:
            found += too_long(path, text)
        problems += [f"{path.relative_to(ROOT)}: {problem}" for problem in found]
    readme = (ROOT / "README.md").read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        if f"(docs/{page.name})" not in readme:
            problems.append(f"README.md: no link to docs/{page.name}")
    print("\n".join(problems) if problems else f"documents: {len(documents())}, all they name exists")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
