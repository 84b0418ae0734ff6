"""URLs without their secrets, for everything that is shown or stored."""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import quote, unquote

HIDDEN = "***"
_SHORTEST_SECRET = 4  # shorter ones are not looked for in what other packages say
_USER = r"(?<=://)(?<!abfs://)(?<!abfss://)([^{space}/?#]*|[^{space}/?#:@]+:(?!:|\d+/)[^{space}@]*)(?=@)"
_QUERY = r"(?:(?<=http)s?://[^'\"?]*\?|://[^'\"?#]*[?#](?=[^{space}]*=))([^{space}]*[^{space}:;,.)])"
_IN_TEXT, _ALONE = (
    [re.compile(pattern.format(space=space)) for pattern in (_USER, _QUERY)] for space in (r"\s'\"", "\0")
)

_quoted = partial(quote, safe="")


def redacted(text: str, place: str = "") -> str:
    """The text with users, passwords and queries of URLs replaced by ``***``.

    Parameters
    ----------
    text : str
        A place, or a message.
    place : str
        A place that the text may speak of, or repeat in parts.

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
    """The URL up to its query.

    Examples
    --------
    >>> without_query("https://host/rows.csv?X-Amz-Signature=0123"), without_query("s3://bucket/part-?.csv")
    ('https://host/rows.csv', 's3://bucket/part-?.csv')
    """
    found = _ALONE[1].search(url)
    return url if found is None else url[: found.start(1) - 1]


def _hidden(text: str, patterns: list[re.Pattern[str]]) -> str:
    for pattern in patterns:
        text = pattern.sub(lambda found: found[0][: found.start(1) - found.start()] + HIDDEN, text)
    return text


def _secrets(place: str) -> list[str]:
    """What is hidden of a place, whole and in parts, as it is and as packages quote it; long ones first."""
    found = [match[1] for pattern in _ALONE for match in pattern.finditer(place)]
    parts = [part for each in found for part in (each, *re.split("[:&;]", each))]
    values = [part.partition("=")[2] or part for part in parts]
    spelled = {how(part) for part in (*parts, *values) for how in (str, _quoted, unquote)}
    return sorted((part for part in spelled if len(part) >= _SHORTEST_SECRET), key=len, reverse=True)
