#!/usr/bin/env python3
"""Turns the legacy file of stories260K, a trained Llama of 260,032 parameters, into a Hugging Face
directory.

    .deps/reference/bin/python tools/convert_stories260k.py ../shared/data/weights/stories260K OUTPUT [--check]

The legacy model rotates neighbouring values (0, 1), (2, 3), ... of a head by one angle; Hugging
Face rotates value i and value i + head_dim / 2. The rows of the query and key projections are
reordered so that both give the same scores.

OUTPUT/greedy.json holds the beginning-of-text token and its greedy continuation of 200 ids,
computed here in NumPy from the legacy weights in the original interleaved form, and whether their
text is the one that the model's author published. --check also runs transformers on the directory.
"""
import argparse
import hashlib
import json
import pathlib
import struct

import numpy as np

STEPS = 200
# The hash of the text that llama2.c's own test expects of this file at temperature 0 and 200 steps.
PUBLISHED_SHA256 = "beeb5cb46785efee81a8545300b31e396b595e5ce6f3b77db201545501981d14"
BOS = 1


def read_legacy(path):
    """Header of seven int32, then float32 tensors, those of all layers of one kind together."""
    data = path.read_bytes()
    names = ["dim", "hidden", "layers", "heads", "kv_heads", "vocabulary", "positions"]
    shape = dict(zip(names, struct.unpack("<7i", data[:28])))
    assert shape["vocabulary"] > 0, "a negative size would mean a head of its own; this file has none"
    shape["head_dim"] = shape["dim"] // shape["heads"]
    dim, hidden, layers = shape["dim"], shape["hidden"], shape["layers"]
    kv = shape["kv_heads"] * shape["head_dim"]
    values = np.frombuffer(data, dtype="<f4", offset=28)
    layout = [
        ("embedding", (shape["vocabulary"], dim)),
        ("attention_norm", (layers, dim)),
        ("q", (layers, dim, dim)),
        ("k", (layers, kv, dim)),
        ("v", (layers, kv, dim)),
        ("o", (layers, dim, dim)),
        ("mlp_norm", (layers, dim)),
        ("gate", (layers, hidden, dim)),
        ("down", (layers, dim, hidden)),
        ("up", (layers, hidden, dim)),
        ("final_norm", (dim,)),
    ]
    weights, at = {}, 0
    for name, sizes in layout:
        count = int(np.prod(sizes))
        weights[name] = values[at : at + count].reshape(sizes)
        at += count
    tables = shape["positions"] * shape["head_dim"]  # unused cosines and sines
    assert at + tables == len(values), "the file's length does not fit its header"
    return shape, weights


def read_tokenizer(path, count):
    """Longest piece as int32, then for each id: float32 score, int32 length, bytes."""
    data, at, pieces = path.read_bytes(), 4, []
    for _ in range(count):
        score, length = struct.unpack_from("<fi", data, at)
        at += 8
        pieces.append((data[at : at + length], score))
        at += length
    assert at == len(data)
    return pieces


def greedy_interleaved(shape, weights, steps):
    """The legacy maths in float64, one token at a time with a cache."""
    w = {name: value.astype(np.float64) for name, value in weights.items()}
    heads, kv_heads, size = shape["heads"], shape["kv_heads"], shape["head_dim"]
    frequency = 10000.0 ** (-np.arange(0, size, 2) / size)

    def norm(x, weight):
        return x / np.sqrt(np.mean(x * x) + 1e-5) * weight

    def turn(x, position):  # [heads, head_dim], pairs of neighbours
        c, s = np.cos(position * frequency), np.sin(position * frequency)
        out = np.empty_like(x)
        out[:, 0::2] = x[:, 0::2] * c - x[:, 1::2] * s
        out[:, 1::2] = x[:, 0::2] * s + x[:, 1::2] * c
        return out

    keys = [[] for _ in range(shape["layers"])]
    values = [[] for _ in range(shape["layers"])]
    ids = [BOS]
    margins = []
    while len(ids) <= steps:  # steps after the first token
        position = len(ids) - 1
        x = w["embedding"][ids[-1]]
        for layer in range(shape["layers"]):
            a = norm(x, w["attention_norm"][layer])
            q = turn((w["q"][layer] @ a).reshape(heads, size), position)
            keys[layer].append(turn((w["k"][layer] @ a).reshape(kv_heads, size), position))
            values[layer].append((w["v"][layer] @ a).reshape(kv_heads, size))
            k, v = np.stack(keys[layer]), np.stack(values[layer])  # [tokens, kv_heads, head_dim]
            mixed = []
            for head in range(heads):
                group = head // (heads // kv_heads)
                scores = k[:, group] @ q[head] / np.sqrt(size)
                p = np.exp(scores - scores.max())
                mixed.append(p @ v[:, group] / p.sum())
            x = x + w["o"][layer] @ np.concatenate(mixed)
            m = norm(x, w["mlp_norm"][layer])
            gate = w["gate"][layer] @ m
            x = x + w["down"][layer] @ (gate / (1 + np.exp(-gate)) * (w["up"][layer] @ m))
        logits = w["embedding"] @ norm(x, w["final_norm"])
        best = np.sort(logits)[-2:]
        margins.append(best[1] - best[0])
        ids.append(int(np.argmax(logits)))
    return ids, min(margins)


