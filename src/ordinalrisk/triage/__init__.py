"""Accept or refer: which rows keep the label of the model, and which go to a person.

The threshold on the model's own risk and its tests belong here. Sets of labels belong to ``prediction``, and
tests of a risk that never falls to ``calibration``.
"""
