"""From labelled images to scores: some train a ResNet-34, the others are scored by it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reproduction.held_out import hold_out
from reproduction.images import ImageData
from reproduction.protocol import Track
from reproduction.scores import Scores

_DIGITS = 5  # of the logits, here and so in the file: beyond float32's own error, and half the size


class SplitImages(NamedTuple):
    """Images, and which of them train and which are held out.

    ``task`` names the data in file names, ``epochs`` is how long a network trains on them by default.
    """

    task: str
    data: ImageData
    train: NDArray[np.int64]
    held: NDArray[np.int64]
    epochs: int
    weight_decay: float


def split_at_random(
    task: str, data: ImageData, n_held: int, share: float, epochs: int, weight_decay: float, seed: int
) -> SplitImages:
    """Hold out ``n_held`` images, or a share of a smaller collection; groups stay whole."""
    train, held = hold_out(data.groups, min(n_held, round(share * len(data))), seed)
    return SplitImages(task, data, train, held, epochs, weight_decay)


def train_and_score(
    images: SplitImages, n_classes: int, *, epochs: int | None, seed: int, track: Track
) -> Scores:
    """Train a ResNet-34 on the training images and score the held-out ones.

    Parameters
    ----------
    images : SplitImages
        Labelled images.
    n_classes : int
        Labels ``0 .. n_classes - 1``.
    epochs : int, optional
        Passes over the training images, if not the usual number.
    seed : int
        Of the weights, the order and the augmentation of the images.
    track : callable
        ``track(epochs, total, description)`` gives the epochs back, with a progress bar around them.
    """
    try:
        from reproduction import resnet
    except ModuleNotFoundError:
        raise ImportError('Training on images needs torch: pip install "ordinalrisk[vision]"') from None
    data, train, held = images.data, images.train, images.held
    recipe = resnet.Recipe(epochs=epochs or images.epochs, weight_decay=images.weight_decay, seed=seed)
    network = resnet.untrained(data.images[train], n_classes, seed)
    for _ in track(
        resnet.fit(network, data.images[train], data.y[train], recipe),
        recipe.epochs,
        f"Training on {len(train):,} images",
    ):
        pass
    return Scores(
        [data.names[row] for row in held],
        data.y[held],
        resnet.logits(network, data.images[held]).astype(np.float64).round(_DIGITS),
        f"{images.task}-trained",
        f"a ResNet-34 trained here on {len(train):,} images ({images.task})",
        trained_here=True,
    )
