"""The one error that users see."""
from __future__ import annotations

import re
from typing import Any

from . import _core


def _option(match: "re.Match[str]") -> str:
    name = match.group(1).replace("-", "_")
    if name.startswith("no_"):
        return f"{name[3:]}=False"
    return f"{name}={match.group(2) or ''}"


def in_python(text: str) -> str:
    """Options as Python writes them: `--hidden 64` becomes `hidden=64`.

    >>> in_python("a smaller --lr, --clip 1, or --layer-norm")
    'a smaller lr=, clip=1, or layer_norm='
    """
    return re.sub(r"--([a-z][a-z0-9-]*)(?: ([0-9][0-9.]*|(?<=--method )\w+))?", _option, text)


class Error(ValueError):
    """What is wrong, where, and what to try.

    Attributes
    ----------
    problem, where, hint : str
        The three parts of the message; the last two may be empty.
    """

    def __init__(self, what: str, problem: str = "", where: str = "", hint: str = "") -> None:
        self.problem = in_python(problem or what)
        self.where = in_python(where)
        self.hint = in_python(hint)
        place = f"{self.where}: " if self.where else ""
        remedy = f" (hint: {self.hint})" if self.hint else ""
        super().__init__(f"{place}{self.problem}{remedy}")
        self._parts = (what, problem, where, hint)

    def __reduce__(self) -> Any:
        return (type(self), self._parts)


_core.set_error_class(Error)
