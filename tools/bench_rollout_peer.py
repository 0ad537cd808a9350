#!/usr/bin/env python3
"""The work of `antisd-bench rollout` done by transformers' generate and by a bare PyTorch loop with
a cache of keys and values: random weights of the same shape, no end-of-sequence token, sampling at
temperature 1.

    .deps/reference/bin/python tools/bench_rollout_peer.py --sequences 256 --prompt 64 --new 128
    build/antisd-bench rollout --shape tiny --sequences 256 --prompt 64 --new 128
"""
import argparse
import time

import torch
import torch.nn.functional as F

from qwen3_shapes import SHAPES, qwen3_config


def rms_norm(x, weight):
    return F.rms_norm(x, (x.shape[-1],), weight, 1e-6)


class BareModel:
    """Qwen3's layers on plain tensors; the cache is allocated at full length."""

    def __init__(self, shape, device, dtype):
        self.hidden, self.layers, self.heads, self.kv_heads, self.dim, inner, vocabulary, _ = SHAPES[shape]
        new = lambda *sizes: torch.randn(*sizes, device=device, dtype=dtype) * 0.02
        width = (self.heads + 2 * self.kv_heads) * self.dim
        self.embedding = new(vocabulary, self.hidden)
        self.one = torch.ones(self.hidden, device=device, dtype=dtype)
        self.head_one = torch.ones(self.dim, device=device, dtype=dtype)
        self.weights = [(new(width, self.hidden), new(self.hidden, self.heads * self.dim), new(2 * inner, self.hidden),
                         new(self.hidden, inner)) for _ in range(self.layers)]
        self.device, self.dtype = device, dtype

    def prepare(self, rows, length):
        sizes = (self.layers, rows, self.kv_heads, length, self.dim)
        self.keys = torch.empty(sizes, device=self.device, dtype=self.dtype)
        self.values = torch.empty(sizes, device=self.device, dtype=self.dtype)
        frequency = 1e6 ** (-torch.arange(0, self.dim, 2, device=self.device) / self.dim)
        angles = torch.arange(length, device=self.device)[:, None] * frequency
        self.cosine, self.sine = angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    def rotate(self, x, start):
        count = x.shape[2]
        cosine, sine = self.cosine[start:start + count], self.sine[start:start + count]
        a, b = x.chunk(2, -1)
        return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)

    def forward(self, ids, start):
        """ids [rows, count] at positions from `start`; returns the logits of the last."""
        rows, count = ids.shape
        end = start + count
        x = F.embedding(ids, self.embedding)
        for layer, (qkv_weight, out_weight, gate_up, down) in enumerate(self.weights):
            qkv = F.linear(rms_norm(x, self.one), qkv_weight).view(rows, count, -1, self.dim).transpose(1, 2)
            q, k, v = qkv.split((self.heads, self.kv_heads, self.kv_heads), 1)
            q = self.rotate(rms_norm(q, self.head_one), start)
            self.keys[layer, :, :, start:end] = self.rotate(rms_norm(k, self.head_one), start)
            self.values[layer, :, :, start:end] = v
            mixed = F.scaled_dot_product_attention(q, self.keys[layer, :, :, :end], self.values[layer, :, :, :end],
                                                   is_causal=count > 1, enable_gqa=self.heads != self.kv_heads)
            x = x + F.linear(mixed.transpose(1, 2).reshape(rows, count, -1), out_weight)
            gate, up = F.linear(rms_norm(x, self.one), gate_up).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, down)
        return F.linear(rms_norm(x[:, -1], self.one), self.embedding).float()

    def generate(self, prompt, new):
        rows, length = prompt.shape
        self.prepare(rows, length + new)
        ids, start = prompt, 0
        for _ in range(new):
            probabilities = self.forward(ids, start).softmax(-1)
            start += ids.shape[1]
            ids = torch.multinomial(probabilities, 1)


def transformers_generate(shape, device, dtype, prompt, new):
    from transformers import GenerationConfig, Qwen3ForCausalLM
    config = qwen3_config(SHAPES[shape], bos_token_id=None, eos_token_id=None, pad_token_id=0)
    with torch.device(device):  # random numbers for a large model take minutes on a CPU
        model = Qwen3ForCausalLM(config).to(dtype).eval()
    settings = GenerationConfig(do_sample=True, top_k=0, top_p=1.0, max_new_tokens=new, min_new_tokens=new,
                                pad_token_id=0, eos_token_id=None)
    return lambda: model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=settings)


def timed(device, work, repeats):
    """Seconds of the first and the fastest run, and the least processor time of a run, which other
    load does not affect. On a GPU the first run includes the allocator's first allocations."""
    runs, processor = [], float("inf")
    for _ in range(repeats):
        if device != "cpu":
            torch.cuda.synchronize()
        start, used = time.perf_counter(), time.process_time()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        runs.append(time.perf_counter() - start)
        processor = min(processor, time.process_time() - used)
    return runs[0], min(runs), processor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="tiny", choices=SHAPES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sequences", type=int, default=256)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=["bare", "transformers"])
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    dtype = torch.float32 if options.device == "cpu" else torch.bfloat16
    torch.manual_seed(0)
    prompt = torch.randint(0, SHAPES[options.shape][6], (options.sequences, options.prompt), device=options.device)
    with torch.inference_mode():
        runs = {}
        if options.only != "transformers":
            bare = BareModel(options.shape, options.device, dtype)
            runs["bare loop"] = lambda: bare.generate(prompt, options.new)
        if options.only != "bare":
            runs["transformers"] = transformers_generate(options.shape, options.device, dtype, prompt, options.new)
        for name, work in runs.items():
            first, seconds, processor = timed(options.device, work, options.repeats)
            tokens = options.sequences * options.new
            print(f"{name:<14} {tokens / seconds:9.0f} tokens/s, {seconds / options.new * 1e3:7.2f} ms a step, "
                  f"{processor / options.new * 1e3:.2f} ms of processor time, the first run at {tokens / first:.0f}",
                  flush=True)


if __name__ == "__main__":
    main()
