"""Replace parameters by options in the library's messages."""

from __future__ import annotations

import re

IN_OPTIONS = {
    "delta": "--delta",
    "confidence_bound": "--confidence-bound",
    "condition_on": "--per-class",
    "groups": "--group",
    "clusters": "--cluster-col",
    "sample_weight": "--weight-col",
    "class_ratios": "--class-ratios",
    "randomize": "--randomize",
    "relative": "--relative",
    "more_alphas": "--more-alphas",
    "pool_classes": "--pool-classes",
    "exempt_classes": "--exempt-class",
    "side": "--side",
    "growth_loss": "--growth-loss",
    "recalibrate": "--recalibrate",
    "recalibration_rows": "--recalibration-rows",
}
"""Parameters of a controller, and their options."""
_OF_FILES = {"cluster": "--cluster-col", "weight": "--weight-col", "exempt_classes": "--exempt-class"}
"""Parameters of jobs on files that have another name as an option."""


def with_options(message: str) -> str:
    """Replace the parameters that a message has in backticks by options.

    Examples
    --------
    >>> with_options("correct `scores`, or add `logits=False` and `unseen_groups='full'`.")
    'correct --scores, or add --probabilities and --unseen-groups full.'
    >>> with_options("pass `classes=['low', 'high']`, or `alpha={label: risk, ...}`.")
    'pass --classes low,high, or --alpha label=risk,....'
    >>> with_options("pass proba[:, [2, 1, 0]], or pass y - 1.")
    'name --scores in the order 2, 1, 0, counted from 0, or subtract 1 from the labels.'
    """
    message = re.sub(
        r"pass proba\[:, \[([\d, ]+)\]\]", r"name --scores in the order \1, counted from 0", message
    )
    message = re.sub(r"pass y ([+-]) 1", _as_words, message)
    return re.sub(r"`([a-z_]+)(?:=([^`]*))?`", _as_option, message)


def _as_words(match: re.Match[str]) -> str:
    return "add 1 to the labels" if match[1] == "+" else "subtract 1 from the labels"


def _as_option(match: re.Match[str]) -> str:
    name, value = match.groups()
    if (name, value) == ("logits", "False"):
        return "--probabilities"
    if name == "condition_on":
        return "--per-class"
    option = _OF_FILES.get(name, f"--{name.replace('_', '-')}")
    if value is None or value == "True":
        return option
    if value == "False":
        return f"--no-{option.removeprefix('--')}"
    if value[:1] in "[{":  # a list or a mapping, as an option takes it
        value = re.sub(r"[\[\]{}'\"]", "", value).replace(": ", "=").replace(", ", ",")
    return f"{option} {value.strip(chr(39)) if value.strip(chr(39)).isalnum() else value}"


def in_options(error: ValueError) -> str:
    """Replace the parameters of a controller in an error by options.

    Examples
    --------
    >>> in_options(ValueError("delta and sample_weight can't be used together."))
    "--delta and --weight-col can't be used together."
    >>> in_options(ValueError('add condition_on="label" and pool_classes=True.'))
    'add --per-class and --pool-classes.'
    """
    text = " ".join(str(error).split())
    text = re.sub(r"\b(relative|randomize|pool_classes)=True\b", r"\1", text)
    text = re.sub("(recalibrate|growth)=[\"']auto[\"']", r"--\1 auto", text)
    text = re.sub("condition_on=[\"']label[\"']", "condition_on", text)
    text = re.sub("confidence_bound=[\"']([a-z_]+)[\"']", r"confidence_bound \1", text)
    return re.sub(rf"(?<!-)\b({'|'.join(IN_OPTIONS)})\b", lambda match: IN_OPTIONS[match[1]], text)
