"""URLs without their secrets, for everything that is shown or stored."""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import quote, unquote

HIDDEN = "***"
_SHORTEST_SECRET = 4  # shorter secrets are not searched for in messages of other packages
_USER = r"(?<=://)(?<!abfs://)(?<!abfss://)([^{space}/?#]*|[^{space}/?#:@]+:(?!:|\d+/)[^{space}@]*)(?=@)"
_QUERY = r"(?:(?<=http)s?://[^'\"?]*\?|://[^'\"?#]*[?#](?=[^{space}]*=))([^{space}]*[^{space}:;,.)])"
_IN_TEXT, _ALONE = (
    [re.compile(pattern.format(space=space)) for pattern in (_USER, _QUERY)] for space in (r"\s'\"", "\0")
)

_quoted = partial(quote, safe="")


def redacted(text: str, place: str = "") -> str:
    """Replace users, passwords and queries of URLs by ``***``; those of ``place`` also on their own.

    Examples
    --------
    >>> redacted("https://host/rows.csv?X-Amz-Signature=0123: there is no such file.")
    'https://host/rows.csv?***: there is no such file.'
    >>> redacted("s3://KEY:SECRET@bucket/rows.csv"), redacted("data/part-?.csv")
    ('s3://***@bucket/rows.csv', 'data/part-?.csv')
    >>> redacted("'KEY:SECRET@bucket' is not a bucket", "s3://KEY:SECRET@bucket/rows.csv")
    "'***@bucket' is not a bucket"
    """
    if place:
        text = text.replace(place, _hidden(place, _ALONE))
        for secret in _secrets(place):
            text = text.replace(secret, HIDDEN)
    return _hidden(text, _IN_TEXT)


def without_query(url: str) -> str:
    """The URL up to its query."""
    query = _ALONE[1].search(url)
    return url if query is None else url[: query.start(1) - 1]


def _hidden(text: str, patterns: list[re.Pattern[str]]) -> str:
    for pattern in patterns:
        text = pattern.sub(lambda match: match[0][: match.start(1) - match.start()] + HIDDEN, text)
    return text


def _secrets(place: str) -> list[str]:
    """List the secrets in a place, whole and in parts, plain and quoted; long ones first."""
    wholes = [match[1] for pattern in _ALONE for match in pattern.finditer(place)]
    parts = [part for whole in wholes for part in (whole, *re.split("[:&;]", whole))]
    values = [part.partition("=")[2] or part for part in parts]
    spelled = {spell(part) for part in (*parts, *values) for spell in (str, _quoted, unquote)}
    return sorted((part for part in spelled if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)
