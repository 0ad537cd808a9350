#!/usr/bin/env python3
"""Runs the commands of the pages that a newcomer reads, as the pages have them.

    check_pages.py build/antisd [docs/first-run.md ...]

Each page gets a scratch folder of its own with models/ and recipes/ of the repository in it, and
`antisd` on the PATH. Blocks marked ```sh run in order; one that fails, or whose output differs
from the ```text block that follows it, fails the test. A comment right above a block says more:

    <!-- file: reward.py -->       the block is written to this file, and not run
    <!-- fails: 2 -->              the commands end with this exit status
    <!-- exact -->                 numbers in the output have to be these
    <!-- not run: the reason -->   the block is only checked: commands, flags and keys exist

Blocks marked ```toml are read as configurations.

Output is compared by lines, without regard to the width of spaces. A line `...` stands for any
lines, `...` in a line for any text, and a number for any number unless the block is exact.
"""
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = ["README.md"] + [f"docs/{name}.md" for name in (
    "index", "first-run", "gpu", "data", "hub", "rewards", "serve", "methods", "memory", "cluster",
    "reliability")]
SECONDS = 180  # of a block, on a busy machine

FENCE = re.compile(r"^( *)```(\w*)\s*$")
COMMENT = re.compile(r"^\s*<!-- *(file|fails|exact|not run)(?:: *(.*?))? *-->\s*$")
NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?")


class Block:
    def __init__(self, line, language, text, marks):
        self.line, self.language, self.text, self.marks = line, language, text, marks
        self.expected = None  # the text of a ```text block


def blocks_of(text):
    """The fenced blocks of a page; a ```text block belongs to the ```sh block before it."""
    found, marks, lines, fence = [], {}, [], None
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence, lines = (number, mark), []
        elif fence is not None and mark and not mark.group(2):
            first, opening = fence
            indent = len(opening.group(1))
            block = Block(first, opening.group(2), "\n".join(l[indent:] for l in lines), marks)
            before = found[-1] if found else None
            if block.language == "text" and before is not None and before.language == "sh":
                before.expected = block.text
            else:
                found.append(block)
            fence, marks = None, {}
        elif fence is not None:
            lines.append(line)
        elif COMMENT.match(line):
            name, value = COMMENT.match(line).groups()
            marks[name] = value or ""
        elif line.strip():
            marks = {}
            found.append(Block(number, "", "", {}))  # prose: a later ```text block is no output
    return [block for block in found if block.language or block.text]


def pattern_of(expected, exact):
    def line_pattern(line):
        parts = []
        for piece in re.split(r"(\.\.\.)", " ".join(line.split())):
            if piece == "...":
                parts.append(".*")
            elif exact:
                parts.append(re.escape(piece))
            else:
                at = 0
                for number in NUMBER.finditer(piece):
                    parts.append(re.escape(piece[at:number.start()]) + NUMBER.pattern)
                    at = number.end()
                parts.append(re.escape(piece[at:]))
        return "".join(parts)

    lines = [r"(?:.*\n)*?" if line.strip() == "..." else line_pattern(line) + r"\n"
             for line in expected.strip("\n").splitlines()]
    return re.compile("".join(lines))


def commands_of(text):
    """Single commands with their words, comments removed and continued lines joined."""
    commands = []
    for line in text.replace("\\\n", " ").splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            continue
        begin = 0
        for end in range(len(words) + 1):
            if end == len(words) or words[end] in {"|", "&&", ";", "||"}:
                commands.append(words[begin:end])
                begin = end + 1
    return [command for command in commands if command]


