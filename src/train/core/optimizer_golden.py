#!/usr/bin/env python3
"""Prints optimizer_golden.h: what PyTorch's optimizers make of a few elements in a few steps.

usage: /usr/bin/python3 src/train/core/optimizer_golden.py > src/train/core/optimizer_golden.h
"""
import json

import torch

STEPS = 6
CASES = [
    ("sgd", {}, 0),
    ("sgd", {}, 0.1),
    ("sgd", {"momentum": 0.9}, 0),
    ("sgd", {"momentum": 0.9, "nesterov": True}, 0.01),
    ("adam", {}, 0),
    ("adam", {"beta1": 0.5, "beta2": 0.9, "epsilon": 1e-4}, 0.1),
    ("adamw", {}, 0),
    ("adamw", {"beta1": 0.8}, 0.1),
    ("adagrad", {}, 0),
    ("adagrad", {"epsilon": 1e-3}, 0.1),
    ("rmsprop", {}, 0),
    ("rmsprop", {"momentum": 0.9, "epsilon": 1e-5}, 0.1),
]
CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
           "adagrad": torch.optim.Adagrad, "rmsprop": torch.optim.RMSprop}
SLOTS = ["momentum_buffer", "exp_avg", "exp_avg_sq", "sum", "square_avg"]


def torch_arguments(options):
    arguments = {"lr": 0.05}
    for key, value in options.items():
        if key not in ("beta1", "beta2"):
            arguments[{"epsilon": "eps"}.get(key, key)] = value
    if "beta1" in options or "beta2" in options:
        arguments["betas"] = (options.get("beta1", 0.9), options.get("beta2", 0.999))
    return arguments


def slots_of(state):
    names = ["square_avg", "momentum_buffer"] if "square_avg" in state else SLOTS
    return [state[name] for name in names if state.get(name) is not None]


def numbers(tensor):
    return "{" + ", ".join(f"{value:.8e}f" for value in tensor.tolist()) + "}"


def run(kind, options, weight_decay, initial, gradients):
    variable = initial.clone().requires_grad_(True)
    optimizer = CLASSES[kind]([variable], weight_decay=weight_decay, **torch_arguments(options))
    for gradient in gradients:
        variable.grad = gradient.clone()
        optimizer.step()
    return variable.detach(), slots_of(optimizer.state[variable])


def main():
    torch.manual_seed(1)
    initial = torch.randn(7)
    gradients = torch.randn(STEPS, 7) * torch.tensor([1, 10, 0.1, 1e-3, 1, 0, 1e3])
    print("// Made by optimizer_golden.py with PyTorch " + torch.__version__.split("+")[0] + ".")
    print("#pragma once\n\n#include <vector>\n\nnamespace muster::train::golden {\n")
    print("struct Case {\n  const char* optimizer;\n  double weight_decay;\n"
          "  std::vector<float> values;\n  std::vector<std::vector<float>> slots;\n};\n")
    print(f"inline const std::vector<float> kInitial = {numbers(initial)};")
    print("inline const std::vector<std::vector<float>> kGradients = {"
          + ", ".join(map(numbers, gradients)) + "};")
    print("inline const std::vector<Case> kCases = {")
    for kind, options, weight_decay in CASES:
        values, slots = run(kind, options, weight_decay, initial, gradients)
        text = json.dumps({"type": kind, "learning_rate": 0.05, **options})
        print(f'{{R"({text})", {weight_decay}, {numbers(values)}, '
              + "{" + ", ".join(map(numbers, slots)) + "}},")
    print("};\n\n}  // namespace muster::train::golden")


main()
