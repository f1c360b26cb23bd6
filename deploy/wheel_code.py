"""Puts machine code of kernels into a wheel: `SCALEMANI_CODE` names the folder that `record_code.py` has filled.

Where it is unset, as for everybody who installs from sources, the wheel is one for all systems.
"""

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MachineCode(BuildHookInterface):
    """Makes the wheel one for a Python and a processor."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files, and say what the wheel is for."""
        folder = os.environ.get("SCALEMANI_CODE")
        if not folder or version == "editable":
            return
        build_data["pure_python"] = False
        # Code calls the C library through the process, as numba's wheels do, and has no file that is linked to it.
        python = f"cp{sysconfig.get_config_var('py_version_nodot')}"
        build_data["tag"] = f"{python}-{python}-manylinux_2_17_x86_64"
        build_data["force_include"][folder] = "scalemani/kernels/machine/code"
