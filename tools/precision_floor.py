#!/usr/bin/env python3
"""The least error of 16 bits: the log-probabilities of a random Qwen3 in fp32, and again with only
the inputs of its matrix products rounded to bf16 or fp16. In both, weights hold bf16 values, and
sums, norms, attention and logits are fp32: no program with 16-bit operands in its products can be
closer to fp32, except by chance.

    .deps/reference/bin/python tools/precision_floor.py --shape qwen3-0.6b

The last norm scales the logits until the mean entropy is below --entropy, as `antisd-bench
precision` does.
"""
import argparse

import torch
from transformers import Qwen3ForCausalLM

from qwen3_shapes import SHAPES, qwen3_config


def random_model(shape):
    model = Qwen3ForCausalLM(qwen3_config(SHAPES[shape])).float().eval()
    for parameter in model.parameters():
        parameter.copy_(parameter.bfloat16())
    return model


def hidden_states(model, ids):
    return model.model(ids).last_hidden_state.flatten(0, 1)


def scale_for(hidden, head, entropy):
    logits = hidden[::16] @ head.T
    scale = 1.0
    while True:
        logp = (logits * scale).log_softmax(-1)
        if -(logp.exp() * logp).sum(-1).mean() < entropy:
            return scale
        scale *= 1.1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", default="qwen3-0.6b", choices=SHAPES)
    parser.add_argument("--sequences", type=int, default=2)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--entropy", type=float, default=0.9)
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    model = random_model(options.shape)
    head = model.lm_head.weight
    ids = torch.randint(head.shape[0], (options.sequences, options.length))

    exact = hidden_states(model, ids)
    scale = scale_for(exact, head, options.entropy)

    def logp_of(hidden, targets):
        parts = []
        for rows, chosen in zip(hidden.split(64), targets.split(64)):
            parts.append((rows * scale @ head.T).log_softmax(-1).gather(1, chosen)[:, 0])
        return torch.cat(parts)

    targets = torch.cat([torch.multinomial((rows * scale @ head.T).softmax(-1), 1) for rows in exact.split(64)])
    reference = logp_of(exact, targets)
    print(f"{options.shape}: {targets.numel()} tokens, mean logp {reference.mean():.3f}")
    for dtype in (torch.bfloat16, torch.float16):
        round_inputs = lambda module, inputs: tuple(x.to(dtype).float() for x in inputs)
        layers = [m for m in model.model.modules() if isinstance(m, torch.nn.Linear)]
        hooks = [m.register_forward_pre_hook(round_inputs) for m in layers]
        rounded = hidden_states(model, ids)
        for hook in hooks:
            hook.remove()
        for what, hidden in (("the head's alone", exact.to(dtype).float()), ("the layers' alone", rounded),
                             ("all", rounded.to(dtype).float())):
            difference = (logp_of(hidden, targets) - reference).abs()
            print(f"  {str(dtype)[6:]}, inputs of products rounded, {what}: mean |delta logp| {difference.mean():.4f}, "
                  f"largest {difference.max():.3f}")


if __name__ == "__main__":
    main()
