#!/usr/bin/env python3
"""Records what torch.optim.AdamW with clip_grad_norm_ does to the parameters of a tiny model, in
double precision, for the tests of src/optim: testdata/optim/adamw.safetensors.

    .deps/reference/bin/python tools/record_optim_fixtures.py
"""
import pathlib

import torch
from safetensors.torch import save_file

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "optim" / "adamw.safetensors"
# A Llama of one layer: vocabulary 5, hidden 4, intermediate 3, 2 heads and 1 of keys, tied head.
SHAPES = {
    "embedding": (5, 4), "layers.0.first_norm": (4,), "layers.0.second_norm": (4,), "layers.0.qkv": (8, 4),
    "layers.0.output": (4, 4), "layers.0.gate_up": (6, 4), "layers.0.down": (4, 3), "final_norm": (4,),
}
RATES = [1e-3, 2e-3, 1e-2, 1e-2, 5e-3, 1e-4]
SIZES = [0.01, 1.0, 0.05, 1e-6, 3.0, 0.1]  # of the gradients: some steps are clipped, some are not


def main():
    torch.manual_seed(20)
    tensors = {}
    parameters = {name: torch.nn.Parameter(torch.randn(shape).double()) for name, shape in SHAPES.items()}
    for name, value in parameters.items():
        tensors[f"initial.{name}"] = value.detach().float().clone()
    optimizer = torch.optim.AdamW(parameters.values(), lr=1, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    norms = []
    for step, (rate, size) in enumerate(zip(RATES, SIZES)):
        optimizer.param_groups[0]["lr"] = rate
        for name, value in parameters.items():
            gradient = (torch.randn(value.shape) * size).float()
            tensors[f"gradient.{step}.{name}"] = gradient
            value.grad = gradient.double()
        norms.append(torch.nn.utils.clip_grad_norm_(parameters.values(), 1.0))
        optimizer.step()
        for name, value in parameters.items():
            tensors[f"after.{step}.{name}"] = value.detach().float().clone()
    for name, value in parameters.items():
        state = optimizer.state[value]
        tensors[f"first.{name}"] = state["exp_avg"].float()
        tensors[f"second.{name}"] = state["exp_avg_sq"].float()
    tensors["norms"] = torch.stack(norms).float()
    tensors["rates"] = torch.tensor(RATES).float()
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, OUTPUT)


main()
