"""Simulated data of the paper: ordered classes along the diagonal of the plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["simulated_classes"]


def simulated_classes(
    n_per_class: int = 2000, n_classes: int = 10, random_state: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    r"""Draw Gaussian classes in the plane, class ``i`` around ``[i, i]``, each with a random covariance.

    .. math:: X \mid y = i \;\sim\; N\big((i, i),\; A_i A_i^\top\big), \qquad A_i \in R^{2 \times 2}
              \text{ with independent standard normal entries}

    The paper uses "a randomly generated covariance matrix". Its released code passes ``rand(2, 2)``, which is
    not a covariance matrix: it is not symmetric, and half of the time its determinant is negative, so the
    sampler draws from another distribution. :math:`A A^\top` is always symmetric and positive semi-definite.

    Parameters
    ----------
    n_per_class : int
        The number of rows of each class.
    n_classes : int
        The number of classes, labelled ``0 .. n_classes - 1``.
    random_state : int
        The seed; the same seed gives the same rows.

    Returns
    -------
    X : array of shape (n_per_class * n_classes, 2)
        The points, class by class.
    y : array of int
        The labels.

    References
    ----------
    Xu, Guo, Wei. Conformal Risk Control for Ordinal Classification. UAI 2023: Section 3.1.

    Examples
    --------
    >>> X, y = simulated_classes(n_per_class=3, n_classes=4)
    >>> X.shape, y.tolist()
    ((12, 2), [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    """
    if n_per_class < 1 or n_classes < 2:
        raise ValueError(
            "Simulated data need at least one row in each of at least two classes; got "
            f"n_per_class={n_per_class}, n_classes={n_classes}."
        )
    rng = np.random.default_rng(random_state)
    A = rng.standard_normal((n_classes, 2, 2))
    noise = rng.standard_normal((n_classes, n_per_class, 2))
    centre = np.arange(n_classes)[:, None, None]
    X: NDArray[np.float64] = (centre + noise @ A.transpose(0, 2, 1)).reshape(-1, 2)
    return X, np.repeat(np.arange(n_classes), n_per_class)
