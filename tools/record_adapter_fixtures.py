#!/usr/bin/env python3
"""Records testdata/adapter: adapters of the models of testdata/model as peft writes them, and what
peft computes with them.

    .deps/reference/bin/python tools/record_adapter_fixtures.py   # in the root of the project

`expected.safetensors` has the logits of the model's sequences and the gradients of every adapter
tensor, of the sum that record_model_fixtures.py takes, by the names in adapter_model.safetensors.
"""
import json
import pathlib
import shutil
import zlib

import peft
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = pathlib.Path("testdata/model")
TARGET = ROOT / "testdata" / "adapter"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
ALL = ATTENTION + ["gate_proj", "up_proj", "down_proj"]

# name of the model: settings of the adapter
FIXTURES = {
    "qwen3_gqa_tied": dict(r=4, lora_alpha=8, target_modules=ALL),
    "qwen2_yarn": dict(r=3, lora_alpha=5, target_modules=["q_proj", "v_proj", "down_proj"]),  # parts of fused weights
    "olmo3_yarn": dict(r=4, lora_alpha=2, target_modules=ALL, use_rslora=True),
    "qwen3_moe": dict(r=2, lora_alpha=4, target_modules=ATTENTION),
    "llama_mha_tied": dict(r=4, lora_alpha=8, target_modules=ALL, layers_to_transform=[1],
                           rank_pattern={"q_proj": 2, "layers.1.mlp.down_proj": 6}, alpha_pattern={"k_proj": 16}),
}


def open_base(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                                experts_implementation="eager").eval()


def rows_of(model, given):
    """Logits of the fixture's sequences, each run alone."""
    offsets = given["sequence_offsets"].tolist()
    return [model(input_ids=given["ids"][None, begin:end], use_cache=False).logits[0].float()
            for begin, end in zip(offsets[:-1], offsets[1:])]


def loss_of(rows, given):
    total, offsets = 0, given["sequence_offsets"].tolist()
    for logits, begin, end in zip(rows, offsets[:-1], offsets[1:]):
        log_probs = logits.log_softmax(-1)[:-1]
        logp = log_probs.gather(1, given["ids"][begin + 1:end, None])[:, 0]
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        total = total + (given["loss_weights"][begin:end - 1] * logp + 0.1 * entropy).sum()
    return total


def record(name, settings):
    folder = TARGET / name
    shutil.rmtree(folder, ignore_errors=True)
    given = load_file(MODELS / name / "expected.safetensors")
    model = peft.get_peft_model(open_base(MODELS / name), peft.LoraConfig(task_type="CAUSAL_LM", **settings))
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    trained = {key.replace(".default", ""): value for key, value in model.named_parameters() if value.requires_grad}
    with torch.no_grad():
        for _, value in sorted(trained.items()):
            value.copy_(0.3 * torch.randn(value.shape, generator=generator))
    rows = rows_of(model, given)
    loss_of(rows, given).backward()
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["target_modules"].sort()  # a set, in any order
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    assert load_file(folder / "adapter_model.safetensors").keys() == trained.keys()
    save_file({"logits": torch.cat(rows).detach(), **{f"grad.{key}": value.grad for key, value in trained.items()}},
              folder / "expected.safetensors")


if __name__ == "__main__":
    for name, settings in FIXTURES.items():
        record(name, settings)
