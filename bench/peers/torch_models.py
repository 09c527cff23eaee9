"""The models of keras_models.py in PyTorch: a training step with SGD and the squared error.

Eager, or compiled with --compile. Images have their channels last, for which oneDNN's
convolutions are fastest. Runs alternately with other processes; see turns.py.
"""

import argparse

import torch
import turns
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(512, 8, batch_first=True)
        self.first_norm = nn.LayerNorm(512)
        self.dense = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
        self.second_norm = nn.LayerNorm(512)

    def forward(self, x):
        y = self.first_norm(x + self.attention(x, x, x, need_weights=False)[0])
        return self.second_norm(y + self.dense(y))


class Bottleneck(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(inputs, filters, 1, stride), nn.BatchNorm2d(filters), nn.ReLU(True),
            nn.Conv2d(filters, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU(True),
            nn.Conv2d(filters, 4 * filters, 1), nn.BatchNorm2d(4 * filters),
        )
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != 4 * filters:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, 4 * filters, 1, stride),
                                          nn.BatchNorm2d(4 * filters))

    def forward(self, x):
        return nn.functional.relu(self.layers(x) + self.shortcut(x), inplace=True)


class ResNet50(nn.Module):
    """ResNet50 as in Keras: with biases, and strides in the first convolutions."""

    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(True),
                  nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for stage, blocks in enumerate((3, 4, 6, 3)):
            filters = 64 << stage
            for block in range(blocks):
                stride = 2 if block == 0 and stage > 0 else 1
                layers.append(Bottleneck(channels, filters, stride))
                channels = 4 * filters
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000),
                   nn.Softmax(1)]
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


def _convolutions(inputs, filters):
    return nn.Sequential(
        nn.Conv2d(inputs, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters),
        nn.ReLU(True),
        nn.Conv2d(filters, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters),
        nn.ReLU(True),
    )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        levels = (32, 64, 128)
        self.down = nn.ModuleList(_convolutions(inputs, filters)
                                  for inputs, filters in zip((3, *levels), levels))
        self.middle = _convolutions(128, 256)
        self.transposes = nn.ModuleList(nn.ConvTranspose2d(2 * filters, filters, 2, 2)
                                        for filters in reversed(levels))
        self.up = nn.ModuleList(_convolutions(2 * filters, filters)
                                for filters in reversed(levels))
        self.last = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        skipped = []
        for level in self.down:
            skipped.append(level(x))
            x = nn.functional.max_pool2d(skipped[-1], 2)
        x = self.middle(x)
        for transpose, level in zip(self.transposes, self.up):
            x = level(torch.cat([skipped.pop(), transpose(x)], 1))
        return self.last(x)


# The class, the shape of an example, and the shape of its prediction.
MODELS = {
    "attention": (Attention, (128, 512), (128, 512)),
    "resnet50": (ResNet50, (3, 224, 224), (1000,)),
    "unet": (UNet, (3, 128, 128), (1, 128, 128)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(MODELS), required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    make, input_shape, output_shape = MODELS[arguments.model]
    model = make()
    x = torch.rand(arguments.batch, *input_shape)
    y = torch.rand(arguments.batch, *output_shape)
    if x.dim() == 4:
        model = model.to(memory_format=torch.channels_last)
        x = x.to(memory_format=torch.channels_last)
    forward = torch.compile(model) if arguments.compile else model
    loss = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train():
        optimizer.zero_grad(set_to_none=True)
        value = loss(forward(x), y)
        value.backward()
        optimizer.step()
        return value.item()

    model.train()
    turns.take_turns(train)


if __name__ == "__main__":
    main()
