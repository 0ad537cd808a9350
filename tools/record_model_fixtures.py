#!/usr/bin/env python3
"""Records testdata/model: small random models of every architecture and what transformers computes
with them.

    .deps/reference/bin/python tools/record_model_fixtures.py

A fixture is a Hugging Face directory as save_pretrained writes it, plus `expected.safetensors` (the
model's results in fp32 with eager attention, each sequence by itself) and `config_v4.json` (the
same model in the format of transformers 4). `rope.json` holds rotary frequencies of real and
unusual settings. tools/check_model_fixtures.py recomputes everything in float64 numpy.

Olmo-3: its authors mean YaRN for the full-attention layers only. Some releases of transformers 5
apply it to the sliding-window layers too; 5.22.2 keeps one table per layer type and needs no patch.
`require_plain_sliding_rope` stops the recording under a release that is wrong.

The pad token is none in all of them: transformers drops the embedding's gradient at the pad id.
"""
import json
import pathlib
import shutil
import zlib

import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

TARGET = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "model"
VERSION = "5.22.2"
LENGTHS = [5, 1, 23, 17]

# Small bases and short original lengths, so that rotation and its scaling show within 23 positions.
PLAIN = {"rope_type": "default", "rope_theta": 100.0}
YARN = {"rope_type": "yarn", "rope_theta": 100.0, "factor": 4.0, "original_max_position_embeddings": 8}
COMMON = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=32, pad_token_id=None, bos_token_id=None, eos_token_id=3)

# name: (model_type, differences from COMMON, how it is saved)
FIXTURES = {
    "qwen3_gqa_tied": ("qwen3", dict(head_dim=8, tie_word_embeddings=True, rope_parameters=PLAIN), {}),
    "qwen3_mqa_sharded": ("qwen3", dict(head_dim=8, num_key_value_heads=1, vocab_size=40, rope_parameters=PLAIN),
                          dict(max_shard_size="8KB")),
    "qwen3_window": ("qwen3", dict(head_dim=8, num_hidden_layers=3, use_sliding_window=True, sliding_window=6,
                                   max_window_layers=1, rope_parameters=PLAIN), {}),
    "qwen3_moe": ("qwen3_moe", dict(head_dim=8, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=8,
                                    norm_topk_prob=True, rope_parameters=PLAIN), {}),
    # Layers 0 and 2 are dense by the step, 3 by the list; only layer 1 has experts.
    "qwen3_moe_mixed": ("qwen3_moe", dict(head_dim=8, num_hidden_layers=4, num_key_value_heads=1, num_experts=8,
                                          num_experts_per_tok=2, moe_intermediate_size=12, norm_topk_prob=False,
                                          decoder_sparse_step=2, mlp_only_layers=[3], tie_word_embeddings=True,
                                          rope_parameters=PLAIN), {}),
    # The betas put one frequency in the middle of the ramp; the attention factor is not the default
    # for 4.
    "olmo3_yarn": ("olmo3", dict(num_hidden_layers=5, num_attention_heads=2, num_key_value_heads=1, sliding_window=6,
                                 rms_norm_eps=1e-6, rope_parameters={
                                     "full_attention": dict(YARN, beta_fast=4.0, beta_slow=0.25, attention_factor=1.25),
                                     "sliding_attention": PLAIN}), {}),
    "olmo3_mha_bf16": ("olmo3", dict(hidden_size=24, num_hidden_layers=4, num_attention_heads=3, num_key_value_heads=3,
                                     sliding_window=4,
                                     rope_parameters={"full_attention": YARN, "sliding_attention": PLAIN}),
                       dict(dtype=torch.bfloat16)),
    # Of the four frequencies one is kept, one smoothed and two divided.
    "llama_gqa_llama3_fp16": ("llama", dict(head_dim=8, max_position_embeddings=128, rope_parameters={
        "rope_type": "llama3", "rope_theta": 100.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 32}), dict(dtype=torch.float16)),
    "llama_mha_tied": ("llama", dict(num_attention_heads=2, num_key_value_heads=2, tie_word_embeddings=True,
                                     rope_parameters=PLAIN), {}),
    "qwen2_tied": ("qwen2", dict(num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
                                 rope_parameters=PLAIN), {}),
    "qwen2_yarn": ("qwen2", dict(num_attention_heads=2, num_key_value_heads=2, vocab_size=96, rope_parameters=YARN), {}),
}


def random_model(seed, model_type, fields, dtype):
    config = AutoConfig.for_model(model_type, **json.loads(json.dumps({**COMMON, **fields})))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager", experts_implementation="eager")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, value in sorted(model.named_parameters()):
            noise = torch.randn(value.shape, generator=generator)
            if "norm" in key:
                value.copy_(1 + 0.2 * noise)
            else:
                wide = "embed" in key or "lm_head" in key or key.endswith("mlp.gate.weight")
                value.copy_((0.5 if wide else 0.35) * noise)
            value.copy_(value.to(dtype))
    return model.eval(), generator


