"""Which files this process has open, whatever other tests in it have opened and not yet closed."""

import contextlib
import os
from pathlib import Path


def open_files_in(folder: Path) -> list[str]:
    """Return the files in a folder that descriptors of this process refer to, those without a name among them."""
    found = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the listing is closed by now
            found.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return [name for name in found if name.startswith(f"{folder}/")]
