#!/usr/bin/env python3
"""Refuses two types of one name: linked into one program, they are one type to the linker, and it keeps either's functions.

Looks at classes, structs and enums at namespace scope in src/, bench/ and fuzz/; those of anonymous namespaces are a file's own.
Test programs are programs of their own: a type that a *_test.cpp defines for itself belongs into an anonymous namespace too.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRIP = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
OPENING = re.compile(r"(inline\s+)?namespace\s*([\w:]*)\s*$")
TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+class|\s+struct)?)\s+(?:alignas\([^)]*\)\s*)?(?:\[\[[^\]]*\]\]\s*)?"
                  r"(\w+(?:::\w+)*)\s*(?:final\s*)?(?::(?!:)[^;{}]*)?$")


def types_of(text):
    """Qualified names of the types that the text defines at namespace scope, with their lines."""
    def blank(match):
        return "\n" * match.group(0).count("\n") if "\n" in match.group(0) else " "
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*", "", STRIP.sub(blank, text), flags=re.MULTILINE)
    scopes, begin = [], 0  # a namespace's name, "" for an anonymous one, None for any other brace
    for position, character in enumerate(text):
        if character == ";" or character == "}":
            if character == "}" and scopes:
                scopes.pop()
            begin = position + 1
        elif character == "{":
            head = text[begin:position].strip()
            begin = position + 1
            namespace, kind = OPENING.search(head), TYPE.search(head)
            if namespace:
                scopes.append(namespace.group(2))
                continue
            if kind and None not in scopes and "" not in scopes:
                line = text.count("\n", 0, position) + 1
                yield "::".join([*scopes, kind.group(1)]), line
            scopes.append(None)


def main():
    places = collections.defaultdict(list)
    for folder in ("src", "bench", "fuzz"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                for name, line in types_of(path.read_text()):
                    places[name].append(f"{path.relative_to(ROOT)}:{line}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name} is defined {len(where)} times: {', '.join(where)}")
    if not twice:
        print(f"names: {len(places)} types, each defined once")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
