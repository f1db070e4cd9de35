"""VGG-16 in its usual CIFAR form: 14.7 M parameters, thirteen convolutions with BatchNorm and one linear classifier.

Convolutions as in configuration D of Simonyan & Zisserman 2015 (arXiv 1409.1556, table 1), followed by BatchNorm; the
three wide linear layers, made for ImageNet, give way to a single one on the 512 features, as is common at 32 x 32.
"""

import torch
from torch import nn

# Channels of the convolutions of each block over `width`; a block ends with a 2 x 2 max-pooling.
_BLOCKS = ((1, 1), (2, 2), (4, 4, 4), (8, 8, 8), (8, 8, 8))


class VGG16(nn.Module):
    """Images [B, channels, H, W] in, H and W at least 32; logits [B, classes] out."""

    def __init__(self, channels: int, classes: int, width: int = 64):
        super().__init__()
        layers: list[nn.Module] = []
        for block in _BLOCKS:
            for multiple in block:
                out = multiple * width
                layers += [nn.Conv2d(channels, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True)]
                channels = out
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(channels, classes)
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.features(x).mean(dim=(2, 3)))
