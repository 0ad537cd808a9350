#!/usr/bin/env python3
"""Recomputes testdata/model in float64 numpy, independently of transformers, and fails if they
differ.

    .deps/reference/bin/python tools/check_model_fixtures.py

Checked: logits, log-probabilities and entropies under config.json and config_v4.json, the gradients
along random directions by central differences, the rotary tables. Then each fixture is computed
with one deliberate mistake at a time (a window one key wider, YaRN on the sliding layers, ...): the
recorded logits must differ.
"""
import json
import math
import pathlib
import sys

import numpy as np

SOURCE = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "model"
DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64}


def load(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = raw[8 + size + begin:8 + size + end]
        if entry["dtype"] == "BF16":  # the upper half of an fp32
            values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data, DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def rope_of(config, layer_type):
    """The settings of one layer type, in either format of the file."""
    olmo = config["model_type"] == "olmo3"
    rope = dict(config.get("rope_scaling") or config.get("rope_parameters") or {})
    if layer_type in rope:
        rope = rope[layer_type]
    theta = rope.get("rope_theta", config.get("rope_theta", 500000.0 if olmo else 10000.0))
    kind = rope.get("rope_type", rope.get("type", "default"))
    return dict(rope, rope_theta=theta, rope_type="default" if olmo and layer_type == "sliding_attention" else kind)


def rotary(config, layer_type):
    """-> (frequencies [head_dim / 2], the factor of cos and sin)"""
    rope = rope_of(config, layer_type)
    dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    base, index = rope["rope_theta"], np.arange(dim // 2, dtype=np.float64)
    plain = base ** (-2 * index / dim)
    if rope["rope_type"] == "default":
        return plain, 1.0
    factor, length = rope["factor"], rope.get("original_max_position_embeddings", config["max_position_embeddings"])
    if rope["rope_type"] == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        smooth = np.clip((length * plain / (2 * math.pi) - low) / (high - low), 0, 1)
        return plain * ((1 - smooth) / factor + smooth), 1.0
    assert rope["rope_type"] == "yarn"

    def dim_of(rotations):
        return dim * math.log(length / (2 * math.pi * rotations)) / (2 * math.log(base))

    def scale(weight):
        return 1.0 if factor <= 1 else 0.1 * weight * math.log(factor) + 1.0

    low, high = dim_of(rope.get("beta_fast") or 32), dim_of(rope.get("beta_slow") or 1)
    if rope.get("truncate", True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    ramp = np.clip((index - low) / (high - low if high != low else 0.001), 0, 1)
    scaling = rope.get("attention_factor")
    if scaling is None:
        both = rope.get("mscale") and rope.get("mscale_all_dim")
        scaling = scale(rope["mscale"]) / scale(rope["mscale_all_dim"]) if both else scale(1)
    return plain * (1 - ramp + ramp / factor), scaling


def layer_types(config):
    count, kind = config["num_hidden_layers"], config["model_type"]
    if kind == "llama" or (kind != "olmo3" and not config.get("use_sliding_window")):
        return ["full_attention"] * count
    if kind == "qwen3_moe":
        return ["sliding_attention"] * count
    first = config.get("max_window_layers", 28)
    derived = [(i + 1) % 4 != 0 if kind == "olmo3" else i >= first for i in range(count)]
    return config.get("layer_types") or ["sliding_attention" if slides else "full_attention" for slides in derived]


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def softmax(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


class Model:
    """Forward pass of one sequence. `wrong` names one deliberate mistake."""

    def __init__(self, config, weights, wrong=None):
        self.config, self.weights, self.wrong = config, weights, wrong
        self.kind, self.eps = config["model_type"], config["rms_norm_eps"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.dim = config.get("head_dim") or config["hidden_size"] // self.heads
        self.types = layer_types(config)
        tables = {kind: rotary(config, kind) for kind in ("full_attention", "sliding_attention")}
        if wrong == "yarn on sliding layers":
            tables["sliding_attention"] = tables["full_attention"]
        if wrong == "plain rope":
            theta = rope_of(config, "full_attention")["rope_theta"]
            tables = dict.fromkeys(tables, rotary({**config, "rope_scaling": {"rope_theta": theta}}, "full_attention"))
        if wrong == "no attention scaling":
            tables = {kind: (table, 1.0) for kind, (table, _) in tables.items()}
        self.tables = tables

    def linear(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        return y + self.weights[name + ".bias"] if name + ".bias" in self.weights and self.wrong != "no bias" else y

    def norm(self, x, name):
        return rms_norm(x, self.weights[name + ".weight"], self.eps)

    def rotate(self, x, layer_type):  # x [tokens, heads, head_dim]
        table, scaling = self.tables[layer_type]
        angles = np.arange(len(x))[:, None, None] * table
        cos, sin, half = np.cos(angles) * scaling, np.sin(angles) * scaling, self.dim // 2
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, prefix, layer_type):
        q, k, v = (self.linear(x, f"{prefix}.{part}_proj") for part in "qkv")
        if self.kind == "olmo3":  # over all heads at once
            q, k = self.norm(q, f"{prefix}.q_norm"), self.norm(k, f"{prefix}.k_norm")
        q, k, v = (y.reshape(len(x), -1, self.dim) for y in (q, k, v))
        if self.kind.startswith("qwen3"):  # per head
            q, k = self.norm(q, f"{prefix}.q_norm"), self.norm(k, f"{prefix}.k_norm")
        q, k = self.rotate(q, layer_type), self.rotate(k, layer_type)
        group = self.heads // self.kv_heads
        k, v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
        if self.wrong == "kv heads interleaved":
            order = np.arange(self.heads) % self.kv_heads * group
            k, v = k[:, order], v[:, order]
        size = self.config["hidden_size"] // self.heads if self.wrong == "scale by hidden/heads" else self.dim
        scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(size)
        i, j = np.arange(len(x))[:, None], np.arange(len(x))[None]
        seen = j <= i
        if layer_type == "sliding_attention" and self.wrong != "no window":
            wider = {"window + 1": 1, "window - 1": -1}.get(self.wrong, 0)
            seen &= j > i - self.config["sliding_window"] - wider
        mixed = np.einsum("hij,jhd->ihd", softmax(np.where(seen, scores, -np.inf)), v)
        return self.linear(mixed.reshape(len(x), -1), f"{prefix}.o_proj")

    def mlp(self, x, prefix):
        gate = self.linear(x, f"{prefix}.gate_proj")
        return self.linear(gate / (1 + np.exp(-gate)) * self.linear(x, f"{prefix}.up_proj"), f"{prefix}.down_proj")

    def experts(self, x, prefix):
        chosen = softmax(self.linear(x, f"{prefix}.gate"))
        count = self.config["num_experts_per_tok"]
        order = np.argsort(-chosen, -1)[:, :count]
        gates = np.take_along_axis(chosen, order, -1)
        if self.config["norm_topk_prob"] != (self.wrong == "gates normalised the other way"):
            gates = gates / gates.sum(-1, keepdims=True)
        out = np.zeros_like(x)
        for token in range(len(x)):
            for expert, weight in zip(order[token], gates[token]):
                out[token] += weight * self.mlp(x[token], f"{prefix}.experts.{expert}")
        return out

    def feed_forward(self, x, layer):
        prefix, config = f"model.layers.{layer}.mlp", self.config
        sparse = self.kind == "qwen3_moe" and layer not in config["mlp_only_layers"] \
            and (layer + 1) % config["decoder_sparse_step"] == 0
        return self.experts(x, prefix) if sparse else self.mlp(x, prefix)

    def logits(self, ids):
        h = self.weights["model.embed_tokens.weight"][ids]
        for layer, layer_type in enumerate(self.types):
            at = f"model.layers.{layer}"
            if self.kind == "olmo3":
                h = h + self.norm(self.attention(h, f"{at}.self_attn", layer_type), f"{at}.post_attention_layernorm")
                h = h + self.norm(self.feed_forward(h, layer), f"{at}.post_feedforward_layernorm")
            else:
                h = h + self.attention(self.norm(h, f"{at}.input_layernorm"), f"{at}.self_attn", layer_type)
                h = h + self.feed_forward(self.norm(h, f"{at}.post_attention_layernorm"), layer)
        head = "model.embed_tokens.weight" if self.config["tie_word_embeddings"] else "lm_head.weight"
        return self.norm(h, "model.norm") @ self.weights[head].T


def evaluate(model, expected):
    """-> logits, logp, entropy over all sequences, and the loss"""
    logits, logp, entropy, loss = [], [], [], 0.0
    offsets = expected["sequence_offsets"]
    for begin, end in zip(offsets[:-1], offsets[1:]):
        ids, weights = expected["ids"][begin:end], expected["loss_weights"][begin:end].astype(np.float64)
        rows = model.logits(ids)
        log_probs = np.log(softmax(rows))
        taken = np.append(log_probs[np.arange(len(ids) - 1), ids[1:]], 0.0)
        spread = -(np.exp(log_probs) * log_probs).sum(-1)
        loss += (weights * taken + 0.1 * spread)[:-1].sum()
        logits.append(rows), logp.append(taken), entropy.append(spread)
    return np.concatenate(logits), np.concatenate(logp), np.concatenate(entropy), loss


def gradient_error(config, weights, expected):
    """Largest relative difference between recorded gradients and central differences, one direction
    per tensor."""
    random, worst, step = np.random.default_rng(1), 0.0, 1e-5
    for name, value in weights.items():
        grad = expected[f"grad.{name}"].astype(np.float64)
        direction = random.standard_normal(value.shape)
        above, below = (evaluate(Model(config, {**weights, name: value + move * direction}), expected)[3]
                        for move in (step, -step))
        found, recorded = (above - below) / (2 * step), (grad * direction).sum()
        worst = max(worst, abs(found - recorded) / max(np.linalg.norm(grad), 1e-2))
    return worst


def mistakes(config, weights):
    types, kind = set(layer_types(config)), config["model_type"]
    scaled = rope_of(config, "full_attention")["rope_type"]
    yield "plain rope", scaled != "default"
    yield "no attention scaling", scaled == "yarn"
    yield "yarn on sliding layers", kind == "olmo3"
    for name in ("no window", "window + 1", "window - 1"):
        yield name, "sliding_attention" in types
    yield "gates normalised the other way", kind == "qwen3_moe"
    yield "kv heads interleaved", 1 < config["num_key_value_heads"] < config["num_attention_heads"]
    width = config["hidden_size"] // config["num_attention_heads"]
    yield "scale by hidden/heads", config.get("head_dim", width) != width
    yield "no bias", any(name.endswith(".bias") for name in weights)


def check(folder):
    expected, weights = load(folder / "expected.safetensors"), {}
    for path in sorted(folder.glob("model*.safetensors")):
        weights.update({name: value.astype(np.float64) for name, value in load(path).items()})
    worst = [0.0, 0.0, 0.0]
    for name in ("config.json", "config_v4.json"):
        config = json.loads((folder / name).read_text())
        found = evaluate(Model(config, weights), expected)
        worst = [max(w, np.abs(f - expected[key]).max()) for w, f, key in zip(worst, found, ("logits", "logp", "entropy"))]
    slope = gradient_error(config, weights, expected)
    seen = {name: np.abs(evaluate(Model(config, weights, name), expected)[0] - expected["logits"]).max()
            for name, applies in mistakes(config, weights) if applies}
    good = max(worst) < 2e-5 and slope < 1e-4 and all(value > 0.02 for value in seen.values())
    print(f"{folder.name:24} logits {worst[0]:.1e} logp {worst[1]:.1e} entropy {worst[2]:.1e} gradients {slope:.1e}"
          f"  {'' if good else 'WRONG'}", *(f"\n    {name}: {value:.2f}" for name, value in seen.items()), sep="")
    return good


def check_rope():
    good = True
    for row in json.loads((SOURCE / "rope.json").read_text()):
        table, scaling = rotary(row["config"], row["layer_type"])
        error = np.abs(table / row["inv_freq"] - 1).max()
        if error > 2e-6 or abs(scaling - row["attention_scaling"]) > 1e-12:
            good = False
            print(f"rope.json, {row['name']}: frequencies off by {error:.1e}, scaling {scaling}, {row['attention_scaling']}")
    return good


def main():
    results = [check(path.parent) for path in sorted(SOURCE.glob("*/expected.safetensors"))]
    good = check_rope() and results and all(results)
    print("all agree" if good else "WRONG")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
