"""The wheel's build: it carries the fused kernels where they can be compiled, and its tag then names the platform;
where not, and with STABKIT_PURE=1, it is a wheel for every platform, on which stabkit runs slower."""

from __future__ import annotations

import os
import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILD = Path(__file__).parent / "stabkit" / "kernels" / "build.py"
VERSION = Path(__file__).parent / "stabkit" / "version.py"


class KernelsBuildHook(BuildHookInterface):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Note the commit, compile, and say what is in the wheel; an editable install is compiled where it stands."""
        if version == "standard" and (commit := runpy.run_path(str(VERSION))["commit"]()):
            VERSION.with_name("_commit").write_text(commit, encoding="utf-8")
            build_data["artifacts"].append("stabkit/_commit")
        if os.environ.get("STABKIT_PURE"):
            return
        if reason := runpy.run_path(str(BUILD))["build"]():
            self.app.display_warning(f"the fused kernels were not built: {reason}; this wheel is slower without them")
            return
        if version == "standard":
            build_data["artifacts"].append("stabkit/kernels/stack-*")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
