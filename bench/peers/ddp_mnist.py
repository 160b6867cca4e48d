#!/usr/bin/python3
"""The MNIST CNN trained by PyTorch: DDP over Gloo, or one plain process.

usage: ddp_mnist.py DATA STEPS PROCESSES

Prints `step N` when step N is done, on rank 0, so that its parent can measure the times.
"""
import gzip
import os
import pathlib
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def read(path):
    path = pathlib.Path(path)
    raw = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(path.name + ".gz").read_bytes())
    dims = raw[3]
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(dims)]
    return torch.frombuffer(bytearray(raw[4 + 4 * dims:]), dtype=torch.uint8).reshape(shape)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc1 = nn.Linear(64 * 7 * 7, 1024)
        self.fc2 = nn.Linear(1024, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


def train(rank, data, steps, world, port):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    images = (read(f"{data}/train-images-idx3-ubyte").float().div_(255) - 0.1307) / 0.3081
    labels = read(f"{data}/train-labels-idx1-ubyte").long()
    images = images.unsqueeze(1)
    net = Net()
    if world > 1:
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.001)
    order = torch.randperm(len(images))
    for step in range(steps):
        at = ((step * world + rank) * 64) % (len(images) - 64)
        index = order[at:at + 64]
        loss = nn.functional.cross_entropy(net(images[index]), labels[index])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if rank == 0:
            print("step", step + 1, flush=True)


if __name__ == "__main__":
    data, steps, world = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    os.environ["OMP_NUM_THREADS"] = "1"
    if world == 1:
        train(0, data, steps, 1, 0)
    else:
        mp.spawn(train, args=(data, steps, world, 20000 + os.getpid() % 20000), nprocs=world)
