#!/usr/bin/env python3
"""Writes dist/antisd-VERSION-py3-none-linux_x86_64.whl from a build; `make wheel` calls it.

    tools/make_wheel.py BUILD [--cuda BUILD] [--output dist]

What pip, uv or pipx put into an environment:

    bin/antisd          the program itself: no Python starts, so it starts as fast as the build's
    lib/antisd/         libantisd_*.so, the Debian libraries that they need, models/ and recipes/
    site-packages/      the Python module (python/antisd), and the licences of all of it

With --cuda, the wheel has the library that needs torch twice: libantisd_tensor.so without CUDA, and
libantisd_tensor_cuda.so with its kernels, which is taken where there is a GPU's driver.

The program finds lib/antisd by its own place, and torch and Arrow, which are dependencies, in the
environment (src/io/installation.h). Nothing is fetched. The same build gives the same bytes.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TAG = "py3-none-linux_x86_64"
# Of every glibc system; the C++ runtime, which torch takes from the system too; torch's own OpenMP and
# CUDA.
SYSTEM = re.compile(r"^(ld-linux|lib(cu|nv|nccl)|linux-vdso|lib(c|m|dl|rt|pthread|util|resolv|anl|stdc\+\+|gcc_s|gomp)\.so)")
SHT_DYNAMIC, SHT_DYNSYM, DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH = 6, 11, 1, 14, 15, 29  # of ELF
# Debian packages whose code is compiled into ours: headers, and the script of the pages.
COMPILED_IN = ["libcli11-dev", "nlohmann-json3-dev", "libgloo-dev", "libjs-chart.js"]


def fail(message):
    sys.exit(f"wheel: {message}")


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def pinned(package):
    """The version in setup/wheels.txt, which the libraries were built with."""
    found = re.search(rf"^{package}==(\S+)", (ROOT / "setup/wheels.txt").read_text(), re.MULTILINE)
    return found.group(1)


def needed_libraries(files):
    """The Debian libraries that these programs and libraries need, and those that they need."""
    found = {}
    for file in files:
        for line in output_of("ldd", file).splitlines():
            match = re.match(r"\s*(\S+) => (/(?:usr/)?lib\S*)", line)
            if match and not SYSTEM.match(match.group(1)):
                found[match.group(1)] = pathlib.Path(match.group(2)).resolve()
    return found


def copyright_of(package):
    path = pathlib.Path("/usr/share/doc") / package / "copyright"
    if not path.exists():
        fail(f"{path} is missing: the wheel needs the licence of {package}")
    return path


def package_of(library):
    return output_of("dpkg", "-S", f"*/{library.name}").split(":")[0]


def newest_symbol(files, prefix):
    """The newest symbol version that starts with `prefix` among those that the files need."""
    found = set()
    for file in files:
        found.update(re.findall(rf"Name: {prefix}_([0-9.]+)", output_of("readelf", "-V", file)))
    return max(found, key=lambda version: [int(part) for part in version.split(".")])


def set_search_path(library, text):
    """Overwrites the library's search path for what it needs (DT_RUNPATH), which as built names
    folders of this machine. The new text is not longer, so nothing moves in the file."""
    data = bytearray(library.read_bytes())
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    # of each section: name, type, flags, address, offset, size, link, info, alignment, entry size
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + number * size) for number in range(count)]
    dynamic = next(section for section in sections if section[1] == SHT_DYNAMIC)
    entries = [struct.unpack_from("<qQ", data, place)
               for place in range(dynamic[4], dynamic[4] + dynamic[5], 16)]
    strings = sections[dynamic[6]][4]
    symbols = next(section for section in sections if section[1] == SHT_DYNSYM)
    names = [struct.unpack_from("<I", data, place)[0]
             for place in range(symbols[4], symbols[4] + symbols[5], 24)]
    names += [value for tag, value in entries if tag in (DT_NEEDED, DT_SONAME)]
    for begin in (value for tag, value in entries if tag in (DT_RPATH, DT_RUNPATH)):
        length = data.index(0, strings + begin) - strings - begin
        if len(text) > length or any(begin < name < begin + length for name in names):
            fail(f"{library.name}: its search path cannot be replaced")  # another name is a part of it
        data[strings + begin:strings + begin + length] = text.encode().ljust(length, b"\0")
    library.write_bytes(data)


def stage_files(build, cuda, stage):
    """Puts the files of lib/antisd and bin into `stage`; returns the packages in it."""
    home = stage / "lib/antisd"
    home.mkdir(parents=True)
    (stage / "bin").mkdir()
    shutil.copy((cuda or build) / "antisd", stage / "bin")  # `version` names the cards
    libraries = {"libantisd_tensor.so": build / "libantisd_tensor.so",
                 "libantisd_parquet.so": build / "libantisd_parquet.so"}
    if cuda:
        libraries |= {"libantisd_tensor_cuda.so": cuda / "libantisd_tensor.so",
                      "libantisd_kernels.so": cuda / "libantisd_kernels.so"}
    for name, path in libraries.items():
        if path.exists():
            shutil.copy(path, home / name)
            set_search_path(home / name, "$ORIGIN")
    built = [stage / "bin/antisd", *home.glob("*.so")]
    output_of("strip", *built)
    packages = list(COMPILED_IN)
    for name, path in needed_libraries(built).items():
        shutil.copyfile(path, home / name)
        packages.append(package_of(path))
    for folder in ("models/countdown", "recipes"):
        shutil.copytree(ROOT / folder, home / folder)
    return sorted(set(packages))


def metadata(version, parquet, glibc, compiler):
    requirements = [f"torch=={pinned('torch')}"]
    if parquet:
        requirements.append(f"pyarrow=={pinned('pyarrow')}")
    lines = [
        "Metadata-Version: 2.1", "Name: antisd", f"Version: {version}",
        "Summary: Reinforcement learning of reasoning models with Anti-Self-Distillation",
        "License: Apache-2.0", "Requires-Python: >=3.9",
        *(f"Requires-Dist: {requirement}" for requirement in requirements),
        "Provides-Extra: pandas", "Requires-Dist: pandas; extra == 'pandas'",
        "Description-Content-Type: text/markdown", "",
        "A C++ program that trains reasoning models with GRPO, self-distillation and "
        "Anti-Self-Distillation.\n",
        "`antisd demo` trains the shipped model for minutes on a CPU; `antisd doctor` says what this "
        "machine can do and what it lacks; `antisd help` lists the commands.\n",
        "In Python, `antisd.run([...])` runs a command and `antisd.read_run(directory)` reads a run "
        "as pandas frames.\n",
        f"Needs Linux on x86-64 with glibc {glibc} and libstdc++ with GLIBCXX_{compiler} or later.",
    ]
    return "\n".join(lines) + "\n"


class Wheel:
    """A zip file with the list of its own contents, the same bytes for the same contents."""

    def __init__(self, path, info):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info = info
        self.record = []

    def add(self, name, content, executable=False):
        entry = zipfile.ZipInfo(name)  # of the year 1980
        entry.external_attr = (0o100755 if executable else 0o100644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def add_folder(self, name, folder):
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            if "__pycache__" not in path.parts:
                self.add(f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes(),
                         executable=".so" in path.suffixes)

    def close(self):
        name = f"{self.info}/RECORD"
        self.record.append(f"{name},,")
        self.zip.writestr(zipfile.ZipInfo(name), "\n".join(self.record) + "\n")
        self.zip.close()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("--cuda", type=pathlib.Path)
    options.add_argument("--output", type=pathlib.Path, default=ROOT / "dist")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        stage = pathlib.Path(folder)
        packages = stage_files(arguments.build, arguments.cuda, stage)
        home = stage / "lib/antisd"
        if not (home / "libantisd_tensor.so").exists():
            fail(f"{arguments.build} was built without torch")
        version = output_of(stage / "bin/antisd", "--version").split()[1]
        name = f"antisd-{version}"
        files = [stage / "bin/antisd", *(path for path in home.iterdir() if path.is_file())]
        glibc, compiler = newest_symbol(files, "GLIBC"), newest_symbol(files, "GLIBCXX")
        arguments.output.mkdir(parents=True, exist_ok=True)
        path = arguments.output / f"{name}-{TAG}.whl"
        unfinished = path.with_suffix(".part")
        wheel = Wheel(unfinished, f"{name}.dist-info")
        wheel.add_folder("antisd", ROOT / "python/antisd")
        wheel.add(f"{name}.data/scripts/antisd", (stage / "bin/antisd").read_bytes(), executable=True)
        wheel.add_folder(f"{name}.data/data/lib/antisd", home)
        has_parquet = (home / "libantisd_parquet.so").exists()
        wheel.add(f"{name}.dist-info/METADATA", metadata(version, has_parquet, glibc, compiler).encode())
        wheel.add(f"{name}.dist-info/WHEEL", "\n".join([
            "Wheel-Version: 1.0", "Generator: antisd make_wheel", "Root-Is-Purelib: false",
            f"Tag: {TAG}", ""]).encode())
        wheel.add(f"{name}.dist-info/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
        for package in packages:
            wheel.add(f"{name}.dist-info/licenses/{package}", copyright_of(package).read_bytes())
        wheel.close()
        os.replace(unfinished, path)
    print(f"wheel: {os.path.relpath(path)}, {path.stat().st_size / 2**20:.1f} MiB; needs glibc {glibc} and "
          f"GLIBCXX_{compiler}; contains code of {', '.join(packages)}")


if __name__ == "__main__":
    main()
