"""Inception-v4 (Szegedy et al. 2016, arXiv 1602.07261, figures 3 to 9): 42.7 M parameters with 1000 classes.

As in the paper: no auxiliary classifier, convolutions without bias followed by BatchNorm and ReLU. Padding that the
figures do not mark as "V" keeps the size. Initial weights are torch's own, as the paper names none.
"""

from collections.abc import Sequence

import torch
from torch import nn

# One convolution: channels out, and height and width of its kernel. A path applies them in turn.
Convolution = tuple[int, tuple[int, int]]

_POINT, _SQUARE, _TALL, _WIDE = (1, 1), (3, 3), (7, 1), (1, 7)


class InceptionV4(nn.Module):
    """Images [B, channels, H, W] in, H and W at least 75; logits [B, classes] out."""

    def __init__(self, channels: int, classes: int):
        super().__init__()
        self.features = nn.Sequential(
            *_stem(channels),
            *(_block_a() for _ in range(4)), _reduction_a(),
            *(_block_b() for _ in range(7)), _reduction_b(),
            *(_block_c() for _ in range(3)),
        )  # fmt: skip
        self.dropout = nn.Dropout(0.2)
        self.fc = nn.Linear(1536, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.dropout(self.features(x).mean(dim=(2, 3))))


class Branches(nn.Module):
    """Several paths from the same input, their channels side by side."""

    def __init__(self, *branches: nn.Module):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], dim=1)


def _convolution(channels_in: int, channels: int, kernel: tuple[int, int], stride: int, valid: bool) -> nn.Sequential:
    padding = (0, 0) if valid else (kernel[0] // 2, kernel[1] // 2)
    return nn.Sequential(
        nn.Conv2d(channels_in, channels, kernel, stride, padding, bias=False),
        nn.BatchNorm2d(channels),
        nn.ReLU(inplace=True),
    )


def _path(channels: int, *convolutions: Convolution) -> nn.Sequential:
    """Convolutions in turn that keep the size."""
    modules = []
    for width, kernel in convolutions:
        modules.append(_convolution(channels, width, kernel, 1, valid=False))
        channels = width
    return nn.Sequential(*modules)


def _narrowing(channels: int, before: Sequence[Convolution], width: int, stride: int) -> nn.Sequential:
    """A path that ends in a 3 x 3 convolution without padding."""
    last = before[-1][0] if before else channels
    return nn.Sequential(*_path(channels, *before), _convolution(last, width, _SQUARE, stride, valid=True))


def _pooled(channels: int, width: int) -> nn.Sequential:
    """The path of every block that averages neighbours before its 1 x 1 convolution."""
    pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
    return nn.Sequential(pool, *_path(channels, (width, _POINT)))


def _stem(channels: int) -> list[nn.Module]:
    """Figure 3: 384 channels at about an eighth of the height and width."""
    return [
        _convolution(channels, 32, _SQUARE, 2, valid=True),
        _convolution(32, 32, _SQUARE, 1, valid=True),
        _convolution(32, 64, _SQUARE, 1, valid=False),
        Branches(nn.MaxPool2d(3, 2), _narrowing(64, (), 96, 2)),
        Branches(
            _narrowing(160, [(64, _POINT)], 96, 1),
            _narrowing(160, [(64, _POINT), (64, _TALL), (64, _WIDE)], 96, 1),
        ),
        Branches(_narrowing(192, (), 192, 2), nn.MaxPool2d(3, 2)),
    ]


def _block_a() -> Branches:
    """Figure 4: 384 channels in and out."""
    return Branches(
        _pooled(384, 96),
        _path(384, (96, _POINT)),
        _path(384, (64, _POINT), (96, _SQUARE)),
        _path(384, (64, _POINT), (96, _SQUARE), (96, _SQUARE)),
    )


def _reduction_a() -> Branches:
    """Figure 7 with k, l, m, n = 192, 224, 256, 384: half the size, 1024 channels."""
    return Branches(
        nn.MaxPool2d(3, 2), _narrowing(384, (), 384, 2), _narrowing(384, [(192, _POINT), (224, _SQUARE)], 256, 2)
    )


def _block_b() -> Branches:
    """Figure 5: 1024 channels in and out."""
    return Branches(
        _pooled(1024, 128),
        _path(1024, (384, _POINT)),
        _path(1024, (192, _POINT), (224, _WIDE), (256, _TALL)),
        _path(1024, (192, _POINT), (192, _WIDE), (224, _TALL), (224, _WIDE), (256, _TALL)),
    )


def _reduction_b() -> Branches:
    """Figure 8: half the size, 1536 channels."""
    return Branches(
        nn.MaxPool2d(3, 2),
        _narrowing(1024, [(192, _POINT)], 192, 2),
        _narrowing(1024, [(256, _POINT), (256, _WIDE), (320, _TALL)], 320, 2),
    )


def _block_c() -> Branches:
    """Figure 6: 1536 channels in and out; two of its paths part once more at their end."""

    def parting(width: int) -> Branches:
        return Branches(_path(width, (256, (1, 3))), _path(width, (256, (3, 1))))

    return Branches(
        _pooled(1536, 256),
        _path(1536, (256, _POINT)),
        nn.Sequential(*_path(1536, (384, _POINT)), parting(384)),
        nn.Sequential(*_path(1536, (384, _POINT), (448, (1, 3)), (512, (3, 1))), parting(512)),
    )
