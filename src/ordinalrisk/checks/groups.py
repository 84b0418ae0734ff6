"""Groups that are the true classes under another name, which new rows can't have."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ordinalrisk.checks.evidence import FALSE_ALARMS
from ordinalrisk.inputs.batch import Batch


def group_warnings(rows: Batch) -> Iterator[str]:
    r"""Warn if each group has the rows of one class, and no other group has any, unless that can be chance.

    If groups have nothing to do with the classes, the ``K`` classes found among ``n`` rows agree with the
    groups with probability at most :math:`K! \prod_k n_k! / n!`.
    """
    if rows.groups is None:
        return
    pairs = {*zip(rows.groups, rows.labels.tolist(), strict=True)}
    n_groups, n_classes = len({group for group, _ in pairs}), len({label for _, label in pairs})
    if not len(pairs) == n_groups == n_classes > 1:
        return
    counts = np.bincount(rows.labels).tolist()
    chance = math.lgamma(n_classes + 1) - math.lgamma(len(rows) + 1) + sum(math.lgamma(n + 1) for n in counts)
    if chance < math.log(FALSE_ALARMS):
        yield (
            "The groups look like the true classes: each group has the rows of one class, and no other group "
            "has any. If they are, the groups of new rows are not known. To guarantee each true class, "
            "leave the groups out and pass `condition_on='label'`."
        )
