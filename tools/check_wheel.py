#!/usr/bin/env python3
"""Installs the wheel as a user would and tries what it promises.

    tools/check_wheel.py dist/antisd-*.whl [--only NAME...]

The wheel goes into an empty virtual environment. torch and Arrow are those that setup/run has
unpacked in .deps/wheels, as links in the environment. The commands run as a plain (nobody, if this script runs as root) with nothing but the environment in PATH: there is no compiler.

A function whose name begins with check_ is a check. It gets an Installation and asserts.
"""
import argparse
import base64
import csv
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = ROOT / ".deps/reference"
WHEELS = (ROOT / ".deps/wheels").resolve()
# Not one in a user's home, which nobody else can read.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
NOBODY = 65534
PACKAGES = ("torch", "nvidia", "pyarrow")


def as_plain_user():
    """What to put before a command so that a plain user runs it; nothing where this is one already, or
    where a folder above .deps keeps others out."""
    if os.geteuid() != 0:
        return []
    plain = [shutil.which("setpriv"), "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    for folder in (WHEELS, REFERENCE / "lib"):
        if subprocess.run([*plain, "test", "-x", folder.resolve()]).returncode != 0:
            print(f"wheel: as root, because other users cannot read {folder}", flush=True)
            return []
    return plain


class Installation:
    """A virtual environment with the wheel in it, and an empty folder `work` to run commands in."""

    def __init__(self, folder, wheel):
        self.wheel = wheel
        self.plain = as_plain_user()
        self.environment = folder / "environment"
        self.work = folder / "work"
        subprocess.run([PYTHON, "-m", "venv", "--without-pip", self.environment], check=True)
        self.pip("install", "--no-deps", "--no-index", "--no-compile", str(wheel))
        self.site = next(self.environment.glob("lib/python3*/site-packages"))
        self.home = self.environment / "lib/antisd"
        self.program = self.environment / "bin/antisd"
        self.link_packages()
        self.work.mkdir()
        folder.chmod(0o755)
        if self.plain:
            os.chown(self.work, NOBODY, NOBODY)

    def link_packages(self):
        for name in PACKAGES:
            (self.site / name).symlink_to(WHEELS / name)

    def unlink_packages(self):
        for name in PACKAGES:
            (self.site / name).unlink()

    def pip(self, *arguments):
        subprocess.run([PYTHON, "-m", "pip", "--python", self.environment / "bin/python", "-q",
                        "--disable-pip-version-check", *arguments], check=True)

    def start(self, *command, variables={}, **pipes):
        """Starts a command of the environment as a plain user."""
        return subprocess.Popen(
            [*self.plain, self.environment / "bin" / command[0], *command[1:]],
            text=True, cwd=self.work, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **pipes,
            env={"PATH": str(self.environment / "bin"), "HOME": str(self.work), **variables})

    def run(self, *command, status=0, input="", variables={}):
        """Runs a command of the environment as a plain user; returns its outcome."""
        child = self.start(*command, variables=variables, stdin=subprocess.PIPE)
        out, err = child.communicate(input)
        done = subprocess.CompletedProcess(command, child.returncode, out, err)
        assert done.returncode == status, f"{command}: status {done.returncode}, {done.stderr}{done.stdout}"
        return done

    def libraries(self):
        """name -> path (or "not found") of what the program loads when it starts."""
        lines = subprocess.run(["ldd", self.program], capture_output=True, text=True, check=True).stdout.splitlines()
        return dict(re.match(r"\s*(\S+) => (not found|\S+)", line).groups() for line in lines if "=>" in line)


def check_record(place):
    """Every file that the wheel lists is there, with its checksum."""
    record = next(place.site.glob("antisd-*.dist-info/RECORD"))
    for name, digest, _ in csv.reader(record.open()):
        content = (place.site / name).read_bytes()
        if digest:
            actual = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            assert digest == f"sha256={actual}", name


def check_version(place):
    version = place.wheel.name.split("-")[1]
    assert place.run("antisd", "--version").stdout == f"antisd {version}\n"
    assert f"\n## {version}\n" in (ROOT / "CHANGELOG.md").read_text()


def check_libraries(place):
    """The wheel's own, beside those of every glibc system; none of torch's at the start, and none
    searched for in a folder of the machine that built it."""
    for name, path in place.libraries().items():
        system = re.match(r"(ld-linux|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so)", name)
        assert system or str(place.home) in str(pathlib.Path(path).resolve()), f"{name} => {path}"
        assert not re.match("lib(torch|c10|antisd)", name), name
    for library in [place.program, *place.home.glob("*.so*")]:
        said = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        for searched in re.findall(r"(?:runpath|rpath): \[(.*)\]", said):
            assert all(folder.startswith("$ORIGIN") for folder in searched.split(":")), f"{library}: {searched}"


def check_tools(place):
    model = place.home / "models/countdown"
    out = place.run("antisd", "tokenize", model, input='{"text":"Numbers 4 11 3 target 47"}\n').stdout
    assert len(json.loads(out)["ids"]) == 6, out
    out = place.run("antisd", "grade", "math", input='{"answer":"1/2","response":"\\\\boxed{0.5}"}\n').stdout
    assert json.loads(out)["correct"] is True, out


def check_parquet(place):
    rows = '{"a":1}\n{"a":2}\n'
    (place.work / "rows.jsonl").write_text(rows)
    (place.work / "rows.parquet").unlink(missing_ok=True)
    place.run("antisd", "data", "convert", "rows.jsonl", "rows.parquet")
    assert place.run("antisd", "data", "convert", "rows.parquet").stdout == rows


def check_demo(place):
    out = place.run("antisd", "demo", "train.steps=2").stdout
    assert "minus grpo" in out, out
    assert (place.work / "runs/demo/report.html").stat().st_size > 100_000


def check_serve(place):
    """The openai package asks a server."""
    server = place.start("antisd", "serve", place.home / "models/countdown", "--port", "0", "--name", "wheel")
    try:
        address = server.stdout.readline().strip()
        ask = ("import openai, sys; client = openai.OpenAI(base_url=sys.argv[1], api_key='none'); "
               "answer = client.completions.create(model='wheel', prompt='Numbers 4 11 3 target 47 |', "
               "max_tokens=8, temperature=0); print(answer.choices[0].text, answer.usage.completion_tokens)")
        said = subprocess.run([REFERENCE / "bin/python", "-c", ask, f"{address.removesuffix('/v1')}/v1"],
                              capture_output=True, text=True, timeout=120)
        assert said.returncode == 0 and said.stdout.strip().endswith(" 8"), said.stdout + said.stderr
    finally:
        server.terminate()
        server.communicate(timeout=60)


def check_wandb(place):
    """wandb writes a run without a network; without the package one message comes first."""
    packages = next((REFERENCE / "lib").glob("python3*/site-packages"))
    training = ["antisd", "train", place.home / "recipes/countdown/quick.toml", "train.steps=2", "eval.every=0",
                f"model.path={place.home / 'models/countdown'}", "record.dir=logged",
                'record.loggers=["tensorboard", "wandb"]', "--quiet"]
    said = place.run(*training, status=2).stderr
    assert "pip install wandb" in said, said
    place.run(*training, variables={"PYTHONPATH": str(packages), "WANDB_MODE": "offline"})
    assert list((place.work / "logged").rglob("*.wandb")), list((place.work / "logged").rglob("*"))


def doctor_lines(place):
    """topic -> line"""
    return {line.split()[0]: line for line in place.run("antisd", "doctor").stdout.splitlines()}


def check_doctor(place):
    """One line each; what is missing comes with its remedy."""
    lines = doctor_lines(place)
    assert " ok " in lines["torch"], lines
    for topic in ("python3", "namespaces", "parquet"):
        assert " ok " in lines[topic] or ";" in lines[topic], lines


def check_python_module(place):
    out = place.run("python", "-c", "import antisd; print(antisd.run(['--version']), end='')").stdout
    assert out == place.run("antisd", "--version").stdout, out
    assert place.run("python", "-m", "antisd", "--version").stdout == out
    failed = place.run("python", "-c", "import antisd; antisd.run(['train'])", status=1).stderr
    assert "ProgramError" in failed and "--help" in failed, failed


def check_missing_torch(place):
    """Without torch or with another one: the remedy, and what needs none still works."""
    check_parquet(place)
    place.unlink_packages()
    try:
        said = place.run("antisd", "train", "x.toml", status=1).stderr
        assert said.startswith("antisd: torch is not installed; pip install torch=="), said
        line = doctor_lines(place)["torch"]
        assert "--" in line and "pip install torch==" in line, line
        check_tools(place)
        said = place.run("antisd", "data", "convert", "rows.parquet", status=2).stderr
        assert "pip install pyarrow==" in said, said
        (place.site / "torch").mkdir()
        (place.site / "torch/version.py").write_text("__version__ = '1.2.3+cpu'\n")
        said = place.run("antisd", "train", "x.toml", status=1).stderr
        assert "torch 1.2.3 is installed, but this program needs torch" in said, said
    finally:
        shutil.rmtree(place.site / "torch", ignore_errors=True)
        place.link_packages()


def check_gpu_without_cuda(place):
    """A GPU's driver, but a torch without CUDA's libraries: the CPU, and a word about it."""
    if not (place.home / "libantisd_tensor_cuda.so").exists() or list(WHEELS.glob("nvidia/*/lib/libcufile*")):
        return
    folder = place.work / "driver"
    folder.mkdir()
    subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-o", folder / "libcuda.so.1"], check=True)
    said = place.run("antisd", "score", "--help", variables={"LD_LIBRARY_PATH": str(folder)}).stderr
    assert said.startswith("there is a GPU's driver, but everything runs on the CPU: "), said


def check_torch_elsewhere(place):
    """Where only the environment's Python knows about it."""
    place.unlink_packages()
    shown = place.site / "packages.pth"
    shown.write_text(f"{WHEELS}\n")
    try:
        assert " ok " in doctor_lines(place)["torch"]
        check_parquet(place)
    finally:
        shown.unlink()
        place.link_packages()


def check_uninstalling(place):
    """It comes last: nothing stays."""
    place.pip("uninstall", "-y", "antisd")
    assert not place.program.exists()
    left = [path for path in place.environment.rglob("*") if "antisd" in path.name]
    assert not [path for path in left if path.is_file()], left


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("wheel", type=pathlib.Path)
    options.add_argument("--only", nargs="+", default=[])
    arguments = options.parse_args()
    checks = {name[len("check_"):]: check for name, check in globals().items() if name.startswith("check_")}
    with tempfile.TemporaryDirectory() as folder:
        place = Installation(pathlib.Path(folder), arguments.wheel.resolve())
        for name in arguments.only or checks:
            begun = time.monotonic()
            checks[name](place)
            print(f"wheel: {name} in {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