def require_plain_sliding_rope(model):
    rope = model.model.rotary_emb
    theta = model.config.rope_parameters["sliding_attention"]["rope_theta"]
    size = getattr(model.config, "head_dim", model.config.hidden_size // model.config.num_attention_heads)
    plain = theta ** (-torch.arange(0, size, 2) / size)
    tables = getattr(rope, "sliding_attention_inv_freq", None), getattr(rope, "full_attention_inv_freq", None)
    if None in tables or not torch.allclose(tables[0], plain) or torch.allclose(tables[1], plain):
        raise SystemExit("this transformers does not keep YaRN to Olmo-3's full-attention layers")
    assert rope.sliding_attention_attention_scaling == 1.0


class NearTie(Exception):
    """The last chosen expert and the first one not chosen are so close that rounding could swap
    them."""


def refuse_near_ties(model):
    def check(module, inputs, outputs):
        top = outputs[0].softmax(-1).sort(descending=True).values
        if (top[:, module.top_k - 1] - top[:, module.top_k]).min() < 1e-3:
            raise NearTie

    for layer in model.model.layers:
        if hasattr(layer.mlp, "experts"):
            layer.mlp.gate.register_forward_hook(check)


def expected_of(model, generator):
    vocab = model.config.vocab_size
    ids = torch.randint(vocab, (sum(LENGTHS),), generator=generator)
    weights = torch.rand(len(ids), generator=generator) * 2 - 1
    offsets = torch.tensor([0, *LENGTHS]).cumsum(0)
    logits, logp, entropy, has_next = [], [], [], []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        rows = model(input_ids=ids[None, begin:end], use_cache=False).logits[0].float()
        log_probs = rows.log_softmax(-1)
        taken = log_probs[:-1].gather(1, ids[begin + 1:end, None])[:, 0]
        logits.append(rows)
        logp.append(torch.cat([taken, torch.zeros(1)]))
        entropy.append(-(log_probs.exp() * log_probs).sum(-1))
        has_next.append(torch.tensor([1.0] * (end - begin - 1) + [0.0]))
    logits, logp, entropy, has_next = (torch.cat(parts) for parts in (logits, logp, entropy, has_next))
    (has_next * (weights * logp + 0.1 * entropy)).sum().backward()
    return {"ids": ids, "sequence_offsets": offsets, "logits": logits.detach(), "logp": logp.detach(),
            "entropy": entropy.detach(), "loss_weights": weights, **gradients_of(model)}


def gradients_of(model):
    """By the names on disk, where every expert is separate. Copies: saving in half precision casts
    the model's own."""
    result = {}
    for key, value in model.named_parameters():
        assert value.grad is not None, key
        if ".experts." not in key:
            result[f"grad.{key}"] = value.grad.clone()
            continue
        prefix, kind = key.rsplit(".", 1)
        for expert, grad in enumerate(value.grad):
            parts = dict(zip(("gate_proj", "up_proj"), grad.chunk(2))) if kind == "gate_up_proj" else {kind: grad}
            for part, tensor in parts.items():
                result[f"grad.{prefix}.{expert}.{part}.weight"] = tensor.clone()
    return result


def model_and_expected(seed, model_type, fields, dtype):
    """With the first seed, from the given one on, that has no near ties."""
    while True:
        model, generator = random_model(seed, model_type, fields, dtype)
        if model_type == "olmo3":
            require_plain_sliding_rope(model)
        refuse_near_ties(model)
        try:
            return model, expected_of(model, generator)
        except NearTie:
            seed += 1


def v4_config(config):
    """The same model as transformers 4 (and the hub) describe it."""
    config = json.loads(json.dumps(config))
    rope = config.pop("rope_parameters")
    nested = "full_attention" in rope
    scaling = rope["full_attention"] if nested else rope
    config["rope_theta"] = scaling.pop("rope_theta")
    config["rope_scaling"] = None if scaling["rope_type"] == "default" else scaling
    config["torch_dtype"] = config.pop("dtype")
    config["transformers_version"] = "4.51.0"
    if config["model_type"] == "qwen2" and config["rope_scaling"]:
        config["rope_scaling"]["type"] = config["rope_scaling"].pop("rope_type")
    if config["model_type"] == "llama" and config["head_dim"] * config["num_attention_heads"] == config["hidden_size"]:
        config.pop("head_dim")
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    if config["model_type"] in ("qwen2", "qwen3"):
        config.pop("layer_types")
        config["sliding_window"] = config["sliding_window"] or 4  # unused without use_sliding_window
    return dict(sorted(config.items()))


def require_same_config(name, folder, old):
    """transformers reads config_v4.json as the same model, except for one bug."""
    new = AutoConfig.from_pretrained(folder).to_dict()
    old = AutoConfig.for_model(**json.loads(json.dumps(old))).to_dict()
    # It reads rope_theta for the full layers and takes 500000 for the sliding ones.
    if old["model_type"] == "olmo3":
        assert old["rope_parameters"]["sliding_attention"].pop("rope_theta") == 500000.0
        new["rope_parameters"]["sliding_attention"].pop("rope_theta")
    new["rope_parameters"].pop("type", None), old["rope_parameters"].pop("type", None)
    different = {key for key in new.keys() | old.keys() if new.get(key) != old.get(key)}
    assert different <= {"transformers_version", "dtype", "torch_dtype", "_name_or_path"}, (name, different)


def require_same_logits(folder, expected):
    """The files hold the model that was run."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                 experts_implementation="eager")
    begin, end = expected["sequence_offsets"][2:4].tolist()
    with torch.no_grad():
        assert torch.equal(model(expected["ids"][None, begin:end]).logits[0], expected["logits"][begin:end])


def record(name, model_type, fields, dtype=torch.float32, max_shard_size="1GB"):
    folder = TARGET / name
    shutil.rmtree(folder, ignore_errors=True)
    model, expected = model_and_expected(zlib.crc32(name.encode()), model_type, fields, dtype)
    model.to(dtype).save_pretrained(folder, max_shard_size=max_shard_size)
    (folder / "generation_config.json").unlink()
    save_file(expected, folder / "expected.safetensors")
    old = v4_config(json.loads((folder / "config.json").read_text()))
    (folder / "config_v4.json").write_text(json.dumps(old, indent=2) + "\n")
    require_same_config(name, folder, old)
    require_same_logits(folder, expected)

    on_disk = {}
    for path in folder.glob("model*.safetensors"):
        with safe_open(path, "pt") as file:
            on_disk.update({key: file.get_tensor(key).shape for key in file.keys()})
    recorded = {key.removeprefix("grad."): value.shape for key, value in expected.items() if key.startswith("grad.")}
    assert on_disk == recorded, on_disk.keys() ^ recorded.keys()
    assert all(value.dtype == torch.float32 for key, value in expected.items() if key.startswith("grad."))
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name:24} {size / 1024:6.1f} KB  entropy {expected['entropy'].mean():.2f} nats"
          f"  |logit| up to {expected['logits'].abs().max():.1f}"
          f"  |grad| up to {max(v.abs().max() for k, v in expected.items() if k.startswith('grad.')):.1f}")


def rope_cases():
    """(name, model_type, layer type or none, fields of config.json) for rope.json."""
    qwen = dict(hidden_size=1024, num_attention_heads=8, head_dim=128, max_position_embeddings=32768)
    small = dict(hidden_size=64, num_attention_heads=4, head_dim=16, max_position_embeddings=128)
    olmo = dict(hidden_size=4096, num_attention_heads=32, max_position_embeddings=65536, rope_theta=500000, rope_scaling={
        "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0, "factor": 8.0,
        "original_max_position_embeddings": 8192, "rope_type": "yarn"})
    yield "qwen3 plain", "qwen3", None, dict(qwen, rope_theta=1000000, rope_scaling=None)
    yield "qwen2.5 yarn", "qwen2", None, dict(qwen, rope_theta=1000000.0, rope_scaling={
        "type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})
    yield "llama 3.1", "llama", None, dict(qwen, rope_theta=500000.0, max_position_embeddings=131072, rope_scaling={
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192})
    yield "olmo3 full layers", "olmo3", "full_attention", olmo
    yield "olmo3 sliding layers", "olmo3", "sliding_attention", olmo
    yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 32}
    variants = {
        "defaults": {}, "no truncation": dict(truncate=False), "attention factor": dict(attention_factor=1.5),
        "both mscales": dict(mscale=0.7, mscale_all_dim=1.3), "one mscale": dict(mscale=0.7),
        "factor 1": dict(factor=1.0), "betas": dict(beta_fast=8.0, beta_slow=0.5),
        "range of no width": dict(original_max_position_embeddings=2),
        "high bound below zero": dict(original_max_position_embeddings=1),
        "high bound past the frequencies": dict(rope_theta=4.0, original_max_position_embeddings=100),
        "original length from the model": dict(original_max_position_embeddings=None),
    }
    for name, change in variants.items():
        rope = {key: value for key, value in {**yarn, **change}.items() if value is not None}
        yield f"yarn, {name}", "qwen3", None, dict(small, rope_parameters=rope)


def record_rope():
    rows = []
    for name, model_type, layer_type, fields in rope_cases():
        config = AutoConfig.for_model(model_type, **json.loads(json.dumps(fields)))
        rope = config.rope_parameters[layer_type] if layer_type else config.rope_parameters
        if rope["rope_type"] == "default":
            size = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
            table, scaling = 1.0 / rope["rope_theta"] ** (torch.arange(0, size, 2).float() / size), 1.0
        else:
            table, scaling = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, layer_type=layer_type)
        row = {"name": name, "config": {"model_type": model_type, **fields}, "layer_type": layer_type or "full_attention",
               "attention_scaling": scaling, "inv_freq": [float(f"{value:.9g}") for value in table.tolist()]}
        rows.append(json.dumps(row))
    (TARGET / "rope.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


def main():
    if transformers.__version__ != VERSION:
        raise SystemExit(f"recorded with transformers {VERSION}, this is {transformers.__version__}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, (model_type, fields, saving) in FIXTURES.items():
        record(name, model_type, fields, **saving)
    record_rope()
    total = sum(path.stat().st_size for path in TARGET.rglob("*") if path.is_file())
    print(f"{len(FIXTURES)} models, {total / 1024:.0f} KB")


if __name__ == "__main__":
    main()
