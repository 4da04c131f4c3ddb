"""For the build only: lowers the shipped grammars, so that no first completion waits for that."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LowerGrammars(BuildHookInterface):  # type: ignore[misc]
    """Fills ``codespec/data/lowered``. Without it everything works, and the first use takes longer: no error."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Lower the grammars before the wheel is packed; called by hatchling."""
        if self.target_name != "wheel":
            return
        code = "from codespec.grammar.beforehand import lower_beforehand; lower_beforehand()"
        done = subprocess.run([sys.executable, "-c", code], cwd=self.root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            last = done.stderr.strip().splitlines()[-1:] or ["no message"]
            self.app.display_warning(f"the shipped grammars are not lowered beforehand: {last[0]}")
            return
        build_data["artifacts"].append("codespec/data/lowered/*.grammar")
