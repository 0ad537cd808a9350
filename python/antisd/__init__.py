"""antisd from Python: runs the program's commands and reads what they leave behind.

    import antisd

    antisd.run(["train", "run.toml", "train.steps=100"])
    run = antisd.read_run("runs/first")
    run.metrics["critic/rewards/mean"].plot()

The work is done by the program, a process of its own; this module needs nothing but Python, and
pandas for the frames.
"""
from .program import ProgramError, find_program, run
from .run_directory import Run, read_run

__all__ = ["ProgramError", "Run", "find_program", "read_run", "run"]
