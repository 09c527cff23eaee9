"""MobileNetV2 at 224 x 224 in PyTorch: a training step with SGD, or inference.

Runs eagerly and with channels last, for which oneDNN's convolutions are fastest. Runs
alternately with other processes; see turns.py.
"""

import argparse

import torch
import turns
from torch import nn

STAGES = [
    # Expansion, filters, blocks, stride of the first block.
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
]


def _convolution(inputs, outputs, window=1, stride=1, groups=1, activate=True):
    layers = [
        nn.Conv2d(inputs, outputs, window, stride, window // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    if activate:
        layers.append(nn.ReLU6(inplace=True))
    return nn.Sequential(*layers)


class InvertedResidual(nn.Module):
    def __init__(self, inputs, filters, expansion, stride):
        super().__init__()
        wide = inputs * expansion
        layers = [] if expansion == 1 else [_convolution(inputs, wide)]
        layers.append(_convolution(wide, wide, 3, stride, groups=wide))
        layers.append(_convolution(wide, filters, activate=False))
        self.layers = nn.Sequential(*layers)
        self.is_residual = stride == 1 and inputs == filters

    def forward(self, x):
        return x + self.layers(x) if self.is_residual else self.layers(x)


def mobilenet_v2():
    layers = [_convolution(3, 32, 3, 2)]
    channels = 32
    for expansion, filters, blocks, first_stride in STAGES:
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            layers.append(InvertedResidual(channels, filters, expansion, stride))
            channels = filters
    layers += [
        _convolution(channels, 1280),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(1280, 1000),
    ]
    return nn.Sequential(*layers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=["train", "predict"], required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    model = mobilenet_v2().to(memory_format=torch.channels_last)
    x = torch.rand(arguments.batch, 3, 224, 224).to(memory_format=torch.channels_last)
    y = torch.randint(1000, (arguments.batch,))
    loss = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train():
        optimizer.zero_grad(set_to_none=True)
        value = loss(model(x), y)
        value.backward()
        optimizer.step()
        return value.item()

    def predict():
        with torch.inference_mode():
            return model(x)

    model.train(arguments.mode == "train")
    turns.take_turns(train if arguments.mode == "train" else predict)


if __name__ == "__main__":
    main()
