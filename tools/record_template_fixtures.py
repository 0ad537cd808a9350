#!/usr/bin/env python3
"""Records what transformers' chat templates render, for src/text/chat_template_test.cpp.

    .deps/reference/bin/python tools/record_template_fixtures.py [--shared ../shared] [--text DIR]

testdata/text/template_snippets.json   own snippets (tools/template_snippets.py) with the text each
                                       renders, or null if rendering or parsing must fail
testdata/text/template_chats.json      own conversations (tools/template_conversations.py), and for
                                       each real template of shared/data/models the length and SHA-256
                                       of every render, or null if it fails. The texts themselves
                                       hold prose of the templates and are not kept; --text writes
                                       them to a folder to look at differences.
"""

import argparse
import copy
import hashlib
import json
import pathlib

from template_conversations import CONVERSATIONS, SPECIAL_TOKENS
from template_snippets import SNIPPETS, VARIABLES
from transformers.utils.chat_template_utils import _compile_jinja_template

ROOT = pathlib.Path(__file__).resolve().parent.parent


def render(template, variables):
    try:
        return _compile_jinja_template(template).render(**copy.deepcopy(variables))
    except Exception:  # any Python exception is an error
        return None


def real_templates(models):
    found = {}
    for path in sorted(models.glob("*/*.jinja")):
        found[str(path.relative_to(models))] = path.read_text()
    for path in sorted(models.glob("*/*tokenizer_config.json")):
        template = json.loads(path.read_text()).get("chat_template")
        if template:
            found[str(path.relative_to(models))] = template
    return found


def digest(text):
    if text is None:
        return None
    data = text.encode()
    return [len(data), hashlib.sha256(data).hexdigest()[:32]]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=pathlib.Path, default=ROOT / ".." / "shared")
    parser.add_argument("--text", type=pathlib.Path)
    arguments = parser.parse_args()
    folder = ROOT / "testdata" / "text"
    folder.mkdir(parents=True, exist_ok=True)

    snippets = []
    for name, template in SNIPPETS:
        snippets.append({"name": name, "template": template, "text": render(template, VARIABLES)})
    write_lines(folder / "template_snippets.json", {"variables": VARIABLES}, "snippets", snippets)

    renders = []
    for name, template in real_templates(arguments.shared / "data" / "models").items():
        for conversation in CONVERSATIONS:
            for prompt in (False, True):
                variables = {**SPECIAL_TOKENS, "tools": None, "documents": None,
                             "add_generation_prompt": prompt, **conversation["variables"]}
                text = render(template, variables)
                label = f"{name} {conversation['name']} {prompt}"
                if arguments.text:
                    arguments.text.mkdir(parents=True, exist_ok=True)
                    (arguments.text / label.replace("/", "_")).write_text(str(text))
                renders.append([name, conversation["name"], prompt, digest(text)])
    head = {"special_tokens": SPECIAL_TOKENS, "conversations": CONVERSATIONS}
    write_lines(folder / "template_chats.json", head, "renders", renders)


def write_lines(path, head, key, rows):
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    start = json.dumps(head, ensure_ascii=False)[:-1]
    path.write_text(f"{start}, \"{key}\": [\n{lines}\n]}}\n")


if __name__ == "__main__":
    main()
