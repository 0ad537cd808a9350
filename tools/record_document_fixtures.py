#!/usr/bin/env python3
"""Records transformers' results for the countdown tokenizer and for chats, for src/data/*_test.cpp.

    .deps/reference/bin/python tools/record_document_fixtures.py MODEL

MODEL is a directory with the task's tokenizer files as `antisd pretrain` writes them
(run/new_model, or a checkpoint's model/). testdata/data/countdown_ids.json   texts, their ids, and
what the ids decode to, under AutoTokenizer testdata/data/chat_masks.json      conversations under a
template with generation blocks and the tokenizer testdata/text/qwen: ids,
                                   and which of them transformers' return_assistant_tokens_mask marks
"""

import json
import pathlib
import sys

from transformers import AutoTokenizer

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "testdata" / "data"
TEXTS = [
    "Numbers 4 11 3 6 target 29 |",
    "Let 4 + 11 = 15 ; 15 * 3 = 45 ; 45 - 6 = 39 no Wait Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29 [EOS]",
    "Numbers 4 11 3 6 target 29 Previous attempt Let 6 - 3 = 3 ; 3 * 11 = 33 ; 33 - 4 = 29 holds So boxed 29 Assessment incorrect Solve |",
    "Assessment correct 0 400 401 007 Wait[EOS]Wait  boxed\n29 x",
    "",
]
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' }}{% if m['role'] == 'assistant' %}"
    "{% generation %}{{ m['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}"
    "{% else %}{{ m['content'] + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
CHATS = [
    [("user", "How many ways are there?"), ("assistant", "There are 220 ways.")],
    [("system", "You are right."), ("user", "The sum of two even numbers?"), ("assistant", "It is even."), ("user", "Why?"),
     ("assistant", "Let a = 2m and b = 2n.\nThen a + b = 2(m + n).")],
    [("assistant", "The answer is 42."), ("user", "Fine.")],
    [("user", ""), ("assistant", "")],
]


def main():
    OUT.mkdir(exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    rows = [{"text": text, "ids": tokenizer(text)["input_ids"]} for text in TEXTS]
    for row in rows:
        row["decoded"] = tokenizer.decode(row["ids"])
        row["plain"] = tokenizer.decode(row["ids"], skip_special_tokens=True)
    chat = [{"role": "user", "content": "Solve |"}, {"role": "assistant", "content": "So boxed 29"}]
    rendered = {"messages": chat, "text": tokenizer.apply_chat_template(chat, tokenize=False)}
    recorded = {"size": len(tokenizer), "eos": tokenizer.eos_token_id, "rows": rows, "chat": rendered}
    (OUT / "countdown_ids.json").write_text(json.dumps(recorded, indent=1) + "\n")

    tokenizer = AutoTokenizer.from_pretrained(ROOT / "testdata" / "text" / "qwen")
    chats = []
    for turns in CHATS:
        messages = [{"role": role, "content": content} for role, content in turns]
        encoded = tokenizer.apply_chat_template(
            messages, chat_template=TEMPLATE, tokenize=True, return_dict=True, return_assistant_tokens_mask=True
        )
        chats.append({"messages": messages, "ids": encoded["input_ids"], "mask": encoded["assistant_masks"]})
    (OUT / "chat_masks.json").write_text(json.dumps({"template": TEMPLATE, "chats": chats}) + "\n")


if __name__ == "__main__":
    main()
