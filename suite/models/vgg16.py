"""VGG-16 in its usual CIFAR form: 14.7 M parameters, thirteen convolutions with BatchNorm and one linear classifier.

Convolutions as in configuration D of Simonyan & Zisserman 2015 (arXiv 1409.1556, table 1), followed by BatchNorm; the
three wide linear layers, made for ImageNet, give way to a single one on the 512 features, as is common at 32 x 32.
"""

import torch
from torch import nn

# Channels of the convolutions of each block; a block ends with a 2 x 2 max-pooling.
_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class VGG16(nn.Module):
    """Images [B, channels, H, W] in, H and W at least 32; logits [B, classes] out."""

    def __init__(self, channels: int, classes: int):
        super().__init__()
        layers: list[nn.Module] = []
        for block in _BLOCKS:
            for width in block:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                channels = width
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.fc = nn.Linear(channels, classes)
        for module in self.features:
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
                nn.init.zeros_(module.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.features(x).mean(dim=(2, 3)))
