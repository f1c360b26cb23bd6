"""What accidents and attackers make of files: bytes changed, cut, repeated; values that make no sense."""

import json
import random
import struct

ODD_NUMBERS = [0, 1, -1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63)]
ODD_VALUES = [
    None,
    True,
    "",
    "../x",
    "/",
    "\0",
    "x" * 300,
    "\x1b[31m",
    0.5,
    -1e308,
    float("nan"),
    float("inf"),
    10**400,
]
ODD_VALUES += [[], {}, [[]], {"": {}}, "float64", "|O", "laplacian-eigenmaps", [2**62, 2**62]]
MOST_CHANGES = 4


def damaged(content: bytes, draws: random.Random) -> bytes:
    """Return a content in which up to four things are not as they were."""
    changed = bytearray(content)
    for _ in range(draws.randint(1, MOST_CHANGES)):
        start = draws.randrange(len(changed) + 1)
        span = slice(start, start + draws.choice([1, 2, 4, 8, 64, 1024]))
        way = draws.choice(["flip", "number", "number", "zeros", "cut", "remove", "repeat", "noise", "digits"])
        if way == "flip" and start < len(changed):
            changed[start] ^= 1 << draws.randrange(8)
        elif way == "number":
            packed = struct.pack("<q", draws.choice(ODD_NUMBERS))[: draws.choice([1, 2, 4, 8])]
            changed[start : start + len(packed)] = packed if draws.random() < 0.5 else packed[::-1]
        elif way == "zeros":
            changed[span] = bytes(len(changed[span]))
        elif way == "cut":
            del changed[start:]
        elif way == "remove":
            del changed[span]
        elif way == "repeat":
            changed[start:start] = changed[span]
        elif way == "noise":
            changed[span] = draws.randbytes(len(changed[span]))
        elif way == "digits":  # of a text: lengths and offsets
            changed[span] = bytes(b"0123456789"[byte % 10] if 48 <= byte < 58 else byte for byte in changed[span])
    return bytes(changed)


def places(value, path=()):
    """Return the paths to all that a JSON value holds."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, part in inside for place in places(part, (*path, name)))]


def changed(value, path, other, how):
    """Return a JSON value in which one place holds something else, is gone, or is there under another name."""
    if not path:
        return other if isinstance(other, dict) else {"": other}
    copy = json.loads(json.dumps(value))
    holder = copy
    for name in path[:-1]:
        holder = holder[name]
    if how == "other" or isinstance(holder, list):
        holder[path[-1]] = other
    else:
        part = holder.pop(path[-1])
        if how == "renamed":
            holder[str(other)] = part
    return copy


def odd_value(draws: random.Random):
    """Return a JSON value that is seldom what is expected."""
    kind = draws.random()
    if kind < 0.1:
        return [odd_value(draws) for _ in range(draws.randrange(4))]
    if kind < 0.2:
        return {str(odd_value(draws))[:8]: odd_value(draws)}
    return draws.choice(ODD_NUMBERS) if kind < 0.5 else draws.choice(ODD_VALUES)


def damaged_json(value, draws: random.Random):
    """Return a JSON value in which one place is not as it was."""
    return changed(value, draws.choice(places(value)), odd_value(draws), draws.choice(["other", "gone", "renamed"]))
