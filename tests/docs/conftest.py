"""The browser that tests of reports open too."""

from tests.interfaces.report.conftest import open_browser

__all__ = ["open_browser"]
