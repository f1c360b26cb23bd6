"""What watches the calls of a function, which does what it does."""

from collections.abc import Callable
from typing import Any

import pytest


def watch(patch: pytest.MonkeyPatch, owner: Any, name: str, seen: Callable[..., Any] = lambda *given: given) -> list:
    """Return a list to which each call of a function adds what `seen` says of its arguments, before it is called."""
    calls, function = [], getattr(owner, name)

    def watched(*given: Any, **named: Any) -> Any:
        calls.append(seen(*given, **named))
        return function(*given, **named)

    patch.setattr(owner, name, watched)
    return calls
