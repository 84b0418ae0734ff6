"""Labelled images in memory, and the decoding that every image loader shares.

An image file that can't be decoded is left out and recorded with its name: one broken file among many
thousands neither ends the loading nor goes missing in silence. The same holds for every other file that a
loader leaves out.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Track = Callable[[Sequence[str]], Iterable[str]]
"""Passes file names on one by one; a progress bar may count them."""

SUFFIXES = (".jpg", ".jpeg", ".png")

_FORMATS = ("JPEG", "PNG")
_THREADS = 4
_NAMED = 3
_THUMBNAIL = 16
_CORRELATION_OF_COPIES = 0.98
_ROWS_AT_ONCE = 1024
# What Pillow's decoders and zip members raise on broken files; OSError holds UnidentifiedImageError.
_BROKEN = (
    OSError,
    EOFError,
    RuntimeError,
    SyntaxError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, eq=False)
class ImageData:
    """Labelled images of one size.

    Parameters
    ----------
    images : uint8 array of shape (n, size, size, 3)
        RGB pixels.
    y : int array of shape (n,)
        Labels ``0 .. K-1``.
    names : list of str
        An identifier of each image.
    groups : int array of shape (n,)
        Images of equal group belong together: no split may part them.
    captions : list of str
        A few words to write under each image.
    skipped : mapping
        The names of the files that were left out, by reason.

    Examples
    --------
    >>> data = ImageData(
    ...     images=np.zeros((2, 8, 8, 3), np.uint8),
    ...     y=np.array([0, 3]),
    ...     names=["left", "right"],
    ...     groups=np.array([0, 0]),
    ...     captions=["No DR", "Severe"],
    ...     skipped={"unreadable": ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]},
    ... )
    >>> data.summary
    '2 images; left out: 4 unreadable (a.jpg, b.jpg, c.jpg, ...)'
    """

    images: NDArray[np.uint8]
    y: NDArray[np.int64]
    names: list[str]
    groups: NDArray[np.int64]
    captions: list[str]
    skipped: Mapping[str, list[str]]

    def __len__(self) -> int:
        return len(self.y)

    @property
    def summary(self) -> str:
        """How many images there are, how many files were left out and why, in one sentence."""
        count = f"{len(self):,} image{'' if len(self) == 1 else 's'}"
        left_out = [
            f"{len(files):,} {reason} ({_some(files)})" for reason, files in self.skipped.items() if files
        ]
        return f"{count}; left out: {', '.join(left_out)}" if left_out else count


class ImageFile(NamedTuple):
    """A file name and the way to its bytes."""

    name: str
    read: Callable[[], bytes]


class Decoded(NamedTuple):
    """Pixels of the readable files, in the order of the files.

    ``rows`` are the positions of the readable ones among the files, ``sha256`` the digests of their bytes,
    ``unreadable`` the names of the others.
    """

    images: NDArray[np.uint8]
    rows: NDArray[np.int64]
    sha256: list[str]
    unreadable: list[str]


def is_image_name(name: str) -> bool:
    """Whether a file name ends like an image; hidden files, such as resource forks, don't count.

    Examples
    --------
    >>> [is_image_name(name) for name in ("a.JPG", "b.png", "._a.jpg", "README.md")]
    [True, True, False, False]
    """
    return name.lower().endswith(SUFFIXES) and not name.startswith(".")


def decode_files(files: Sequence[ImageFile], image_size: int, track: Track = iter) -> Decoded:
    """Decode JPEG and PNG files to squares of one size, a few at a time.

    The largest centred square of each picture is kept, so that nothing is stretched.

    Parameters
    ----------
    files : sequence of ImageFile
        What to decode.
    image_size : int
        Height and width in pixels.
    track : callable
        Wraps the file names while they are decoded, for a progress bar.
    """
    if image_size < 1:
        raise ValueError(f"image_size must be at least 1 pixel; got {image_size}.")
    require_pillow()
    images = np.empty((len(files), image_size, image_size, 3), np.uint8)
    digests: list[str | None] = []
    with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1)) as pool:
        decoding = pool.map(_decode_into, images, files)
        for _, digest in zip(track([file.name for file in files]), decoding, strict=True):
            digests.append(digest)
    rows = np.array([row for row, digest in enumerate(digests) if digest is not None], np.int64)
    return Decoded(
        images if len(rows) == len(files) else images[rows],
        rows,
        [digest for digest in digests if digest is not None],
        [file.name for file, digest in zip(files, digests, strict=True) if digest is None],
    )


def groups_of_copies(images: NDArray[np.uint8], sha256: Sequence[str]) -> NDArray[np.int64]:
    """A group for each image; copies share one, also copies that were encoded or toned a little otherwise.

    Two images count as copies if their grey thumbnails correlate by more than 0.98. On faces this tells
    copies from look-alikes: hardly a pair lies between 0.97 and 0.99.

    Parameters
    ----------
    images : uint8 array of shape (n, size, size, 3)
        RGB pixels.
    sha256 : sequence of str
        Digests of the files; equal ones are copies whatever their thumbnails are.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    thumbnails = np.concatenate([_thumbnails(part) for part in _parts(images)])
    _, first = np.unique(sha256, return_inverse=True)
    pairs = [np.stack([np.arange(len(images)), np.unique(first, return_index=True)[1][first]])]
    for start in range(0, len(images), _ROWS_AT_ONCE):
        alike = thumbnails[start : start + _ROWS_AT_ONCE] @ thumbnails[start:].T > _CORRELATION_OF_COPIES
        pairs.append(np.stack(np.nonzero(alike)) + start)
    linked = np.concatenate(pairs, axis=1)
    graph = coo_array((np.ones(linked.shape[1], bool), tuple(linked)), shape=(len(images), len(images)))
    group: NDArray[np.int64] = connected_components(graph, directed=False)[1].astype(np.int64)
    return group


def require_pillow() -> None:
    """Say what to install where Pillow is missing."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        raise ImportError('Reading images needs Pillow: pip install "ordinalrisk[vision]"') from None


def _decode_into(pixels: NDArray[np.uint8], file: ImageFile) -> str | None:
    """The SHA-256 of the file's bytes, None if it is no readable image."""
    from PIL import Image, ImageOps

    size = pixels.shape[:2]
    try:
        content = file.read()
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            # A large JPEG is decoded at a fraction of its size; twice the target leaves the resize to smooth.
            image.draft("RGB", (2 * size[0], 2 * size[1]))
            square = ImageOps.fit(image.convert("RGB"), size, Image.Resampling.BILINEAR)
    except (*_BROKEN, Image.DecompressionBombError, Image.DecompressionBombWarning):
        return None
    pixels[:] = np.asarray(square)
    return hashlib.sha256(content).hexdigest()


def _parts(images: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    for start in range(0, len(images), _ROWS_AT_ONCE):
        yield images[start : start + _ROWS_AT_ONCE]


def _thumbnails(images: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Small grey versions as vectors of mean 0 and length 1; those of one colour are 0."""
    size = images.shape[1]
    edges = np.unique(np.arange(_THUMBNAIL) * size // _THUMBNAIL)
    grey = images.sum(axis=3, dtype=np.float32)
    small = np.add.reduceat(np.add.reduceat(grey, edges, axis=1), edges, axis=2)
    vectors = small.reshape(len(images), -1)
    vectors -= vectors.mean(axis=1, keepdims=True)
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    length[length <= 1] = np.inf
    unit: NDArray[np.float32] = vectors / length
    return unit


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], "..."] if len(names) > _NAMED else names)
