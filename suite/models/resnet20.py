"""ResNet-20 in its CIFAR form (He et al. 2016, section 4.2): 0.27 M parameters, shortcuts without parameters."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """Two 3 x 3 convolutions around an identity shortcut (option A: stride and zero-padded channels)."""

    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(channels)
        self.stride = stride
        self.new_channels = channels - channels_in

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        if self.stride > 1:
            x = x[:, :, :: self.stride, :: self.stride]
        if self.new_channels:
            x = F.pad(x, (0, 0, 0, 0, 0, self.new_channels))
        return F.relu(out + x)


class ResNet20(nn.Module):
    """Three groups of three blocks, 16, 32 and 64 channels. Images [B, channels, H, W] in, logits [B, classes] out."""

    def __init__(self, channels: int, classes: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.group1 = self._group(16, 16, stride=1)
        self.group2 = self._group(16, 32, stride=2)
        self.group3 = self._group(32, 64, stride=2)
        self.fc = nn.Linear(64, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @staticmethod
    def _group(channels_in: int, channels: int, stride: int) -> nn.Sequential:
        return nn.Sequential(
            Block(channels_in, channels, stride), Block(channels, channels, 1), Block(channels, channels, 1)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.group3(self.group2(self.group1(x)))
        return self.fc(x.mean(dim=(2, 3)))
