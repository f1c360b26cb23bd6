"""The result of an audit: one finding a claim, the table of all, and how a claim is judged."""

import json
import math
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeGuard

Verdict = Literal["holds", "fails", "not checked"]
STANDARD_ERRORS = 3.0  # by which a claim that was measured on a sample may be off
WIDTH = 100  # of the table, in letters
Number = float | int | str | None


@dataclass(frozen=True)
class Finding:
    """One claim of a run and the value that the audit computed.

    Attributes
    ----------
    stage : the stage that claims it
    claim : what is claimed, in words
    value : what the run says
    found : what the audit computed
    error : standard error of `found`, and of `value` where that was measured on a sample; None of what was computed of
        all rows
    verdict : "holds", "fails", or "not checked" for what cannot be computed again
    note : what was compared, or why it was not
    """

    stage: str
    claim: str
    value: Number
    found: Number = None
    error: float | None = None
    verdict: Verdict = "not checked"
    note: str = ""


@dataclass(frozen=True)
class Verification:
    """The result of an audit.

    Attributes
    ----------
    findings : tuple of Finding
        One for each claim, in the order of the stages.
    method : str
        The method of the run.
    keys : dict
        The key of each stage that was audited: results of another run in the store have others.
    seed : int
        What rows were drawn by.
    rows : int
        How many rows were drawn.
    """

    findings: tuple[Finding, ...]
    method: str
    keys: dict[str, str]
    seed: int
    rows: int

    @property
    def ok(self) -> bool:
        """Whether no claim fails; claims that were not checked do not count."""
        return not self.failed

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The findings of claims that do not hold, in the order of the stages."""
        return tuple(one for one in self.findings if one.verdict == "fails")

    def count(self, verdict: Verdict) -> int:
        """Return how many claims have a verdict."""
        return sum(one.verdict == verdict for one in self.findings)

    @property
    def summary(self) -> str:
        """How many claims hold, fail and were not checked, in one line."""
        return (
            f"{self.count('holds')} claims hold, {self.count('fails')} fail, {self.count('not checked')} were not "
            f"checked; {self.rows} rows drawn by seed {self.seed}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain data: what the audit is of and drew by, `ok`, and the findings as dicts."""
        return {
            "method": self.method,
            "keys": self.keys,
            "ok": self.ok,
            "seed": self.seed,
            "rows": self.rows,
            "findings": [asdict(one) for one in self.findings],
        }

    def as_json(self) -> str:
        """Return it as a text in JSON, where numbers that are not finite are texts."""
        return json.dumps(finite(self.as_dict()), indent=1)

    def __str__(self) -> str:
        """Return the table, a claim a row, with notes on those that do not hold or were not checked."""
        header = ("stage", "claim", "claimed", "found", "error", "verdict")
        rows = [header, *(cells(one) for one in self.findings)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = []
        for number, row in enumerate(rows):
            lines.append("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
            finding = self.findings[number - 1] if number else None
            if finding is not None and finding.note and finding.verdict != "holds":
                lines += textwrap.wrap(finding.note, WIDTH, initial_indent="    ", subsequent_indent="    ")
        return "\n".join([*lines, "", self.summary])


def cells(finding: Finding) -> tuple[str, ...]:
    """Return the texts of a row of the table: stage, claim, claimed, found, error, verdict."""
    numbers = (shown(finding.value), shown(finding.found), "" if finding.error is None else f"{finding.error:.2g}")
    return (finding.stage, finding.claim, *numbers, finding.verdict)


def shown(value: Number) -> str:
    """Return a float in six digits, other values as they are, `-` for None."""
    if value is None:
        return "-"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def finite(value: Any) -> Any:
    """Return a value with texts for numbers that JSON has not."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def unchecked(stage: str, claim: str, why: str, value: Number = None) -> Finding:
    """Return a finding without a computed value: `why` says why the claim cannot be computed again."""
    return Finding(stage, claim, value, note=why)


def verdict_of(holds: bool) -> Verdict:
    """Return holds or fails."""
    return "holds" if holds else "fails"


def none_wrong(stage: str, claim: str, wrong: int, note: str = "", examples: Iterable[Any] = ()) -> Finding:
    """Return the finding of a claim that holds of all things of a kind; `wrong` says of how many it does not."""
    first = ", ".join(str(one) for one in examples)
    noted = f"{note}; first: {first}" if first and wrong else note
    return Finding(stage, claim, 0, int(wrong), None, verdict_of(wrong == 0), noted)


def equal(stage: str, claim: str, value: Any, result: Number, tolerance: float = 0.0, note: str = "") -> Finding:
    """Return the finding of a number that was computed again: it may differ by a tolerance."""
    if not is_number(value) or not is_number(result):
        return Finding(stage, claim, str(value), result, None, verdict_of(value == result), note)
    return Finding(stage, claim, value, result, None, verdict_of(abs(float(value) - float(result)) <= tolerance), note)


def at_most(stage: str, claim: str, value: Any, result: float, slack: float = 0.0, note: str = "") -> Finding:
    """Return the finding of a bound: the result exceeds it by no more than `slack`."""
    if not is_number(value):
        return unchecked(stage, claim, "the record does not say it", str(value))
    return Finding(stage, claim, value, float(result), None, verdict_of(result <= value + slack), note)


def measured(stage: str, claim: str, value: Any, result: float, error: float, slack: float = 0.0) -> Finding:
    """Return the finding of a number that was estimated: it may be off by three standard errors, and `slack`."""
    if not is_number(value):
        return unchecked(stage, claim, "the record does not say it", str(value))
    holds = abs(float(value) - result) <= STANDARD_ERRORS * error + slack
    return Finding(stage, claim, value, result, error, verdict_of(holds))


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a finite int or float, and no bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
