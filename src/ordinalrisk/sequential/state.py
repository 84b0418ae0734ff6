"""Bases of runs that are saved and resumed, and of tests that files of rows bet on."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Any, ClassVar, Generic, Self, TypeVar

from ordinalrisk.inputs.labels import Classes
from ordinalrisk.inputs.numbers import as_fraction, is_whole, to_json
from ordinalrisk.losses.cost_table import CostTable
from ordinalrisk.saving.document_with_digests import Document, FilePath, require
from ordinalrisk.saving.run_documents import WatchedFile
from ordinalrisk.saving.shared_fields import saved_names
from ordinalrisk.sequential.wealth import Bets


class Run:
    """The rows so far and their total loss, in whole parts of a rational."""

    def __init__(self, classes: Classes, costs: CostTable, part: Fraction) -> None:
        self.classes, self.costs, self.part = classes, costs, part
        self.n_rows = 0
        self.lost: Any = 0  # a whole number of parts; a rational where clusters have means

    @property
    def n_settled(self) -> int:
        """The number of rows with a known loss."""
        return self.n_rows

    @property
    def risk(self) -> float:
        """The mean loss of the settled rows; NaN if there are none."""
        return float(self.total_loss / self.n_settled) if self.n_settled else math.nan

    @property
    def total_loss(self) -> Fraction:
        return Fraction(self.lost) * self.part

    def restore_total(self, saved: str, whole: bool = True) -> None:
        """Set the total loss of so many settled rows, or refuse it; means of clusters are not whole."""
        total = as_fraction(saved)
        require(
            not whole or (total / self.costs.unit).denominator == 1,
            "must be a whole number of units of the loss",
        )
        require(
            total <= self.n_settled * self.costs.bound, "must be at most the largest loss of so many rows"
        )
        self.lost = self.parts_of(total)

    def parts_of(self, loss: Fraction) -> int | Fraction:
        """Return a loss in parts, as a whole number if it is one."""
        parts = loss / self.part
        return int(parts) if parts.denominator == 1 else parts


R = TypeVar("R", bound=Run)


class Resumable(ABC):
    """A state that can be saved and resumed."""

    _document: ClassVar[type[Document]]

    def save(self, path: FilePath) -> None:
        """Write the state to a JSON file, whole or not at all.

        Parameters
        ----------
        path : path
            Path of the file. An existing file is replaced.

        Examples
        --------
        A run with pending rows:

        >>> import tempfile
        >>> from ordinalrisk import OnlineRiskController
        >>> controller = OnlineRiskController(alpha=0.1)
        >>> sets = controller.predict_set([[0.1, 0.2, 0.7]] * 3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     controller.save(f"{folder}/run.json")
        ...     same = OnlineRiskController.load(f"{folder}/run.json")
        >>> same.update([2, 0, 2]).threshold_ == controller.update([2, 0, 2]).threshold_, same.n_rows_
        (True, 3)
        """
        self._document.write(self._values(), path)

    @classmethod
    def load(cls, path: FilePath) -> Self:
        """Read what :meth:`save` wrote, and go on as if never interrupted, bit for bit.

        Parameters
        ----------
        path : path
            Path of the file.

        Returns
        -------
        OnlineRiskController, RiskMonitor or ScoreDrift
            In the state that was saved.

        Raises
        ------
        ValueError
            If the file was cut, edited or written by another schema; the message names the field.

        Examples
        --------
        >>> import tempfile
        >>> from ordinalrisk import RiskMonitor
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     RiskMonitor(alpha=0.1, classes=[0, 1, 2]).save(f"{folder}/monitor.json")
        ...     monitor = RiskMonitor.load(f"{folder}/monitor.json")
        >>> monitor.alarm_
        False
        """
        return cls._restored(path, cls._document.read(path))

    @abstractmethod
    def _values(self) -> dict[str, Any]:
        """Return the fields of the document."""

    @classmethod
    @abstractmethod
    def _restored(cls, path: FilePath, saved: Any) -> Self:
        """Return the state of a document, or refuse the field that is wrong."""


class SequentialState(Resumable, Generic[R]):
    """Parameters that stay fixed while rows come in, and a run that begins once the classes are known."""

    loss: Any
    alpha: Any
    classes: Any
    _run: R | None
    _parameters: ClassVar[tuple[str, ...]]
    _first_rows: ClassVar[str]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._parameters and name in self.__dict__:
            raise AttributeError(f"{name} can't change; make a new {type(self).__name__}.")
        super().__setattr__(name, value)

    @property
    def n_rows_(self) -> int:
        return 0 if self._run is None else self._run.n_rows

    @property
    def risk_(self) -> float:
        return math.nan if self._run is None else self._run.risk

    @property
    def classes_(self) -> Classes:
        return self._begun("classes_").classes

    def _values(self) -> dict[str, Any]:
        run = self._begun("save")
        shared = {
            "classes": saved_names(run.classes.tolist()),
            "loss": self.loss.to_dict(),
            "alpha": to_json(self.alpha),
            "n_rows": run.n_rows,
            "total_loss": str(run.total_loss),
        }
        return shared | self._values_of(run)

    @abstractmethod
    def _values_of(self, run: R) -> dict[str, Any]:
        """Return the other fields of the document of a run."""

    def _begun(self, wanted: str) -> R:
        if self._run is None:
            raise AttributeError(
                f"{wanted} needs to know the classes; give classes=, or the first {self._first_rows}."
            )
        return self._run


class Watch(Resumable):
    """A test that rows bet on one after the other, and the files that they came from."""

    delta: Any
    files_: list[WatchedFile]

    @property
    @abstractmethod
    def _bets(self) -> Bets | None:
        """The bets, if they have begun."""

    @property
    def n_rows_(self) -> int:
        return 0 if self._bets is None else self._bets.n_rows

    @property
    def alarm_(self) -> bool:
        return self.alarm_row_ is not None

    @property
    def alarm_row_(self) -> int | None:
        return None if self._bets is None else self._bets.alarm_row

    @property
    def rise_row_(self) -> int | None:
        return None if self._bets is None else self._bets.rise_row

    @property
    def evidence_(self) -> float:
        return 1.0 if self._bets is None else self._bets.evidence

    @property
    def p_value_(self) -> float:
        return 1.0 if self._bets is None else 1 / self._bets.peak

    def remember(self, fingerprint: str, n_rows: int, *, again: bool = False) -> None:
        """Keep the fingerprint of rows that are watched, and refuse rows that were watched before.

        The commands ``ordinalrisk monitor`` and ``ordinalrisk drift`` do so for each file. Call it before
        ``update``.

        Parameters
        ----------
        fingerprint : str
            64 hexadecimal digits, such as a SHA-256 of the file.
        n_rows : int
            The number of rows.
        again : bool
            Accept rows that were watched before.

        Examples
        --------
        >>> import hashlib
        >>> from ordinalrisk import RiskMonitor
        >>> monitor = RiskMonitor(alpha=0.1, classes=[0, 1, 2])
        >>> january = hashlib.sha256(b"the rows of January").hexdigest()
        >>> monitor.remember(january, 3)
        >>> monitor.remember(january, 3)
        Traceback (most recent call last):
        ...
        ValueError: These 3 rows were watched before, and would count twice; ...
        """
        if not is_whole(n_rows) or n_rows < 1:
            raise ValueError(f"n_rows must be the number of rows, at least 1; got {n_rows!r}.")
        if not isinstance(fingerprint, str) or not re.fullmatch("[0-9a-f]{64}", fingerprint):
            raise ValueError(f"fingerprint must be 64 hexadecimal digits; got {fingerprint!r}.")
        if (n_rows, fingerprint) in [(file.n_rows, file.blake3) for file in self.files_] and not again:
            raise ValueError(
                f"These {n_rows:,} rows were watched before, and would count twice; pass again=True if they "
                "are other rows with equal values."
            )
        self.files_.append(WatchedFile(int(n_rows), fingerprint))