def text_of(pieces, ids):
    out = b""
    for previous, token in zip(ids, ids[1:]):
        piece = pieces[token][0]
        if piece.startswith(b"<0x") and len(piece) == 6:
            piece = bytes([int(piece[3:5], 16)])
        elif previous == BOS and piece.startswith(b" "):
            piece = piece[1:]
        out += piece
    return out


def half_rotation_rows(matrix, heads, size):
    """Rows of each head from (0, 1, 2, 3, ...) to (0, 2, ..., 1, 3, ...)."""
    order = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)])
    return matrix.reshape(heads, size, -1)[:, order].reshape(matrix.shape)


def hugging_face_tensors(shape, weights):
    tensors = {"model.embed_tokens.weight": weights["embedding"], "model.norm.weight": weights["final_norm"]}
    for i in range(shape["layers"]):
        layer = f"model.layers.{i}."
        tensors[layer + "input_layernorm.weight"] = weights["attention_norm"][i]
        tensors[layer + "post_attention_layernorm.weight"] = weights["mlp_norm"][i]
        q = half_rotation_rows(weights["q"][i], shape["heads"], shape["head_dim"])
        k = half_rotation_rows(weights["k"][i], shape["kv_heads"], shape["head_dim"])
        for name, value in [("q", q), ("k", k), ("v", weights["v"][i]), ("o", weights["o"][i])]:
            tensors[f"{layer}self_attn.{name}_proj.weight"] = value
        for name in ["gate", "up", "down"]:
            tensors[f"{layer}mlp.{name}_proj.weight"] = weights[name][i]
    return tensors


def write_safetensors(path, tensors):
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            file.write(np.ascontiguousarray(value, dtype="<f4").tobytes())


def write_tokenizer(directory, pieces):
    """SentencePiece's BPE as Hugging Face writes it: a piece is made by joining any two pieces that
    spell it, higher scores first; unknown characters become byte pieces."""
    names = ["<unk>", "<s>", "</s>"]
    names += [piece.decode().replace(" ", "\u2581") for piece, _ in pieces[3:]]
    vocabulary = {name: i for i, name in enumerate(names)}
    assert len(vocabulary) == len(names)
    merges = []
    for i in range(259, len(names)):
        name = names[i]
        for cut in range(1, len(name)):
            left, right = name[:cut], name[cut:]
            if min(vocabulary.get(left, 0), vocabulary.get(right, 0)) >= 259:
                merges.append((-pieces[i][1], vocabulary[left], vocabulary[right], [left, right]))
    merges.sort(key=lambda merge: merge[:3])
    special = [
        {"id": i, "content": names[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
        for i in range(3)
    ]
    begin = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    sequence = [{"Sequence": {"id": "A", "type_id": 0}}]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": special,
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Prepend", "prepend": "\u2581"},
                {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [begin] + sequence,
            "pair": [begin] + sequence + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [BOS], "tokens": ["<s>"]}},
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": True,
            "byte_fallback": True,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [merge[3] for merge in merges],
        },
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer, ensure_ascii=False))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings))


def write_config(directory, shape):
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape["vocabulary"],
        "hidden_size": shape["dim"],
        "intermediate_size": shape["hidden"],
        "num_hidden_layers": shape["layers"],
        "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv_heads"],
        "max_position_embeddings": shape["positions"],
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "dtype": "float32",
    }
    (directory / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def check_with_transformers(directory, ids, text):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
    with torch.no_grad():
        likeliest = model(torch.tensor([ids[:-1]])).logits[0].argmax(-1).tolist()
    assert likeliest == ids[1:], "transformers continues otherwise"
    tokenizer = AutoTokenizer.from_pretrained(directory)
    assert tokenizer.decode(ids, skip_special_tokens=True) == text, "the tokenizer decodes otherwise"
    encoded = tokenizer.encode(text)
    # The text is cut at 200 tokens, so its last word may be tokenized differently.
    assert encoded[:-3] == ids[: len(encoded) - 3], "the tokenizer encodes otherwise"
    print(f"transformers: {len(likeliest)} of {len(likeliest)} tokens equal")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="run transformers on the result")
    options = parser.parse_args()
    shape, weights = read_legacy(options.source / "stories260K.bin")
    pieces = read_tokenizer(options.source / "tok512.bin", shape["vocabulary"])
    options.output.mkdir(parents=True, exist_ok=True)
    write_safetensors(options.output / "model.safetensors", hugging_face_tensors(shape, weights))
    write_config(options.output, shape)
    write_tokenizer(options.output, pieces)
    ids, margin = greedy_interleaved(shape, weights, STEPS)
    text = text_of(pieces, ids)
    published = hashlib.sha256(text).hexdigest() == PUBLISHED_SHA256
    result = {"ids": ids, "text": text.decode(), "is_published_text": published}
    (options.output / "greedy.json").write_text(json.dumps(result))
    print(f"{len(ids)} ids, the narrowest choice by {margin:.4f}; the published text: {published}")
    if options.check:
        check_with_transformers(options.output, ids, text.decode())


if __name__ == "__main__":
    main()
