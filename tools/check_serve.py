#!/usr/bin/env python3
"""Checks `antisd serve` with the openai package against `generate` and `score`.

    .deps/reference/bin/python tools/check_serve.py build/antisd MODEL [--only NAME]

MODEL has a chat template, e.g. models/countdown. Each check is a function below; the program prints
their names and stops with status 1 at the first that fails.
"""

import argparse
import contextlib
import http.client
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import openai

CHAT = [{"role": "user", "content": "1 2 3"}]


def equal(got, expected, what):
    if got != expected:
        raise AssertionError(f"{what}:\n  got      {got!r}\n  expected {expected!r}")


def close(got, expected, what, tolerance=1e-4):
    if len(got) != len(expected):
        raise AssertionError(f"{what}: {len(got)} and {len(expected)} numbers")
    for a, b in zip(got, expected):
        if not math.isclose(a, b, abs_tol=tolerance):
            raise AssertionError(f"{what}: {a} and {b}")


class Tool:
    """The command-line program."""

    def __init__(self, binary, model):
        self.binary, self.model = os.path.abspath(binary), os.path.abspath(model)

    def rows(self, command, rows, *flags):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        done = subprocess.run([self.binary, command, self.model, *flags], input=text.encode(),
                              stdout=subprocess.PIPE, check=True)
        return [json.loads(line) for line in done.stdout.decode().splitlines()]

    def generate(self, row, *flags):
        return self.rows("generate", [row], *flags)[0]


