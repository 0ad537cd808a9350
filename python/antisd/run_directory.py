"""Reads a run directory (docs/runs.md) as dictionaries and pandas frames."""
import functools
import json
import pathlib


def read_run(directory):
    """The run in `directory`, finished or still training. Nothing is read before it is asked for."""
    path = pathlib.Path(directory)
    if not (path / "run.json").is_file() and not (path / "metrics.jsonl").is_file():
        raise FileNotFoundError(f"{path}: this is no run directory: it has neither run.json nor metrics.jsonl")
    return Run(path)


class Run:
    """What a run has left behind. Attributes are read once, when first used.

    info         run.json: version, revision, command line, device, seed, times, exit reason
    config       config.toml: every key, resolved
    metrics      one row a step, indexed by step; the columns are the names of metrics.jsonl
    rollouts     one row a response of the recorded steps (record.rollouts_every)
    evaluations  one row for each benchmark and evaluated step: avg, pass@k, intervals, lengths
    """

    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return f"antisd.Run({str(self.path)!r})"

    @functools.cached_property
    def info(self):
        return json.loads((self.path / "run.json").read_text(encoding="utf-8"))

    @functools.cached_property
    def config(self):
        try:
            import tomllib
        except ImportError:
            raise ImportError("reading config.toml needs Python 3.11 or later") from None
        return tomllib.loads((self.path / "config.toml").read_text(encoding="utf-8"))

    @functools.cached_property
    def metrics(self):
        frame = _pandas().DataFrame(_rows(self.path / "metrics.jsonl"))
        if "training/global_step" in frame:
            frame = frame.set_index("training/global_step")
        return frame

    @functools.cached_property
    def rollouts(self):
        rows = []
        for file in sorted((self.path / "rollouts").glob("step-*.jsonl")):
            rows += _rows(file)
        return _pandas().DataFrame(rows)

    @functools.cached_property
    def evaluations(self):
        rows = []
        for file in sorted((self.path / "eval").glob("step-*/summary.json")):
            summary = json.loads(file.read_text(encoding="utf-8"))
            for bench, figures in summary["benches"].items():
                row = {"step": summary["step"], "bench": bench}
                for name, value in figures.items():
                    if isinstance(value, dict):  # pass and its interval, by k
                        row.update({f"{name}@{k}": figure for k, figure in value.items()})
                    else:
                        row[name] = value
                rows.append(row)
        return _pandas().DataFrame(rows)


def _rows(file):
    """The objects of a JSONL file; a last line that is still being written is left out."""
    if not file.is_file():
        return []
    text = file.read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


def _pandas():
    try:
        import pandas
    except ImportError:
        raise ImportError("frames of runs need pandas: pip install pandas (or antisd[pandas])") from None
    return pandas
