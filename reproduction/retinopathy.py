"""Photographs of retinas, graded by diabetic retinopathy: the Kaggle competition's and RetinaMNIST's.

Neither is part of this package.
"""

from __future__ import annotations

import csv
import re
import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray

from reproduction.images import ImageData, ImageFile, Track, decode_files, is_image_name, require_pillow

GRADES = ["No DR", "Mild", "Moderate", "Severe", "Proliferative"]
"""The grades of diabetic retinopathy in order."""

_LABELS = "trainLabels.csv"
_LEVELS = ("0", "1", "2", "3", "4")
_EYE = re.compile(r"_(left|right)$")
_SPLITS = ("train", "val", "test")


def load_kaggle_retinopathy(
    folder: str | PathLike[str], image_size: int = 128, *, track: Track = iter
) -> ImageData:
    r"""The labelled images of the "Diabetic Retinopathy Detection" competition (paper, Section 3.3).

    Parameters
    ----------
    folder : path
        Holds ``trainLabels.csv`` with the columns ``image`` and ``level``, and the images
        ``[patient]_left.jpeg`` and ``[patient]_right.jpeg``, themselves or in subfolders.
    image_size : int
        Height and width to resize to, in pixels.
    track : callable
        Wraps the file names while they are decoded, for a progress bar.

    Returns
    -------
    ImageData
        In the order of the image names. Label ``k`` is ``GRADES[k]``; the eyes of a patient share a group.

    References
    ----------
    Kaggle, EyePACS. Diabetic Retinopathy Detection. 2015.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trainLabels.csv").write_text("image,level\n10_left,0\n10_right,2\n")
    ...     for name in ("10_left", "10_right"):
    ...         Image.new("RGB", (40, 40)).save(Path(folder, f"{name}.jpeg"))
    ...     data = load_kaggle_retinopathy(folder, image_size=8)
    >>> data.images.shape, data.y.tolist(), data.groups.tolist()
    ((2, 8, 8, 3), [0, 2], [0, 0])
    """
    folder = Path(folder)
    grades = _kaggle_grades(folder / _LABELS)
    skipped: dict[str, list[str]] = {"without an image file": [], "without a label": [], "repeated": []}
    found: dict[str, ImageFile] = {}
    for path in sorted(path for path in folder.rglob("*") if is_image_name(path.name) and path.is_file()):
        if path.stem not in grades:
            skipped["without a label"].append(path.name)
        elif path.stem in found:
            skipped["repeated"].append(path.relative_to(folder).as_posix())
        else:
            found[path.stem] = ImageFile(path.name, path.read_bytes)
    skipped["without an image file"] = sorted(grades.keys() - found.keys())
    if not found:
        raise ValueError(
            f"{folder} has no labelled image: {_LABELS} names {len(grades):,} images, and none of them is "
            "there as .jpeg, .jpg or .png."
        )
    names = sorted(found)
    decoded = decode_files([found[name] for name in names], image_size, track)
    if not len(decoded.rows):
        raise ValueError(f"None of the {len(names):,} labelled images in {folder} can be read.")
    skipped["unreadable"] = decoded.unreadable
    names = [names[row] for row in decoded.rows]
    y = np.array([grades[name] for name in names], np.int64)
    patients = [_EYE.sub("", name) for name in names]
    return ImageData(
        images=decoded.images,
        y=y,
        names=names,
        groups=np.unique(patients, return_inverse=True)[1].astype(np.int64),
        captions=[GRADES[grade] for grade in y],
        skipped=skipped,
    )


class RetinaMNIST(NamedTuple):
    """The official splits.

    Attributes
    ----------
    train, val, test : ImageData
        The images to train with, to choose with and to test with.
    """

    train: ImageData
    val: ImageData
    test: ImageData


