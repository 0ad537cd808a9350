#!/usr/bin/env python3
"""Checks namespaces and the names of types.

A file of src/X is in `namespace antisd::inline X`, or in a namespace inside it, so that the linker
distinguishes the directories' names. Helpers of tests are in antisd::testing.

No two types of src/, bench/ and fuzz/ have the same name as code writes it: without the inline
namespaces, but with others (jinja::Parser and math::Parser differ). In one directory they would be
one type to the linker, which keeps either's functions; in two, code that sees both would be
ambiguous. Types in anonymous namespaces are local to a file; a type of a *_test.cpp belongs in one.
"""
import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
STRIP = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
OPENING = re.compile(r"(inline\s+)?namespace\s*((?:\w+|::|inline\s+)*)\s*$")
INLINE = re.compile(r"inline\s+\w+(?:::)?")
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
                scopes.append(INLINE.sub("", namespace.group(2)).strip(":"))
                continue
            if kind and None not in scopes and "" not in scopes:
                line = text.count("\n", 0, position) + 1
                yield "::".join([*scopes, kind.group(1)]), line
            scopes.append(None)


def misplaced(path, text):
    """Lines that open another namespace than the directory's."""
    parts = path.relative_to(ROOT).parts
    if len(parts) < 3 or parts[0] != "src":
        return
    allowed = re.compile(rf"namespace antisd::(testing|inline {parts[1]}(::\w+)?) {{$")
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("namespace antisd") and not allowed.match(line):
            yield f"{path.relative_to(ROOT)}:{number}: {line} here it is namespace antisd::inline {parts[1]}"


def main():
    strangers = []
    places = collections.defaultdict(list)
    for folder in ("src", "bench", "fuzz"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".cu", ".cuh"}:
                text = path.read_text()
                strangers += misplaced(path, text)
                for name, line in types_of(text):
                    places[name].append(f"{path.relative_to(ROOT)}:{line}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name} is defined {len(where)} times: {', '.join(where)}")
    for place in strangers:
        print(place)
    if not twice and not strangers:
        print(f"names: {len(places)} types, each defined once; namespaces follow directories")
    return 1 if twice or strangers else 0


if __name__ == "__main__":
    sys.exit(main())