class Server:
    """`antisd serve` in the background, ended by SIGINT."""

    def __init__(self, tool, *flags, env=None):
        self.process = subprocess.Popen(
            [tool.binary, "serve", tool.model, "--port", "0", "--quiet", *flags],
            stdout=subprocess.PIPE, env={**os.environ, **(env or {})})
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            raise AssertionError("the server did not start")
        self.port = int(self.url.rsplit(":", 1)[1])

    def client(self, token="none"):
        return openai.OpenAI(base_url=self.url + "/v1", api_key=token, max_retries=0, timeout=300)

    def health(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", "/health")
        return json.loads(connection.getresponse().read())

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextlib.contextmanager
def running(*arguments, **named):
    server = Server(*arguments, **named)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            equal(server.stop(), 130, "the exit status")


def raw(server, body, path="/v1/completions", headers=None):
    """A request by hand: status and decoded body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    text = body if isinstance(body, (bytes, str)) else json.dumps(body)
    connection.request("POST", path, text, {"Content-Type": "application/json", **(headers or {})})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def refused(kind, action):
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


# ---- the checks; each gets the tool and a running server ----

def models(tool, server):
    name = os.path.basename(tool.model)
    client = server.client()
    equal([each.id for each in client.models.list()], [name], "the models")
    equal(client.models.retrieve(name).id, name, "the model")
    error = refused(openai.NotFoundError, lambda: client.models.retrieve("other/model"))
    equal(error.code, "model_not_found", "the code")
    equal(server.health()["status"], "ok", "health")


def chat(tool, server):
    name = os.path.basename(tool.model)
    flags = ["--seed", "11", "--max-tokens", "40", "--temperature", "0.8", "--top-p", "0.9"]
    expected = tool.generate({"messages": CHAT}, *flags)
    settings = dict(model=name, messages=CHAT, seed=11, max_completion_tokens=40, temperature=0.8,
                    top_p=0.9)
    answer = server.client().chat.completions.create(
        **settings, logprobs=True, top_logprobs=3, user="someone",
        extra_body={"return_token_ids": True})
    choice = answer.choices[0]
    equal(answer.object, "chat.completion", "the object")
    equal(choice.message.role, "assistant", "the role")
    equal(choice.message.content, expected["text"], "the text")
    equal(choice.model_extra["token_ids"], expected["ids"], "the ids")
    equal(choice.finish_reason, expected["finish_reason"], "the reason")
    equal(answer.usage.completion_tokens, len(expected["ids"]), "the tokens used")
    prompt_ids = choice.model_extra["prompt_token_ids"]
    equal(answer.usage.prompt_tokens, len(prompt_ids), "the prompt's tokens")
    logp = [token.logprob for token in choice.logprobs.content]
    scored = tool.rows("score", [{"prompt_ids": prompt_ids, "response_ids": expected["ids"]}])[0]
    close(logp, scored["logp"], "logprobs against score")
    for token in choice.logprobs.content:
        top = [other.logprob for other in token.top_logprobs]
        equal(len(top), 3, "top_logprobs")
        equal(top, sorted(top, reverse=True), "their order")
        if token.logprob > top[-1] and token.token not in [x.token for x in token.top_logprobs]:
            raise AssertionError("a likely token is not among the likeliest")
    # Streamed, it is the same.
    text, tokens, reasons, usage, roles = "", [], [], None, []
    stream = server.client().chat.completions.create(
        **settings, logprobs=True, stream=True, stream_options={"include_usage": True},
        extra_body={"return_token_ids": True})
    for chunk in stream:
        equal(chunk.object, "chat.completion.chunk", "the object")
        usage = chunk.usage or usage
        for part in chunk.choices:
            roles += [part.delta.role] if part.delta.role else []
            text += part.delta.content or ""
            tokens += part.model_extra.get("token_ids") or []
            reasons += [part.finish_reason] if part.finish_reason else []
    equal((text, tokens, reasons, roles),
          (expected["text"], expected["ids"], [expected["finish_reason"]], ["assistant"]),
          "the stream")
    equal(usage.completion_tokens, len(expected["ids"]), "the stream's usage")
    parts = [{"role": "user", "content": [{"type": "text", "text": "1 2"},
                                          {"type": "text", "text": " 3"}]}]
    again = server.client().chat.completions.create(**{**settings, "messages": parts})
    equal(again.choices[0].message.content, expected["text"], "content in parts")


def completions(tool, server):
    name = os.path.basename(tool.model)
    client = server.client()
    flags = ["--seed", "3", "--max-tokens", "24", "--top-k", "9"]
    rows = [{"prompt": "4 5 6"}, {"prompt": "7 8 9 10"}]
    expected = tool.rows("generate", rows, "--n", "3", *flags)
    settings = dict(model=name, seed=3, max_tokens=24, n=3,
                    extra_body={"top_k": 9, "return_token_ids": True})
    answer = client.completions.create(prompt=[row["prompt"] for row in rows], **settings)
    wanted = [(s["text"], s["ids"], s["finish_reason"]) for row in expected for s in row["samples"]]
    equal([(c.text, c.model_extra["token_ids"], c.finish_reason) for c in answer.choices], wanted,
          "the choices of two prompts")
    equal([c.index for c in answer.choices], list(range(6)), "the indices")
    ids = [answer.choices[i].model_extra["prompt_token_ids"] for i in (0, 3)]
    by_ids = client.completions.create(prompt=ids, **settings)
    equal([c.text for c in by_ids.choices], [w[0] for w in wanted], "prompts as ids")
    first = client.completions.create(prompt=ids[0], **settings)
    equal([c.text for c in first.choices], [w[0] for w in wanted[:3]], "one prompt as ids")
    streamed = [""] * 6
    for chunk in client.completions.create(prompt=ids, stream=True, **settings):
        for part in chunk.choices:
            streamed[part.index] += part.text
    equal(streamed, [w[0] for w in wanted], "the streamed texts")
    # logprobs: an integer, against score.
    answer = client.completions.create(model=name, prompt=ids[0], seed=5, logprobs=2,
                                       extra_body={"return_token_ids": True})
    equal(answer.usage.completion_tokens <= 16, True, "16 tokens unless told")
    choice = answer.choices[0]
    scored = tool.rows("score", [{"prompt_ids": ids[0],
                                  "response_ids": choice.model_extra["token_ids"]}])[0]
    close(choice.logprobs.token_logprobs, scored["logp"], "logprobs against score")
    equal(len(choice.logprobs.top_logprobs), len(scored["logp"]), "top_logprobs")
    # Without a seed two answers differ; temperature 0 is greedy.
    texts = {client.completions.create(model=name, prompt="1 2 3", max_tokens=30).choices[0].text
             for _ in range(5)}
    if len(texts) < 2:
        raise AssertionError("five answers without a seed are all the same")
    greedy = tool.generate({"prompt": "1 2 3"}, "--temperature", "0", "--max-tokens", "20",
                           "--ignore-eos")
    same = client.completions.create(model=name, prompt="1 2 3", temperature=0, max_tokens=20,
                                     extra_body={"ignore_eos": True})
    equal(same.choices[0].text, greedy["text"], "the greedy text")
    equal(same.usage.completion_tokens, 20, "ignore_eos")


def stops(tool, server):
    client = server.client()
    name = os.path.basename(tool.model)
    flags = ["--seed", "21", "--max-tokens", "60", "--ignore-eos"]
    whole = tool.generate({"prompt": "3 4 5"}, *flags)["text"]
    stop = [whole[len(whole) // 2:][:3], "never said"]
    expected = tool.generate({"prompt": "3 4 5"}, *flags, "--stop", stop[0], "--stop", stop[1])
    equal(expected["finish_reason"], "stop", "what generate says")
    settings = dict(model=name, prompt="3 4 5", seed=21, max_tokens=60, stop=stop,
                    extra_body={"ignore_eos": True, "return_token_ids": True})
    answer = client.completions.create(**settings)
    equal(answer.choices[0].text, expected["text"], "the text before the stop")
    equal(answer.choices[0].model_extra["token_ids"], expected["ids"], "its ids")
    equal(answer.choices[0].finish_reason, "stop", "the reason")
    text = "".join(part.text for chunk in client.completions.create(**settings, stream=True)
                   for part in chunk.choices)
    equal(text, expected["text"], "the streamed text: nothing of the stop string was shown")
    one = client.completions.create(**{**settings, "stop": stop[0]})
    equal(one.choices[0].text, expected["text"], "a stop that is no list")


def errors(tool, server):
    client = server.client()
    name = os.path.basename(tool.model)

    def create(**settings):
        return client.completions.create(**{"model": name, "prompt": "1 2", **settings})

    bad = openai.BadRequestError
    error = refused(bad, lambda: create(prompt=[1] * 5000))
    for part in ("5000", "1024"):
        if part not in str(error):
            raise AssertionError(f"a long prompt: no {part} in {error}")
    equal(error.code, "context_length_exceeded", "the code")
    equal(refused(bad, lambda: create(n=0)).param, "n", "the parameter")
    equal(refused(bad, lambda: create(extra_body={"temperatur": 0})).code, "unknown_parameter",
          "an unknown parameter")
    for settings in (dict(temperature=-1), dict(top_p=0), dict(top_p=7), dict(logprobs=21),
                     dict(logit_bias={"5": 1}), dict(presence_penalty=1), dict(echo=True),
                     dict(best_of=4), dict(suffix="x"), dict(stop=[""]), dict(stop=["a"] * 17),
                     dict(prompt=""), dict(prompt=[]), dict(prompt=[[]]), dict(prompt=[10 ** 6]),
                     dict(prompt=[1, "a"]), dict(max_tokens=0), dict(seed=-1), dict(n=100000),
                     dict(stream_options={"include_usage": True}),
                     dict(extra_body={"top_k": "many"}), dict(extra_body={"prompt": {"a": 1}})):
        refused(bad, lambda: create(**settings))
    create(presence_penalty=0, frequency_penalty=0, logit_bias={}, user="u", echo=False, best_of=1)
    refused(openai.NotFoundError, lambda: create(model="gpt"))
    ask = client.chat.completions.create
    for settings in (dict(messages=[]), dict(messages=[{"content": "x"}]),
                     dict(tools=[{"type": "function", "function": {"name": "f"}}]),
                     dict(top_logprobs=2), dict(response_format={"type": "json_object"}),
                     dict(reasoning_effort="low"),
                     dict(messages=[{"role": "user", "content": [{"type": "image_url"}]}]),
                     dict(extra_body={"chat_template_kwargs": {"nobody_reads_this": 1}})):
        refused(bad, lambda: ask(**{"model": name, "messages": CHAT, **settings}))
    # By hand: what no client library sends.
    for body in (b"", b"{", b"[]", b"\xff", b'{"prompt": NaN}', b"[" * 5000, b"null"):
        status, answer = raw(server, body)
        equal(status, 400, f"the status of {body[:20]!r}")
        equal(sorted(answer["error"]), ["code", "message", "param", "type"], "the error object")
    equal(raw(server, b"x" * (5 << 20))[0], 413, "a long body")
    equal(raw(server, {}, path="/v1/nothing")[0], 404, "an unknown path")
    equal(raw(server, {}, path="/v1/models")[0], 405, "a wrong method")
    equal(raw(server, {"prompt": "1"}, headers={"Host": "evil.example"})[0], 403, "another host")
    equal(raw(server, {"prompt": "1"}, headers={"Origin": "http://evil.example"})[0], 403,
          "a page of another site")


def many_clients(tool, server, clients=100):
    """Clients at once. Half of them are greedy, each with its own prompt; the others sample, with ten
    prompts, seeds and temperatures. Each gets what `generate` gives alone."""
    def settings_of(i):
        if i % 2 == 0:
            return {"prompt": f"{i % 9 + 1} {i // 9 + 1} {i % 5 + 1}", "temperature": 0}
        kind = i // 2 % 10
        return {"prompt": f"{kind + 1} 7 9", "temperature": 0.5 + kind / 10, "seed": kind}

    length = ["--max-tokens", "25", "--ignore-eos"]
    rows = [{"prompt": settings_of(i)["prompt"]} for i in range(0, clients, 2)]
    greedy = tool.rows("generate", rows, "--temperature", "0", *length)
    expected = {i: row["ids"] for i, row in zip(range(0, clients, 2), greedy)}
    for kind in range(10):
        each = settings_of(2 * kind + 1)
        ids = tool.generate({"prompt": each["prompt"]}, "--temperature", str(each["temperature"]),
                            "--seed", str(each["seed"]), *length)["ids"]
        expected.update({i: ids for i in range(2 * kind + 1, clients, 20)})
    got, problems, together = {}, [], threading.Barrier(clients)

    def ask(i):
        try:
            with contextlib.closing(server.client()) as client:
                together.wait()
                settings = dict(model=os.path.basename(tool.model), max_tokens=25,
                                **settings_of(i),
                                extra_body={"ignore_eos": True, "return_token_ids": True})
                if i % 3 == 0:
                    got[i] = [id for chunk in client.completions.create(**settings, stream=True)
                              for part in chunk.choices for id in part.model_extra["token_ids"]]
                else:
                    answer = client.completions.create(**settings)
                    got[i] = answer.choices[0].model_extra["token_ids"]
        except Exception as error:  # noqa: BLE001: reported below
            problems.append(f"client {i}: {error!r}")

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise AssertionError("\n".join(problems[:3]))
    for i in range(clients):
        equal(got[i], expected[i], f"client {i}")


def disconnects(tool, server):
    """Clients that leave, streaming or waiting, free their places; idle ones cost nothing."""
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    partial = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for each in partial:
        each.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n")
    long = {"prompt": "1 2 3", "max_tokens": 900, "ignore_eos": True, "n": 8}
    leaving = []
    for stream in (False, True, True):
        text = json.dumps({**long, "stream": stream})
        each = socket.create_connection(("127.0.0.1", server.port))
        each.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        leaving.append(each)
    # One that asks for a stream and never reads: the others are answered all the same.
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", server.port))
    text = json.dumps({**long, "stream": True, "logprobs": 5})
    deaf.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                 f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
    while server.health()["running"] == 0:
        time.sleep(0.01)
    for each in leaving:
        each.close()
    equal(raw(server, {"prompt": "1 2"})[0], 200, "the status beside a client that does not read")
    while server.health()["running"] + server.health()["waiting"] > 0:
        time.sleep(0.01)
    equal(raw(server, {"prompt": "1 2"})[0], 200, "the next client's status")
    for each in idle + partial + [deaf]:
        each.close()


def limits(tool, server):
    """A full queue, a token, a stop while answers are under way."""
    with running(tool, "--max-sequences", "2", "--max-waiting", "1", "--name", "tiny") as small:
        client = small.client()
        stream = client.completions.create(model="tiny", prompt="1 2", n=2, max_tokens=900,
                                           stream=True, extra_body={"ignore_eos": True})
        next(iter(stream))
        more = threading.Thread(target=raw, args=(small, {"prompt": "1", "max_tokens": 2}))
        more.start()
        while small.health()["waiting"] == 0 and small.health()["running"] > 0:
            time.sleep(0.005)
        if small.health()["running"] > 0:  # else the machine was too slow to catch it
            status, answer = raw(small, {"prompt": "1", "max_tokens": 2, "n": 2})
            if status not in (200, 429):
                raise AssertionError(f"a full queue: {status} {answer}")
        refused(openai.BadRequestError, lambda: client.completions.create(model="tiny", prompt="1",
                                                                          n=4))
        stream.close()
        more.join()
    secret = "s3cret"
    with running(tool, "--host", "0.0.0.0", env={"ANTISD_TOKEN": secret}) as guarded:
        name = os.path.basename(tool.model)
        refused(openai.AuthenticationError, lambda: guarded.client("wrong").models.list())
        refused(openai.AuthenticationError, lambda: guarded.client("s3cre").models.list())
        equal([m.id for m in guarded.client(secret).models.list()], [name], "with the token")
        equal(guarded.health()["status"], "ok", "health needs none")
    env = {key: value for key, value in os.environ.items() if key != "ANTISD_TOKEN"}
    done = subprocess.run([tool.binary, "serve", tool.model, "--host", "0.0.0.0"], env=env,
                          capture_output=True, check=False)
    equal(done.returncode, 2, "the status without a token")
    if b"ANTISD_TOKEN" not in done.stderr:
        raise AssertionError(done.stderr)
    # SIGTERM: the answer under way is finished, and nothing is cut that a few seconds can do.
    server = Server(tool)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(
        raw(server, {"prompt": "1 2", "max_tokens": 400, "ignore_eos": True})))
    asking.start()
    while server.health()["running"] == 0 and asking.is_alive():
        time.sleep(0.002)
    equal(server.stop(signal.SIGTERM), 130, "the exit status")
    asking.join()
    if answers[0][0] not in (200, 503):
        raise AssertionError(answers)


CHECKS = [models, chat, completions, stops, errors, many_clients, disconnects, limits]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary")
    parser.add_argument("model")
    parser.add_argument("--only", help="one check, by name")
    options = parser.parse_args()
    tool = Tool(options.binary, options.model)
    with running(tool) as server:
        for check in CHECKS:
            if options.only in (None, check.__name__):
                check(tool, server)
                print(check.__name__, flush=True)


if __name__ == "__main__":
    sys.exit(main())
