"""UTKFace: photographs of faces, named by the age of the person.

The images are not part of this package. Their owners give them for non-commercial research.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path, PurePosixPath

import numpy as np

from reproduction.images import ImageData, ImageFile, Track, decode_files, groups_of_copies, is_image_name

AGE_GROUPS = [f"{age}-{age + 4}" for age in range(0, 100, 5)]
"""The twenty age groups in order, of five years each."""

_NAME = re.compile(r"(?P<age>[0-9]+)_[01]_[0-4]_[0-9]+.*\.(jpe?g|png)", re.IGNORECASE | re.DOTALL)
_YEARS_PER_GROUP = 5
_TOO_OLD = 100


def load_utkface(path: str | PathLike[str], image_size: int = 128, *, track: Track = iter) -> ImageData:
    """Faces of people below 100, labelled by age in groups of five years (paper, Section 3.2).

    Parameters
    ----------
    path : path
        A folder, searched with all its subfolders, or a zip file, of images under their original names
        ``[age]_[gender]_[race]_[date].jpg``. Files that miss a field are left out.
    image_size : int
        Height and width to resize to, in pixels.
    track : callable
        Wraps the file names while they are decoded, for a progress bar.

    Returns
    -------
    ImageData
        In the order of the file names. Label ``k`` is ``AGE_GROUPS[k]``. Copies of an image, of which the
        original set has hundreds, share a group.

    References
    ----------
    Zhang, Song, Qi. Age Progression/Regression by Conditional Adversarial Autoencoder. CVPR 2017.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (40, 40)).save(Path(folder, "23_0_1_20170109.jpg"))
    ...     data = load_utkface(folder, image_size=8)
    >>> data.images.shape, AGE_GROUPS[data.y[0]]
    ((1, 8, 8, 3), '20-24')
    """
    with _all_files(Path(path)) as files:
        known: list[tuple[int, ImageFile]] = []
        skipped: dict[str, list[str]] = {"aged 100 or more": [], "misnamed": [], "unreadable": []}
        for file in files:
            name = _NAME.fullmatch(file.name)
            if name is None:
                if is_image_name(file.name):
                    skipped["misnamed"].append(file.name)
            elif int(name["age"]) >= _TOO_OLD:
                skipped["aged 100 or more"].append(file.name)
            else:
                known.append((int(name["age"]), file))
        if not known:
            raise ValueError(
                f"{path} has no image of known age: of {len(files):,} files, none is named "
                "[age]_[gender]_[race]_[date].jpg with an age below 100, a gender 0 or 1 and a race 0 to 4."
            )
        decoded = decode_files([file for _, file in known], image_size, track)
    if not len(decoded.rows):
        raise ValueError(f"None of the {len(known):,} images of known age in {path} can be read.")
    skipped["unreadable"] = decoded.unreadable
    ages = np.array([age for age, _ in known])[decoded.rows]
    return ImageData(
        images=decoded.images,
        y=ages // _YEARS_PER_GROUP,
        # A digest of its name names the image, in any resolution, without the age, gender and race in it.
        names=[hashlib.sha256(known[row][1].name.encode()).hexdigest()[:16] for row in decoded.rows],
        # Many copies differ in the age of their names; parted, they would show a model its test images.
        groups=groups_of_copies(decoded.images, decoded.sha256),
        captions=[f"age {age}" for age in ages],
        skipped=skipped,
    )


@contextmanager
def _all_files(path: Path) -> Iterator[list[ImageFile]]:
    """Every file of a folder or zip, by name, the same order from either."""
    if path.is_dir():
        inside = {PurePosixPath(p.relative_to(path).as_posix()): p for p in path.rglob("*") if p.is_file()}
        yield [ImageFile(name.name, inside[name].read_bytes) for name in _in_order(inside)]
    elif not path.exists():
        raise FileNotFoundError(
            f"{path} is not there; give the folder or the zip file of the UTKFace images."
        )
    else:
        with _opened_zip(path) as archive:
            members = {PurePosixPath(m.filename): m for m in archive.infolist() if not m.is_dir()}
            yield [ImageFile(name.name, partial(archive.read, members[name])) for name in _in_order(members)]


def _in_order(names: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    return sorted(
        (name for name in names if "__MACOSX" not in name.parts), key=lambda name: (name.name, name)
    )


def _opened_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        with path.open("rb") as file:
            begins_like_one = file.read(2) == b"PK"
    if begins_like_one:
        raise ValueError(f"{path} is a damaged zip file; copy or download it again.")
    raise ValueError(f"{path} is neither a folder nor a zip file.")
