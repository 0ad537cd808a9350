#!/usr/bin/env python3
"""Tokens per second of `serve` with many clients, against `generate` on the same rows.

    python3 tools/bench_serve.py build/antisd models/countdown [--clients 64] [--rounds 5] [--stream]

Each round runs `generate` over all rows and then sends the same rows to a server, one connection a
client, each with its share of the rows one after the other. The times of `generate` are those of
its rows, without the start of the program. Rounds alternate, so that other work on the machine
disturbs both; the figures are medians of the rounds' ratios: of tokens per second, and of tokens per
second of processor time (`--flags '--threads 1'`), which other work hardly changes.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time


def rows_of(count):
    return [{"prompt": f"{i % 9 + 1} {i % 7 + 1} {i % 11 + 1} {i % 5 + 1}"} for i in range(count)]


def processor_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Measured:
    """Rates of rounds: tokens per second, and per second of the process's processor time."""

    def __init__(self):
        self.rates, self.processor_rates = [], []

    def measure(self, rows):
        begin, before = time.perf_counter(), processor_seconds(self.process)
        tokens = self.round(rows)
        self.rates.append(tokens / (time.perf_counter() - begin))
        self.processor_rates.append(tokens / (processor_seconds(self.process) - before))


class Generate(Measured):
    """`generate` that stays open: a round is a batch of rows through its standard input."""

    def __init__(self, options):
        super().__init__()
        self.options = options
        self.process = subprocess.Popen(
            [options.binary, "generate", options.model, "--ignore-eos", "--quiet", "--max-tokens",
             str(options.tokens), "--max-sequences", str(options.clients), *options.flags.split()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def round(self, rows):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()
        tokens = 0
        for _ in rows:
            tokens += len(json.loads(self.process.stdout.readline())["ids"])
        return tokens

    def end(self):
        self.process.stdin.close()
        self.process.wait()


async def client(port, rows, options):
    """Rows one after the other over one connection; returns the number of tokens."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    tokens = 0
    for row in rows:
        body = json.dumps({**row, "max_tokens": options.tokens, "ignore_eos": True,
                           "stream": options.stream,
                           **({"stream_options": {"include_usage": True}} if options.stream else {})})
        writer.write((f"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head)
        if options.stream:
            last = b""
            while True:
                size = int(await reader.readuntil(b"\r\n"), 16)
                chunk = await reader.readexactly(size + 2)
                if size == 0:
                    break
                if b'"choices":[]' in chunk:
                    last = chunk
            tokens += json.loads(last[len(b"data: "):])["usage"]["completion_tokens"]
        else:
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            tokens += json.loads(await reader.readexactly(length))["usage"]["completion_tokens"]
    writer.close()
    return tokens


class Serve(Measured):
    def __init__(self, options):
        super().__init__()
        self.options = options
        self.process = subprocess.Popen(
            [options.binary, "serve", options.model, "--port", "0", "--quiet", "--max-sequences",
             str(options.clients), *options.flags.split()], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline().decode().strip().rsplit(":", 1)[1])

    def round(self, rows):
        async def all_clients():
            count = self.options.clients
            return sum(await asyncio.gather(
                *[client(self.port, rows[i::count], self.options) for i in range(count)]))

        return asyncio.run(all_clients())

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--flags", default="", help="for both commands, e.g. '--threads 2'")
    options = parser.parse_args()
    rows = rows_of(options.rows)
    alone, served = Generate(options), Serve(options)
    try:
        alone.round(rows[:options.clients]), served.round(rows[:options.clients])  # warm
        for _ in range(options.rounds):
            alone.measure(rows)
            served.measure(rows)
    finally:
        alone.end(), served.end()

    def ratio(ours, theirs):
        ratios = [a / b for a, b in zip(ours, theirs)]
        return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"

    print(f"generate {statistics.median(alone.rates):.0f} tokens/s, serve with {options.clients} "
          f"{'streaming ' if options.stream else ''}clients {statistics.median(served.rates):.0f}")
    print(f"serve / generate, tokens per second: {ratio(served.rates, alone.rates)}")
    print("serve / generate, tokens per second of processor time: "
          f"{ratio(served.processor_rates, alone.processor_rates)}")


if __name__ == "__main__":
    sys.exit(main())
