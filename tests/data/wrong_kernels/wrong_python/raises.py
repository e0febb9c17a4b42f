"""A launcher with an error in Python."""

import torch


def launch(arrays, scalars, stream):
    torch.add(arrays["z"], arrays["x"], out=arrays["y"])
