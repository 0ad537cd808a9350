"""Tokens per second of PyTorch in training and in scoring, for the shapes of `antisd-bench update`
and `score`.

    .deps/reference/bin/python tools/bench_update_peer.py --shape tiny --sequences 32 --length 128 --threads 2
    python3 tools/bench_update_peer.py --model eager --device cuda --shape qwen3-0.6b [--json]

Training is forward, mean cross entropy, backward and torch.optim.AdamW; scoring is forward,
log-softmax, the log-probability of the next token and the entropy, without gradients. `--model
transformers` is Qwen3ForCausalLM with scaled-dot-product attention; `--model eager` is the same
maths in plain PyTorch modules below, for machines without transformers. Sequences have equal
lengths, so the batch needs no padding.
"""
import argparse
import json
import time

import torch
from torch import nn
from torch.nn import functional as F

from qwen3_shapes import SHAPES, qwen3_config

ROPE_THETA = 1_000_000.0


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)
        return self.weight * y.to(x.dtype)


def rotate(x, cosine, sine):  # x: [batch, heads, tokens, width]
    a, b = x.chunk(2, -1)
    return x * cosine + torch.cat((-b, a), -1) * sine


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        hidden, _, self.heads, self.kv_heads, self.width, intermediate, _, _ = shape
        self.first_norm, self.second_norm = RmsNorm(hidden), RmsNorm(hidden)
        self.q_norm, self.k_norm = RmsNorm(self.width), RmsNorm(self.width)
        self.q = nn.Linear(hidden, self.heads * self.width, bias=False)
        self.k = nn.Linear(hidden, self.kv_heads * self.width, bias=False)
        self.v = nn.Linear(hidden, self.kv_heads * self.width, bias=False)
        self.out = nn.Linear(self.heads * self.width, hidden, bias=False)
        self.gate = nn.Linear(hidden, intermediate, bias=False)
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x, cosine, sine):
        batch, tokens, _ = x.shape
        y = self.first_norm(x)
        q = self.q_norm(self.q(y).view(batch, tokens, self.heads, self.width)).transpose(1, 2)
        k = self.k_norm(self.k(y).view(batch, tokens, self.kv_heads, self.width)).transpose(1, 2)
        v = self.v(y).view(batch, tokens, self.kv_heads, self.width).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(rotate(q, cosine, sine), rotate(k, cosine, sine), v, is_causal=True,
                                               enable_gqa=self.heads != self.kv_heads)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, -1))
        y = self.second_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class EagerModel(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        hidden, layers, _, _, width, _, vocabulary, tied = shape
        self.embedding = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))
        self.norm = RmsNorm(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        frequency = ROPE_THETA ** (-torch.arange(0, width, 2).float() / width)
        angles = (torch.arange(length).float()[:, None] * frequency).repeat(1, 2)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = layer(x, self.cosine, self.sine)
        return self.head(self.norm(x))


class TransformersModel(nn.Module):
    def __init__(self, shape, length):
        super().__init__()
        from transformers import Qwen3ForCausalLM
        config = qwen3_config(shape, rope_theta=ROPE_THETA, max_position_embeddings=max(length, 40_960))
        config._attn_implementation = "sdpa"
        self.model = Qwen3ForCausalLM(config)

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


# Of the next token: [batch, tokens - 1]; and of all: [batch, tokens - 1, vocabulary].
def log_probabilities(logits, ids):
    everything = logits[:, :-1].float().log_softmax(-1)
    return everything.gather(-1, ids[:, 1:, None]).squeeze(-1), everything


def best_time(step, repeats, device, clock):
    def wait():
        if device == "cuda":
            torch.cuda.synchronize()
    best = float("inf")
    for i in range(repeats + 1):  # the first one is the warm-up
        wait()
        start = clock()
        step()
        wait()
        if i > 0:
            best = min(best, clock() - start)
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["transformers", "eager"], default="transformers")
    parser.add_argument("--shape", choices=list(SHAPES), default="tiny")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--sequences", type=int, default=8)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="0: as many as torch chooses")
    parser.add_argument("--fused", action="store_true", help="torch.optim.AdamW(fused=True)")
    parser.add_argument("--only", choices=["training", "scoring"])
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall",
                        help="cpu: processor time, for one thread on a busy machine")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.threads > 0:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    kind = TransformersModel if options.model == "transformers" else EagerModel
    model = kind(SHAPES[options.shape], options.length).to(options.device, dtype)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1) if name.endswith("norm.weight") else parameter.normal_(0, 0.02)
    vocabulary = SHAPES[options.shape][6]
    ids = torch.tensor([[(s * 7919 + i * 104729) % vocabulary for i in range(options.length)]
                        for s in range(options.sequences)], device=options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=options.fused or None)

    def train():
        model.train()
        logp, _ = log_probabilities(model(ids), ids)
        (-logp.mean()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def score():
        model.eval()
        with torch.no_grad():
            logp, everything = log_probabilities(model(ids), ids)
            return logp.cpu(), (-(everything.exp() * everything).sum(-1)).cpu()

    clock = time.process_time if options.clock == "cpu" else time.perf_counter
    tokens = ids.numel()
    result = {"bench": "update_peer", "model": options.model, "shape": options.shape, "device": options.device,
              "sequences": options.sequences, "length": options.length, "threads": torch.get_num_threads(), "clock": options.clock,
              "torch": torch.__version__}
    if options.only != "scoring":
        result["train_tokens_per_s"] = tokens / best_time(train, options.repeats, options.device, clock)
    if options.only != "training":
        result["score_tokens_per_s"] = tokens / best_time(score, options.repeats, options.device, clock)
    if options.json:
        print(json.dumps(result))
        return
    print(f"{options.model}, {options.shape}, {options.sequences} x {options.length} tokens, {options.device}, "
          f"{result['threads']} threads")
    for key in ("train_tokens_per_s", "score_tokens_per_s"):
        if key in result:
            print(f"  {key.split('_')[0]}: {result[key]:.0f} tokens/s")


if __name__ == "__main__":
    main()
