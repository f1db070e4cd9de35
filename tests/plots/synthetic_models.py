"""Names and sizes of the tensors of two of the suite's models."""


def resnet20_segments() -> dict[str, int]:
    """Parameter names and sizes of a CIFAR-form ResNet-20 on one-channel images, input first."""
    segments = {"conv1.weight": 9 * 16, "bn1.weight": 16, "bn1.bias": 16}
    wide = 16
    for stage, channels in enumerate((16, 32, 64), start=1):
        for block in range(3):
            for half in (1, 2):
                name = f"layer{stage}.{block}"
                segments[f"{name}.conv{half}.weight"] = 9 * wide * channels
                segments[f"{name}.bn{half}.weight"] = segments[f"{name}.bn{half}.bias"] = channels
                wide = channels
    return segments | {"fc.weight": 640, "fc.bias": 10}


def lstm_segments() -> dict[str, int]:
    """Parameter names and sizes of a small two-layer LSTM language model."""
    segments = {"embedding.weight": 2000 * 64}
    for layer, inputs in enumerate((64, 128)):
        segments |= {
            f"lstm.weight_ih_l{layer}": 512 * inputs,
            f"lstm.weight_hh_l{layer}": 512 * 128,
            f"lstm.bias_ih_l{layer}": 512,
            f"lstm.bias_hh_l{layer}": 512,
        }
    return segments | {"decoder.weight": 2000 * 128, "decoder.bias": 2000}
