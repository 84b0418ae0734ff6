r"""
A loss is a table
=================

Test :math:`G[y, k] = |y - k|^p / (K - 1)^p` and

.. math:: \hat\tau = \sup \{ \tau : \sum_{i=1}^n L_i(\tau) \le (n+1)\,\alpha - B \}, \quad R(l, u \mid x) = H(l) + T(u)

and :class:`ordinalrisk.WeightedLoss`.
"""

import matplotlib.pyplot as plt

import ordinalrisk as orisk

orisk.DivergenceLoss().cost_table(4)

# %%
# More text.

figure, axes = plt.subplots()
axes.plot([1, 2, 3])
print("hi")
