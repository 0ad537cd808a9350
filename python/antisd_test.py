"""Tests of the Python module, with the program of a build and pandas of the reference packages.

    python3 python/antisd_test.py BUILD [TEST...]
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
REFERENCE = HERE.parent / ".deps/reference/bin/python"
SKIPPED = 77

if __name__ == "__main__" and pathlib.Path(sys.prefix) != REFERENCE.parent.parent.absolute():
    if not REFERENCE.exists():
        print("needs pandas of the reference packages: make references")
        sys.exit(SKIPPED)
    os.environ["ANTISD_PROGRAM"] = str(pathlib.Path(sys.argv[1]).resolve() / "antisd")
    os.execv(REFERENCE, [str(REFERENCE), __file__, *sys.argv[1:]])

sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import antisd  # noqa: E402
import pandas  # noqa: E402

SETTINGS = [
    "train", str(HERE.parent / "recipes/countdown/quick.toml"),
    f"model.path={HERE.parent / 'models/countdown'}", "method.name=grpo", "train.steps=2",
    "rollout.prompts_per_step=2", "rollout.group_size=2", "record.rollouts_every=1", "eval.every=2",
    "eval.benches=countdown:3:held-out:16", "--device", "cpu", "--threads", "1", "--quiet"]


class RunTest(unittest.TestCase):
    def test_returns_standard_output(self):
        said = subprocess.run([os.environ["ANTISD_PROGRAM"], "version"], capture_output=True, text=True)
        self.assertEqual(antisd.run(["version"]), said.stdout)
        rows = '{"answer":"7","response":"so \\\\boxed{7}"}\n' * 2000  # more than a pipe holds
        verdicts = antisd.run(["grade", "math"], input=rows).splitlines()
        self.assertEqual([json.loads(line)["correct"] for line in verdicts], [True] * 2000)

    def test_raises_with_the_programs_message(self):
        with self.assertRaises(antisd.ProgramError) as failed:
            antisd.run(["tokenise"])
        self.assertEqual(str(failed.exception), "unknown command 'tokenise'; did you mean 'tokenize'?")
        self.assertEqual(failed.exception.status, 2)
        with self.assertRaises(antisd.ProgramError):  # it ends without reading its input
            antisd.run(["tokenize", "no/such/model"], input="x" * 10_000_000)

    def test_says_where_it_looked_for_the_program(self):
        with mock.patch.dict(os.environ, {"PATH": "/nowhere"}):
            del os.environ["ANTISD_PROGRAM"]
            with self.assertRaisesRegex(FileNotFoundError, "install the wheel"):
                antisd.run(["version"])

    def test_passes_an_interrupt_on_once(self):
        with tempfile.TemporaryDirectory() as folder:
            arguments = [*SETTINGS, "train.steps=100000", "eval.every=0", f"record.dir={folder}/run"]
            waiting = subprocess.Popen(
                [sys.executable, "-c", f"import antisd; antisd.run({arguments!r})"],
                cwd=HERE, stderr=subprocess.PIPE, text=True)
            metrics = pathlib.Path(folder, "run/metrics.jsonl")
            while waiting.poll() is None and not (metrics.exists() and metrics.read_text()):
                time.sleep(0.1)
            waiting.send_signal(signal.SIGINT)
            said = waiting.communicate(timeout=120)[1]
            self.assertIn("KeyboardInterrupt", said)
            info = antisd.read_run(f"{folder}/run").info
            self.assertGreaterEqual(info["last_step"], 1)
            self.assertTrue((pathlib.Path(folder) / "run/checkpoints" / f"step-{info['last_step']:06}"
                             / "MANIFEST.json").exists(), info)


class ReadRunTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name, "run")
        antisd.run([*SETTINGS, f"record.dir={cls.path}"])

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_reads_every_part(self):
        run = antisd.read_run(self.path)
        self.assertEqual(run.config["train"]["steps"], 2)
        self.assertEqual(run.info["exit_reason"], "finished")
        expected = pandas.read_json(self.path / "metrics.jsonl", lines=True)
        pandas.testing.assert_frame_equal(run.metrics.reset_index(), expected, check_dtype=False)
        self.assertEqual(list(run.metrics.index), [0, 1, 2])
        self.assertEqual(len(run.rollouts), 2 * 2 * 2)
        means = run.rollouts.groupby("step")["reward"].mean()
        for step in (1, 2):  # the mean that the program took
            self.assertAlmostEqual(means[step], run.metrics.loc[step, "critic/rewards/mean"])
        self.assertEqual(list(run.evaluations["step"]), [0, 2])
        name = "val-core/countdown-3-held-out/acc/mean@1"
        self.assertEqual(list(run.evaluations["avg"]), list(run.metrics.loc[[0, 2], name]))
        self.assertEqual(list(run.evaluations["pass@1"]), list(run.evaluations["avg"]))

    def test_leaves_out_a_line_that_is_being_written(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copytree(self.path, pathlib.Path(folder, "run"))
            text = (copy / "metrics.jsonl").read_text()
            (copy / "metrics.jsonl").write_text(text + text[:50])
            self.assertEqual(len(antisd.read_run(copy).metrics), 3)

    def test_a_run_that_has_just_begun_has_empty_frames(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(self.path / "run.json", folder)
            run = antisd.read_run(folder)
            self.assertEqual([len(run.metrics), len(run.rollouts), len(run.evaluations)], [0, 0, 0])

    def test_says_what_is_missing(self):
        with self.assertRaisesRegex(FileNotFoundError, "no run directory"):
            antisd.read_run(self.folder.name)
        with mock.patch.dict(sys.modules, {"pandas": None}):
            run = antisd.read_run(self.path)
            self.assertEqual(run.info["last_step"], 2)
            with self.assertRaisesRegex(ImportError, "pip install pandas"):
                run.metrics


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
