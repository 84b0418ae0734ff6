"""JointController: one set for each row that keeps several guarantees."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from ordinalrisk.calibration.row_thresholds import Thresholds
from ordinalrisk.calibration.spec import Spec
from ordinalrisk.calibration.warning_category import CalibrationWarning
from ordinalrisk.composition.joint_guarantee import JointGuarantee, joint_guarantee
from ordinalrisk.composition.joint_sets import joined, sizes_without
from ordinalrisk.composition.parts import (
    Groups,
    Part,
    by_text,
    partitions_of,
    require_joinable,
    require_partitions,
)
from ordinalrisk.controller import RiskController, require_calibrated, require_controller
from ordinalrisk.display.tables import ColumnsByName, Table
from ordinalrisk.display.text_table import TextTable
from ordinalrisk.inputs.arrays import is_dask
from ordinalrisk.inputs.caller import level_of_caller
from ordinalrisk.inputs.device import to_host
from ordinalrisk.inputs.row_index import require_same_rows
from ordinalrisk.losses.kinds import as_loss
from ordinalrisk.prediction.interval_set import IntervalSet
from ordinalrisk.recalibration.applying import recalibrated

_IN_MEMORY = "A JointController needs arrays in memory, not dask collections; compute them first."
_ROWS_LOOKED_AT = 5_000
_PARAMETERS = [field.name for field in fields(Spec)]


class JointController:
    r"""Prediction sets that keep several guarantees at once.

    Each guarantee is a :class:`RiskController` with its loss, its ``alpha`` and its options. All are
    calibrated on the same rows. The joint set reaches as far as the guarantees need: with the sets
    :math:`[l_r, u_r]` of the controllers ``r``,

    .. math:: l = \min_{r \text{ controls the lower end}} l_r, \qquad
              u = \max_{r \text{ controls the upper end}} u_r.

    A controller controls both ends, or with ``side`` one of them. A larger set never loses more, and with
    ``side`` the loss does not depend on the other end. So each guarantee holds for the joint sets as it holds
    for its own.

    Use it for three things:

    - **Several losses**: "at most 10 % of sets miss, and severe misses cost at most 0.02 on average".
    - **Two sides**: ``RiskController(alpha=0.01, side="upper")`` and ``RiskController(alpha=0.1,
      side="lower")``: "at most 1 % of cases are worse than the set says, and at most 10 % are milder".
    - **Overlapping groups**: ``calibrate(..., groups={"hospital": ..., "sex": ...})``: each hospital *and*
      each sex, without crossing them. A row uses the smallest threshold of its groups.

    Parameters
    ----------
    controllers : mapping or sequence of RiskController
        The guarantees. The keys of a mapping name them; otherwise they are numbered from 1.
    growth_loss : IntervalLoss, str or table, optional
        One loss that all sets grow by. By default, the sets of each controller grow as it says. The
        guarantees are the same, and which sets are smaller depends on the losses: compare their sizes on
        rows that you do not calibrate with. If a loss gives some classes no weight, ``"coverage"`` can give
        far smaller sets. With ``delta`` and one ``growth_loss``, all guarantees can hold at once.

    Attributes
    ----------
    parts_ : dict
        The calibrated controllers by name, one for each guarantee and each column of groups.
    classes_ : array
        The labels in order.
    n_rows_ : int
        The number of calibration rows; if the guarantees differ, that of the one with the fewest.

    Notes
    -----
    With the same ``delta``, growth rule, ``growth_loss`` and side in every controller, and without groups and
    classes of their own, all guarantees hold at once with probability ``1 - delta``, without a correction for
    their number. Otherwise each has its confidence by itself; :meth:`guarantee` says which.

    References
    ----------
    Angelopoulos, Bates, Fisch, Lei, Schuster. Conformal Risk Control. ICLR 2024: monotone losses.

    Examples
    --------
    >>> import numpy as np
    >>> import ordinalrisk as orisk
    >>> rng = np.random.default_rng(0)
    >>> proba = rng.dirichlet([1, 2, 4, 2, 1], size=2000)
    >>> y = np.array([rng.choice(5, p=p) for p in proba])
    >>> worse, milder = (RiskController(alpha=a, side=s) for a, s in [("0.01", "upper"), ("0.1", "lower")])
    >>> joint = JointController({"worse": worse, "milder": milder}).calibrate(proba[:1000], y[:1000])
    >>> sets = joint.predict_set(proba[1000:])
    >>> bool((y[1000:] > sets.upper).mean() < 0.02), bool((y[1000:] < sets.lower).mean() < 0.13)
    (True, True)
    """

    def __init__(
        self,
        controllers: Mapping[str, RiskController] | Sequence[RiskController],
        *,
        growth_loss: Any = None,
    ) -> None:
        self.controllers = _named(controllers)
        self.growth_loss = None if growth_loss is None else as_loss(growth_loss)
        for controller in self.controllers.values():
            _asked_spec(controller)

    @classmethod
    def of(cls, parts: Sequence[Part]) -> JointController:
        """Return the controller of calibrated guarantees."""
        return cls({part.name: RiskController.of(part.spec, part.calibration) for part in parts})._use(parts)

    @classmethod
    def join(cls, controllers: Mapping[str, RiskController] | Sequence[RiskController]) -> JointController:
        """Join controllers that are calibrated already, on the same rows or on others of the same population.

        Parameters
        ----------
        controllers : mapping or sequence of RiskController
            Calibrated, with the same classes. A calibration with groups takes its groups from the column
            that it was calibrated with; if it was calibrated on arrays, from the column with the name of its
            guarantee.

        Returns
        -------
        JointController
            The calibrated controller; each guarantee is kept.

        Examples
        --------
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 2] * 20
        >>> hospital, sex = ["A", "B", "B"] * 20, ["f", "m"] * 30
        >>> by_hospital = RiskController(alpha=0.1).calibrate(proba, y, groups=hospital)
        >>> by_sex = RiskController(alpha=0.1).calibrate(proba, y, groups=sex)
        >>> joint = JointController.join({"hospital": by_hospital, "sex": by_sex})
        >>> joint.predict_set([[0.5, 0.4, 0.1]], groups={"hospital": ["A"], "sex": ["m"]})
        IntervalSet of 1 rows, 3 classes, mean size 1
          0  0
        """
        parts = []
        for name, controller in _named(controllers).items():
            require_calibrated(controller)
            columns, grouped = controller.columns_, controller.calibration_.strata.groups is not None
            of_file = None if columns is None else columns.group
            partition = (of_file or name) if grouped else None
            parts.append(Part(name, controller.spec, controller.calibration_, partition))
        return cls.of(parts)

    def calibrate(
        self,
        proba: Any,
        y: Any,
        *,
        groups: Any = None,
        clusters: Any = None,
        sample_weight: Any = None,
        class_ratios: Any = None,
        point_labels: Any = None,
    ) -> JointController:
        """Find the exact threshold of each guarantee on rows with known labels.

        Parameters
        ----------
        proba, y
            As for :meth:`RiskController.calibrate`.
        groups : array-like, mapping or frame, optional
            The group of each row; several columns may overlap, such as ``{"hospital": ..., "sex": ...}``.
            Each guarantee then holds in each group of each column.
        clusters, sample_weight, class_ratios, point_labels
            As for :meth:`RiskController.calibrate`; for all guarantees.

        Returns
        -------
        JointController
            The same controller, calibrated.

        Examples
        --------
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 2] * 20
        >>> groups = {"hospital": ["A", "B", "B"] * 20, "sex": ["f", "m"] * 30}
        >>> joint = JointController([RiskController(alpha=0.1)]).calibrate(proba, y, groups=groups)
        >>> [*joint.parts_]
        ['1, by hospital', '1, by sex']
        """
        if is_dask(proba):
            raise ValueError(_IN_MEMORY)
        partitions = partitions_of(groups)
        require_same_rows(proba=proba, y=y, **partitions)
        others = {"clusters": clusters, "sample_weight": sample_weight, "class_ratios": class_ratios}
        parts = []
        for name, asked in self.controllers.items():
            spec = _asked_spec(asked)
            given = {field: getattr(spec, field) for field in _PARAMETERS}
            if self.growth_loss is not None:
                given["growth_loss"] = None if self.growth_loss == asked.loss else self.growth_loss
            for partition, values in partitions.items() or [(None, None)]:
                controller = RiskController(**given, check=asked.check)
                with _naming(name if not partition else f"{name}, by {partition}"):
                    controller.calibrate(proba, y, groups=values, point_labels=point_labels, **others)
                parts.append(Part(name, controller.spec, controller.calibration_, partition))
        self._use(parts)
        if point_labels is None and all(asked.check for asked in self.controllers.values()):
            self._warn_of_other_starts(proba)
        return self

    def predict_set(
        self,
        proba: Any,
        *,
        groups: Any = None,
        unseen_groups: str = "error",
        sample_weight: Any = None,
        random_state: Any = None,
        point_labels: Any = None,
    ) -> IntervalSet:
        """Predict the set of each row, which keeps every guarantee.

        Parameters
        ----------
        proba
            As for :meth:`RiskController.predict_set`.
        groups : array-like, mapping or frame, optional
            The groups of each row, with the columns of the calibration.
        unseen_groups, sample_weight, random_state, point_labels
            As for :meth:`RiskController.predict_set`.

        Returns
        -------
        IntervalSet
            The set of each row.

        Examples
        --------
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 1] * 20
        >>> both = JointController([RiskController(alpha=0.1), RiskController("divergence", alpha=0.05)])
        >>> both.calibrate(proba, y).predict_set([[0.5, 0.4, 0.1]])
        IntervalSet of 1 rows, 3 classes, mean size 2
          0  0..1
        """
        options = {"unseen_groups": unseen_groups, "sample_weight": sample_weight}
        options |= {"random_state": random_state, "point_labels": point_labels}
        every = self._sets(proba, groups, **options)
        return joined(self._parts, every)

    def guarantee(self) -> JointGuarantee:
        """Return what is guaranteed for new rows; ``print`` gives it in words.

        Returns
        -------
        JointGuarantee
            The guarantee of each part, and whether all hold at once.

        Examples
        --------
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 1] * 20
        >>> both = JointController({"misses": RiskController(alpha=0.1), "far": RiskController("divergence")})
        >>> both.calibrate(proba, y).guarantee().certified
        True
        """
        self._require_calibrated()
        return joint_guarantee(self._parts)

    def binding(self, proba: Any, *, groups: Any = None, **options: Any) -> Binding:
        """Return which guarantee makes the sets as large as they are, and what each would cost alone.

        Parameters
        ----------
        proba, groups, **options
            As for :meth:`predict_set`. No labels are needed.

        Returns
        -------
        Binding
            A table with the mean size of each guarantee's own sets, and the share of rows that would have a
            smaller set without it.

        Examples
        --------
        >>> proba, y = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]] * 20, [0, 1, 1] * 20
        >>> both = JointController({"misses": RiskController(alpha=0.1), "far": RiskController("divergence")})
        >>> both.calibrate(proba, y).binding(proba).to_pandas()["guarantee"].tolist()
        ['misses', 'far']
        """
        given = {"unseen_groups": "error", "sample_weight": None, "random_state": None, "point_labels": None}
        if unknown := [name for name in options if name not in given]:
            raise TypeError(f"binding() got an unexpected keyword argument {unknown[0]!r}")
        every = self._sets(proba, groups, **given | options)
        size = to_host(joined(self._parts, every).size)
        binds = [
            float((to_host(sizes_without(self._parts, every, number)) < size).mean())
            for number in range(len(every))
        ]
        alone = [float(to_host(each.size).mean()) for each in every]
        return Binding([*self.parts_], alone, binds, float(size.mean()))

    def save(self, path: str | PathLike[str], *, key: str | PathLike[str] | None = None) -> None:
        """Write the calibrations to one JSON file, as :meth:`RiskController.save` does.

        Parameters
        ----------
        path : path
            The file to write; an existing file is replaced.
        key : path, optional
            An Ed25519 private key in PEM, to sign the file.

        Examples
        --------
        >>> import tempfile
        >>> joint = JointController([RiskController()]).calibrate([[0.6, 0.4]] * 20, [0] * 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     joint.save(f"{folder}/joint.json")
        """
        self._require_calibrated()
        from ordinalrisk.saving import joint_file

        joint_file.write(self._parts, path, key)

    @classmethod
    def load(cls, path: str | PathLike[str], *, key: str | PathLike[str] | None = None) -> JointController:
        """Load what :meth:`save` wrote; predictions are identical bit for bit.

        Parameters
        ----------
        path : path
            The file to read.
        key : path, optional
            The Ed25519 public key in PEM; the signature is verified before anything in the file is used.

        Returns
        -------
        JointController
            The calibrated controller.

        Examples
        --------
        >>> import tempfile
        >>> joint = JointController([RiskController()]).calibrate([[0.6, 0.4]] * 20, [0] * 20)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     joint.save(f"{folder}/joint.json")
        ...     JointController.load(f"{folder}/joint.json").n_rows_
        20
        """
        from ordinalrisk.saving import joint_file

        return cls.of(joint_file.read(path, key))

    @property
    def calibrated_parts(self) -> tuple[Part, ...]:
        self._require_calibrated()
        return self._parts

    def _warn_of_other_starts(self, proba: Any) -> None:
        """Warn if sets start at labels so far apart that joint sets are wide, whatever ``alpha`` is."""
        starts, alone = [], []
        for part in self._parts:
            matrix = recalibrated(proba, part.calibration.recalibration)[:_ROWS_LOOKED_AT]
            first, _ = part.spec.growth.intervals(matrix, part.calibration.costs, math.inf, None)
            starts.append(IntervalSet.of(first, first, self.classes_))
            alone.append(float(to_host(joined([part], starts[-1:]).size).mean()))
        least = float(to_host(joined(self._parts, starts).size).mean())
        if least - max(alone) > (len(self.classes_) - 1) / 3:
            warnings.warn(
                "The guarantees start their sets at labels far apart, so joint sets have at least "
                f"{least:.3g} labels on average, whatever alpha is. growth_loss='coverage' lets all start at "
                "the same label; the guarantees are the same.",
                CalibrationWarning,
                stacklevel=level_of_caller(),
            )

    def _use(self, parts: Sequence[Part]) -> JointController:
        require_joinable(parts)
        self._parts = tuple(parts)
        self.parts_ = {part.full_name: RiskController.of(part.spec, part.calibration) for part in parts}
        self.classes_ = parts[0].calibration.classes
        self.n_rows_ = min(part.calibration.strata.n_rows for part in parts)
        return self

    def _sets(self, proba: Any, groups: Any, **options: Any) -> list[IntervalSet]:
        """Predict the sets of each part."""
        self._require_calibrated()
        if is_dask(proba):
            raise ValueError(_IN_MEMORY)
        columns = partitions_of(groups)
        self._require_options(columns, options["sample_weight"], options["random_state"])
        require_same_rows(proba=proba, **columns)
        found = []
        for part, controller in zip(self._parts, self.parts_.values(), strict=True):
            found.append(
                controller.predict_set(
                    proba,
                    groups=part.groups_of(columns),
                    unseen_groups=options["unseen_groups"],
                    sample_weight=options["sample_weight"] if part.weighs_rows else None,
                    random_state=options["random_state"] if part.spec.randomize else None,
                    point_labels=options["point_labels"],
                )
            )
        return found

    def _require_options(self, columns: Groups, sample_weight: Any, random_state: Any) -> None:
        """Raise an error if an option is missing, or if no guarantee takes it."""
        require_partitions(columns, [part.partition for part in self._parts])
        randomized = any(part.spec.randomize for part in self._parts)
        Thresholds.require("random_state", random_state, randomized)
        weighted = any(part.weighs_rows for part in self._parts)
        Thresholds.require("sample_weight", sample_weight, weighted)

    def _require_calibrated(self) -> None:
        if not hasattr(self, "_parts"):
            from sklearn.exceptions import NotFittedError

            raise NotFittedError(
                "This JointController is not calibrated yet; call calibrate(proba, y) first."
            )

    def __repr__(self) -> str:
        named = ", ".join(
            f"{name}: {each!r}" for name, each in getattr(self, "parts_", self.controllers).items()
        )
        return f"JointController({named})"


@dataclass(frozen=True)
class Binding(Table):
    """Which guarantee makes joint sets as large as they are.

    Attributes
    ----------
    guarantees : list
        The names.
    sizes_alone : list
        The mean size of the sets of each guarantee alone.
    binds : list
        The share of rows that would have a smaller set without it.
    size : float
        The mean size of the joint sets.
    """

    guarantees: list[str]
    sizes_alone: list[float]
    binds: list[float]
    size: float

    def _columns(self) -> ColumnsByName:
        return {"guarantee": self.guarantees, "size_alone": self.sizes_alone, "binds": self.binds}

    def _words(self) -> str:
        return f"The joint sets have {self.size:.4g} labels on average."

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            (name, f"{size:.4g}", f"{share:.3f}")
            for name, size, share in zip(self.guarantees, self.sizes_alone, self.binds, strict=True)
        ]
        table = TextTable("", ("guarantee", "size alone", "binds"), rows).text()
        return f"{table}\n{self._words()}"


def _named(controllers: Any) -> dict[str, RiskController]:
    if isinstance(controllers, RiskController) or not isinstance(controllers, Mapping | Sequence):
        raise ValueError(
            "controllers must be a mapping or a sequence of RiskControllers; got a "
            f"{type(controllers).__name__}."
        )
    pairs = controllers if isinstance(controllers, Mapping) else dict(enumerate(controllers, 1))
    named = by_text(pairs, "Two guarantees are")
    if not named:
        raise ValueError("controllers is empty; give at least one RiskController.")
    for controller in named.values():
        require_controller(controller)
    return named


def _asked_spec(controller: RiskController) -> Spec:
    """Return the parameters to calibrate with; none of them may come from rows of another calibration."""
    if getattr(controller, "recalibrator_", None) or getattr(controller, "growth_sizes_", None):
        raise ValueError(
            "A controller has learned its map or its growth rule from rows that its calibration set apart; "
            "calibrating on these would void the guarantee. Join the calibrated controllers with "
            "JointController.join, or give RiskControllers with recalibration= and growth=, learned on other "
            "rows."
        )
    controller.spec.require_growth()
    return controller.spec


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Name the guarantee in warnings about it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for each in caught:
        warnings.warn(f"{name}: {each.message}", each.category, stacklevel=1 + level_of_caller())
