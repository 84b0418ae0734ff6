"""A folder with one output file for each input file, and a list of them that is written last."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ordinalrisk.files.atomic import replacing, temporary_names
from ordinalrisk.files.formats import FileError, compression_of, format_by_name, is_written, renamed
from ordinalrisk.files.patterns import identity_of
from ordinalrisk.files.places import join, located, name_of, names_in, remove

MANIFEST = "_ordinalrisk.json"
"""The list of the files. It is written when all of them are."""


@dataclass(frozen=True)
class OutputFolder:
    """A folder for the output of several files.

    The output of an earlier run for the same files is replaced, so that a run can be repeated. Other files in
    the folder are an error, because a reader would take them for part of the output.
    """

    place: str
    names: Sequence[str]

    @property
    def files(self) -> list[str]:
        return [join(self.place, name) for name in self.names]

    def make_ready(self, inputs: Sequence[str]) -> None:
        """Raise an error if the folder has other files; remove the list until all files are written."""
        target = located(self.place)
        if target.exists() and not target.is_dir():
            raise FileError(f"{self.place}: is a file; with a cluster or several files, `out` is a folder.")
        written = set(map(identity_of, self.files))
        for place in inputs:
            if identity_of(place) in written:
                raise FileError(f"{place}: is read, and would be lost; choose another folder for `out`.")
        for name in names_in(self.place):
            if name not in self.names and not name.startswith((".", "_")):
                raise FileError(
                    f"{join(self.place, name)}: is there already, and is not an output of these files; "
                    "choose an empty folder."
                )
        if isinstance(target, Path):
            target.mkdir(parents=True, exist_ok=True)
        remove(join(self.place, MANIFEST))
        self.tidy_up()

    def tidy_up(self) -> None:
        """Remove temporary files of lost workers."""
        for name in temporary_names(names_in(self.place), self.names):
            remove(join(self.place, name))

    def finish(self, about: Mapping[str, Any], n_rows: Sequence[int]) -> None:
        """Write the list, unless a worker on another machine wrote to a folder of its own."""
        self.tidy_up()
        if missing := sorted({*self.names}.difference(names_in(self.place))):
            raise FileError(
                f"{join(self.place, missing[0])}: was written by a worker, but is not here; choose a folder "
                "for `out` that all machines share."
            )
        listed = [{"name": name, "rows": rows} for name, rows in zip(self.names, n_rows, strict=True)]
        document = {**about, "rows": sum(n_rows), "files": listed}
        with replacing(join(self.place, MANIFEST)) as temporary:
            temporary.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def output_names(places: Sequence[str], target_format: str | None, given_format: str | None) -> list[str]:
    """Return the name of each file's output: its own, with the ending of the target format.

    Examples
    --------
    >>> output_names(["data/a.csv.gz", "s3://bucket/b.parquet"], "parquet", None)
    ['a.parquet', 'b.parquet']
    """
    place_of: dict[str, str] = {}
    for place in places:
        name = name_of(place)
        if new_format := target_format or (given_format if format_by_name(name) is None else None):
            name = renamed(name, new_format)
        kind = format_by_name(name)
        if kind is None:
            raise FileError(f"{place}: can't infer the format from this name; give `output_format`.")
        if not is_written(kind):
            raise FileError(f"{place}: Excel files are read, but not written; give `output_format`.")
        if compression_of(name) and kind in ("parquet", "arrow"):
            raise FileError(
                f"{place}: would be written to {name}, but {kind} is not compressed as a whole; give "
                f"`output_format='{kind}'`."
            )
        if name in place_of:
            raise FileError(
                f"{place}: would be written to {name}, like {place_of[name]}; give the files different names."
            )
        place_of[name] = place
    return [*place_of]