def load_retinamnist(path: str | PathLike[str], image_size: int | None = None) -> RetinaMNIST:
    """RetinaMNIST: 1,600 retinas of 28 x 28 pixels.

    Parameters
    ----------
    path : path
        The file ``retinamnist.npz``.
    image_size : int, optional
        Height and width to resize to, in pixels; None leaves the images as they are.

    Returns
    -------
    RetinaMNIST
        Label ``k`` is ``GRADES[k]``. The patients are not known: each image is a group of its own.

    References
    ----------
    Yang et al. MedMNIST v2 - A large-scale lightweight benchmark for 2D and 3D biomedical image
    classification. Scientific Data 2023.

    Examples
    --------
    >>> import tempfile
    >>> arrays = {}
    >>> for split in ("train", "val", "test"):
    ...     arrays[f"{split}_images"] = np.zeros((2, 28, 28, 3), np.uint8)
    ...     arrays[f"{split}_labels"] = np.array([[0], [4]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/retinamnist.npz", **arrays)
    ...     data = load_retinamnist(f"{folder}/retinamnist.npz")
    >>> data.train.images.shape, data.test.captions
    ((2, 28, 28, 3), ['No DR', 'Proliferative'])
    """
    arrays = _npz_arrays(
        Path(path), [f"{split}_{part}" for split in _SPLITS for part in ("images", "labels")]
    )
    first, splits = 0, []
    for split in _SPLITS:
        images, labels = arrays[f"{split}_images"], arrays[f"{split}_labels"]
        if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (images.shape[1],) * 2 + (3,):
            raise ValueError(
                f"{path}: {split}_images must be uint8 of shape (n, size, size, 3); got {images.dtype} of "
                f"shape {images.shape}."
            )
        y = labels.reshape(-1).astype(np.int64)
        if len(y) != len(images) or not np.isin(y, range(len(GRADES))).all():
            raise ValueError(
                f"{path}: {split}_labels must have a grade 0 to 4 for each of {len(images)} images."
            )
        splits.append(
            ImageData(
                images=images if image_size is None else _resized(images, image_size),
                y=y,
                names=[f"{split}_{i}" for i in range(len(y))],
                groups=np.arange(first, first + len(y)),
                captions=[GRADES[grade] for grade in y],
                skipped={},
            )
        )
        first += len(y)
    return RetinaMNIST(*splits)


def _kaggle_grades(path: Path) -> dict[str, int]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; it must list the grade of each image.")
    grades: dict[str, int] = {}
    try:
        rows = list(csv.reader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} can't be read as CSV ({error}).") from None
    header = rows[0] if rows else []
    if not {"image", "level"} <= set(header):
        raise ValueError(
            f"{path} must have the columns image and level; it has {', '.join(header) or 'none'}."
        )
    for number, row in enumerate(rows[1:], start=2):
        if not row:
            continue
        line = dict(zip(header, row, strict=False))
        name, level = line.get("image", ""), line.get("level", "")
        if level not in _LEVELS:
            raise ValueError(f"{path}, line {number}: level must be 0 to 4; got {level!r}.")
        if name in grades:
            raise ValueError(f"{path}, line {number}: image {name!r} is listed twice.")
        grades[name] = _LEVELS.index(level)
    return grades


def _npz_arrays(path: Path, keys: list[str]) -> dict[str, NDArray[Any]]:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there; give the file retinamnist.npz.")
    try:
        with path.open("rb") as file, NpzFile(file, allow_pickle=False) as archive:
            missing = [key for key in keys if key not in archive]
            arrays = {key: archive[key] for key in keys if key not in missing}
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error):
        raise ValueError(f"{path} is not a whole npz file of arrays.") from None
    if missing:
        raise ValueError(f"{path} lacks the arrays {', '.join(missing)}.")
    return arrays


def _resized(images: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    if size < 1:
        raise ValueError(f"image_size must be at least 1 pixel; got {size}.")
    require_pillow()
    from PIL import Image

    bilinear = Image.Resampling.BILINEAR
    return np.stack([np.asarray(Image.fromarray(image).resize((size, size), bilinear)) for image in images])
