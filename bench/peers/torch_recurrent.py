"""A recurrent layer of 128 units over 128 time steps in PyTorch: a training step with SGD.

Runs alternately with other processes; see turns.py.
"""

import argparse

import torch
import turns
from torch import nn


class Classifier(nn.Module):
    def __init__(self, kind):
        super().__init__()
        layer = {"lstm": nn.LSTM, "gru": nn.GRU}[kind]
        self.recurrent = layer(128, 128, batch_first=True)
        self.dense = nn.Linear(128, 10)

    def forward(self, x):
        outputs, _ = self.recurrent(x)
        return self.dense(outputs[:, -1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=["lstm", "gru"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = Classifier(arguments.kind)
    x = torch.rand(arguments.batch, 128, 128)
    y = torch.randint(10, (arguments.batch,))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train():
        optimizer.zero_grad(set_to_none=True)
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value.item()

    turns.take_turns(train)


if __name__ == "__main__":
    main()
