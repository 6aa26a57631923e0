# SPDX-License-Identifier: Apache-2.0
"""scripts/workflow can start each job of .github/workflows, and what its commands name is there."""

import importlib.machinery
import importlib.util
import itertools
import json
import pathlib
import re
import subprocess
import sys
import unittest

try:
    import yaml  # noqa: F401
except ImportError:
    print("skipped: no PyYAML")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("workflow", str(ROOT / "scripts/workflow"))
workflow = importlib.util.module_from_spec(importlib.util.spec_from_loader("workflow", loader))
loader.exec_module(workflow)


def runs():
    """(job, its values of the matrix, its commands) of each job of each workflow, for each combination."""
    for jobs in workflow.workflows().values():
        for name, job in jobs.items():
            matrix = workflow.matrix_of(job)
            for values in itertools.product(*matrix.values()):
                chosen = dict(zip(matrix, values))
                commands = [command for command in workflow.commands_of(job, chosen) if command is not None]
                yield f"{name} {chosen}", workflow.image_of(job), commands


class WorkflowTest(unittest.TestCase):
    def test_jobs_of_every_workflow_are_known(self):
        self.assertLessEqual({"ci.yml", "nightly.yml"}, workflow.workflows().keys())
        for name, image, commands in runs():
            with self.subTest(name):
                self.assertIn(image.removeprefix("debian:"), workflow.SUITES)
                self.assertTrue(commands)

    def test_commands_are_shell_without_unfilled_values(self):
        for name, _, commands in runs():
            for command in commands:
                with self.subTest(name, command=command):
                    self.assertEqual(subprocess.run(["bash", "-n", "-c", command], check=False).returncode, 0)
                    self.assertNotIn("${{", command)

    def test_scripts_and_presets_that_commands_name_are_there(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text())
        names = {kind: {preset["name"] for preset in presets[f"{kind}Presets"]} for kind in ("configure", "workflow")}
        for name, _, commands in runs():
            for command in commands:
                with self.subTest(name, command=command):
                    for script in re.findall(r"(?:scripts|\.ci)/[\w/-]+", command):
                        self.assertTrue((ROOT / script).is_file(), script)
                    whole = "--workflow" in command or "scripts/test" in command
                    for preset in re.findall(r"--preset ([\w-]+)", command):
                        self.assertIn(preset, names["workflow" if whole else "configure"])


if __name__ == "__main__":
    unittest.main()
