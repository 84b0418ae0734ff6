"""A ResNet-34 for ordinal images, and its training.

The network is written out here rather than taken from torchvision, whose compiled operators fail to load
beside a torch from another index: it is forty lines. Its parameters have torchvision's names and initial
values, so that torchvision's weights load.

Training is meant for some thousands of small images, which stay on the device as bytes and are augmented
there. It runs on the GPU where there is one, else on the CPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

_BLOCKS = (3, 4, 6, 3)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and a way past them."""

    def __init__(self, n_in: int, n_out: int, stride: int = 1) -> None:
        super().__init__()
        # torchvision builds the way past first, so that equal seeds give equal weights.
        past = _way_past(n_in, n_out, stride) if stride > 1 or n_in != n_out else None
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(n_out)
        self.downsample = past

    def forward(self, x: Tensor) -> Tensor:
        """Features of the next block."""
        past = x if self.downsample is None else self.downsample(x)
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + past)


class ResNet(nn.Module):
    """The residual network of basic blocks, four layers of them."""

    def __init__(self, blocks: Sequence[int], n_classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = _layer(blocks[0], 64, 64)
        self.layer2 = _layer(blocks[1], 64, 128, stride=2)
        self.layer3 = _layer(blocks[2], 128, 256, stride=2)
        self.layer4 = _layer(blocks[3], 256, 512, stride=2)
        self.fc = nn.Linear(512, n_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """Logits of normalised images."""
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(x.mean(dim=(2, 3)))
        return logits


def resnet34(n_classes: int) -> ResNet:
    """The 34-layer residual network, not trained.

    References
    ----------
    He, Zhang, Ren, Sun. Deep Residual Learning for Image Recognition. CVPR 2016.

    Examples
    --------
    >>> f"{sum(p.numel() for p in resnet34(1000).parameters()):,}"
    '21,797,672'
    """
    return ResNet(_BLOCKS, n_classes)


def _layer(n_blocks: int, n_in: int, n_out: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        BasicBlock(n_in, n_out, stride), *(BasicBlock(n_out, n_out) for _ in range(n_blocks - 1))
    )


def _way_past(n_in: int, n_out: int, stride: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))


class ImageClassifier(nn.Module):
    """A network that takes images as they are stored: bytes, channels last.

    Parameters
    ----------
    network : ResNet
        From normalised images (n, 3, size, size) to logits.
    mean, std : sequence of 3 numbers
        Of the training pixels in each channel, as shares of 255. They are saved with the weights.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, network: ResNet, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32))

    def normalised(self, images: Tensor) -> Tensor:
        """Bytes (n, size, size, 3) to numbers (n, 3, size, size) of mean 0 and variance 1."""
        return ((images.float() / 255 - self.mean) / self.std).permute(0, 3, 1, 2)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of uint8 images."""
        logits: Tensor = self.network(self.normalised(images))
        return logits


def untrained(images: NDArray[np.uint8], n_classes: int, seed: int = 0) -> ImageClassifier:
    """A ResNet-34 with random weights that normalises by the given training images.

    Parameters
    ----------
    images : uint8 array of shape (n, size, size, 3)
        Training images.
    n_classes : int
        Logits of an image.
    seed : int
        The same seed gives the same weights.
    """
    _check_images(images)
    # Image by image, so that no copy of all pixels in a wider type is made.
    counts = np.zeros((3, 256))
    for image in images:
        counts += [np.bincount(channel.ravel(), minlength=256) for channel in np.moveaxis(image, 2, 0)]
    value, share = np.arange(256) / 255, counts / counts.sum(axis=1, keepdims=True)
    mean = share @ value
    std = np.sqrt((share * (value - mean[:, None]) ** 2).sum(axis=1))
    # Only the CPU's generator is drawn from, and torch.manual_seed would reseed the GPUs as well.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        network = resnet34(n_classes)
    return ImageClassifier(network, mean.tolist(), np.maximum(std, 1 / 255).tolist())


@dataclass(frozen=True)
class Recipe:
    """How to train: AdamW, one cycle of the learning rate, cross-entropy.

    Parameters
    ----------
    epochs : int
        Passes over the training images.
    batch_size : int
        Images of a step, at least 2. The rows of an incomplete batch are spread over the others.
    learning_rate : float
        The peak of the cycle.
    weight_decay : float
        Of the convolutions and the last layer; biases and normalisations have none.
    seed : int
        Of the order of the images and of their augmentation.
    """

    epochs: int = 30
    batch_size: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1; got {self.epochs}.")
        if self.batch_size < 2:
            raise ValueError(
                f"batch_size must be at least 2, to normalise over a batch; got {self.batch_size}."
            )


class Epoch(NamedTuple):
    """The result of one pass over the training images: its number from 1, its mean loss and accuracy."""

    number: int
    loss: float
    accuracy: float


def fit(
    network: ImageClassifier, images: NDArray[np.uint8], y: ArrayLike, recipe: Recipe | None = None
) -> Iterator[Epoch]:
    """Train a network in place, one epoch for each step of the iterator.

    No generator of random numbers but its own is used, so that equal seeds give equal networks on the CPU.

    Parameters
    ----------
    network : ImageClassifier
        As from :func:`untrained`. It is moved to the GPU where there is one.
    images : uint8 array of shape (n, size, size, 3)
        Training images.
    y : array of shape (n,)
        Their labels.
    recipe : Recipe, optional
        How to train.

    Yields
    ------
    Epoch
        After each pass. The loss and accuracy are those of the augmented images while the weights changed.
    """
    recipe = recipe or Recipe()
    _check_images(images)
    labels = np.asarray(y)
    if labels.shape != (len(images),) or len(images) < 2:
        raise ValueError(
            "Training needs at least 2 images and a label for each; got images of shape "
            f"{images.shape} and labels of shape {labels.shape}."
        )
    n_classes = network.network.fc.out_features
    # Out of range, they would stop a GPU with an error that names nothing.
    if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() >= n_classes:
        raise ValueError(f"Labels must be whole numbers from 0 to {n_classes - 1}.")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    pixels = torch.tensor(images, device=device)
    target = torch.tensor(labels, dtype=torch.int64, device=device)
    order_rng = torch.Generator().manual_seed(recipe.seed)
    augment_rng = torch.Generator(device).manual_seed(recipe.seed)

    n_batches = max(1, len(images) // recipe.batch_size)
    optimizer = torch.optim.AdamW(_decayed(network, recipe.weight_decay), lr=recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=recipe.learning_rate, total_steps=recipe.epochs * n_batches
    )
    for number in range(1, recipe.epochs + 1):
        network.train()
        loss_sum, n_right = torch.zeros((), device=device), torch.zeros((), device=device)
        for rows in torch.randperm(len(images), generator=order_rng).to(device).tensor_split(n_batches):
            batch = augmented(network.normalised(pixels[rows]), augment_rng)
            with _half_precision(device):
                scores = network.network(batch)
            loss = F.cross_entropy(scores.float(), target[rows])
            optimizer.zero_grad(set_to_none=True)
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            loss_sum += loss.detach() * len(rows)
            n_right += (scores.argmax(dim=1) == target[rows]).sum()
        yield Epoch(number, loss_sum.item() / len(images), n_right.item() / len(images))


def logits(network: ImageClassifier, images: NDArray[np.uint8], batch_size: int = 256) -> NDArray[np.float32]:
    """Scores of images as they are, in evaluation mode, on the device that the network is on.

    Parameters
    ----------
    network : ImageClassifier
        Trained or not.
    images : uint8 array of shape (n, size, size, 3)
        What to score.
    batch_size : int
        Images at a time; it changes the scores by rounding only.

    Returns
    -------
    float32 array of shape (n, K)
        Ready for a softmax.
    """
    _check_images(images)
    was_training = network.training
    network.eval()
    try:
        with torch.inference_mode():
            parts = [
                network(torch.tensor(images[start : start + batch_size], device=network.mean.device)).cpu()
                for start in range(0, len(images), batch_size)
            ]
    finally:
        network.train(was_training)
    return np.concatenate([part.numpy() for part in parts])


def augmented(batch: Tensor, generator: torch.Generator) -> Tensor:
    """Each image mirrored or not, turned, scaled and shifted a little, in other light.

    Parameters
    ----------
    batch : Tensor of shape (n, 3, size, size)
        Normalised images.
    generator : Generator
        On the device of the batch.
    """
    n = len(batch)

    def uniform(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(n, generator=generator, device=batch.device)

    mirror = torch.where(uniform(-1, 1) < 0, -1.0, 1.0)
    angle, zoom = uniform(-0.25, 0.25), uniform(0.85, 1.15)
    cos, sin = zoom * angle.cos(), zoom * angle.sin()
    maps = torch.stack(
        [
            torch.stack([mirror * cos, -sin, uniform(-0.15, 0.15)], dim=1),
            torch.stack([mirror * sin, cos, uniform(-0.15, 0.15)], dim=1),
        ],
        dim=1,
    )
    grid = F.affine_grid(maps, list(batch.shape), align_corners=False)
    moved = F.grid_sample(batch, grid, padding_mode="reflection", align_corners=False)
    contrast, brightness = uniform(0.75, 1.25)[:, None, None, None], uniform(-0.3, 0.3)[:, None, None, None]
    level = moved.mean(dim=(1, 2, 3), keepdim=True)
    return ((moved - level) * contrast + level + brightness).contiguous(memory_format=torch.channels_last)


def _half_precision(device: torch.device) -> AbstractContextManager[object]:
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=device.type == "cuda")


def _decayed(network: nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Weights of products are pulled towards zero; scales and shifts are not."""
    parameters = [p for p in network.parameters() if p.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _check_images(images: NDArray[np.uint8]) -> None:
    n, size, *_ = (*images.shape, 0, 0)
    if images.dtype != np.uint8 or images.shape != (n, size, size, 3) or 0 in images.shape:
        raise ValueError(
            f"Images must be uint8 of shape (n, size, size, 3); got {images.dtype} of shape {images.shape}."
        )
