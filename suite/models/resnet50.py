"""ResNet-50 in its ImageNet form (He et al. 2016, table 1) as torchvision builds it: 25.6 M parameters, 161 tensors."""

from torch import nn


def resnet50(channels: int, classes: int) -> nn.Module:
    """Untrained. Images [B, channels, H, W] in, logits [B, classes] out."""
    # Imported here because it takes a second that no other model needs.
    from torchvision.models import resnet50 as build

    model = build(weights=None, num_classes=classes)
    if channels != 3:
        model.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    return model