class Checker:
    """Whether the commands of a block that is not run are there."""

    def __init__(self, program):
        self.program, self.helps = program, {}

    def help_of(self, command):
        if command not in self.helps:
            done = subprocess.run([self.program, *command, "--help"], capture_output=True, text=True)
            self.helps[command] = done.stdout if done.returncode == 0 else None
        return self.helps[command]

    def problems(self, block):
        for words in commands_of(block.text):
            names = [pathlib.Path(word).name for word in words]
            if names[0] == "make":
                targets = [word for word in words[1:] if "=" not in word]
                makefile = (ROOT / "Makefile").read_text()
                yield from (f"the Makefile has no target {target}" for target in targets
                            if not re.search(rf"^{target}:", makefile, re.M))
            if "antisd" in names:
                yield from self.command_problems(words[names.index("antisd") + 1:])

    def settings_problems(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([self.program, "config", file.name], cwd=ROOT,
                                  capture_output=True, text=True)
        return [done.stderr.strip()] if done.returncode != 0 else []

    def command_problems(self, words):
        if not words:
            return
        command = (words[0],)
        if words[0] in {"data", "grade"} and len(words) > 1:
            command = (words[0], words[1])
        text = self.help_of(command)
        if text is None:
            yield f"there is no command `antisd {' '.join(command)}`"
            return
        for word in words[len(command):]:
            if word.startswith("--") and not re.search(rf"{re.escape(word.split('=')[0])}\b", text):
                yield f"`antisd {command[0]}` has no {word}"
        keys = [word.split(",")[0] if command[0] == "sweep" else word for word in words
                if re.match(r"[a-z_]+\.[\w.]+=", word)]
        files = [word for word in words if word.endswith(".toml") and (ROOT / word).exists()]
        if keys or files:
            done = subprocess.run([self.program, "config", *files[:1], *keys], cwd=ROOT,
                                  capture_output=True, text=True)
            if done.returncode != 0:
                yield done.stderr.strip()


def run_block(block, folder, environment):
    """What is wrong, or nothing."""
    try:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block.text], cwd=folder,
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"it did not end within {SECONDS} s"
    wanted = int(block.marks.get("fails", 0))
    if done.returncode != wanted:
        return f"exit status {done.returncode} instead of {wanted}; it printed:\n{done.stdout}"
    if block.expected is None:
        return None
    printed = "".join(" ".join(line.split()) + "\n" for line in done.stdout.splitlines())
    if pattern_of(block.expected, "exact" in block.marks).fullmatch(printed):
        return None
    return f"the page shows\n{block.expected}\nand it printed\n{done.stdout}"


def check_page(name, program):
    problems, counts = [], {"run": 0, "checked": 0, "left out": 0}
    checker = Checker(program)
    with tempfile.TemporaryDirectory(prefix="antisd-page-") as scratch:
        folder = pathlib.Path(scratch)
        for place in ("models", "recipes"):
            (folder / place).symlink_to(ROOT / place)
        environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}",
                           HF_HUB_OFFLINE="1", HF_HOME=str(folder / ".hf"))
        for block in blocks_of((ROOT / name).read_text()):
            where = f"{name}:{block.line}"
            if block.language == "toml":
                problems += [f"{where}: {problem}" for problem in checker.settings_problems(block.text)]
            if "file" in block.marks:
                target = folder / block.marks["file"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text + "\n")
            elif block.language != "sh":
                if re.search(r"^(\$ |antisd |build/\S*antisd |make )", block.text, re.M):
                    problems.append(f"{where}: commands in a block that is not marked ```sh")
            elif "not run" in block.marks:
                counts["checked"] += 1
                if not block.marks["not run"]:
                    problems.append(f"{where}: not run, without a reason")
                problems += [f"{where}: {problem}" for problem in checker.problems(block)]
            else:
                counts["run"] += 1
                problem = run_block(block, folder, environment)
                if problem:
                    problems.append(f"{where}: {problem}")
                    break  # later blocks need what this one makes
    print(f"{name}: " + ", ".join(f"{count} blocks {what}" for what, count in counts.items() if count))
    return problems


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    if not program.exists() or shutil.which("bash") is None:
        print(f"{program} or bash is not here")
        return 1
    pages = sys.argv[2:] or PAGES
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = sum(pool.map(lambda page: check_page(page, program), pages), [])
    print("\n".join(problems) if problems else "every command of the pages does what they say")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
