"""Calls a reward function of the user: the other end of src/reward/python_reward.cpp.

Standard input has one JSON object per line: {"start": ...}, then {"id", "rows"} for each call. The
answers on standard output are {"ready": "batch" | "single"} or {"refused": ...}, then for each call
{"id", "rewards", "reasons"}, or {"id", "error": "..."} where the call as a whole has failed, with
"last" if the process ends with it. What the user's code prints goes to standard error.
"""
import importlib.util
import inspect
import itertools
import json
import math
import os
import resource
import sys
import traceback

MOST_TEXT = 300  # characters of a message


def clean(text):
    """The text in one line that JSON can carry."""
    return " ".join(str(text).split())[:MOST_TEXT].encode("utf-8", "replace").decode("utf-8")


def shown(value):
    try:
        return clean(repr(value))[:80]
    except Exception:  # the user's own __repr__
        return "a value of " + type(value).__name__


class Channel:
    """The lines from and to antisd. The user's code gets others in their place."""

    def __init__(self):
        self.lines = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)  # prints are logs
        sys.stdout.reconfigure(line_buffering=True)

    def say(self, **answer):
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()


class Refused(Exception):
    """The file or the function cannot be used at all."""

    def __init__(self, what, remedy):
        super().__init__(what)
        self.what, self.remedy = what, remedy


class Misfit(Exception):
    """The function asks for what the rows do not have."""


class Misanswer(Exception):
    """The function returned something other than rewards."""


def limit_memory(megabytes):
    if megabytes > 0:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        limit = megabytes << 20
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        # Where the machine itself runs out of memory, this process goes and not the training.
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass


def described(error, file):
    """What was raised, and the last line of the user's file that it passed."""
    try:
        text = clean(error)
    except Exception:  # the user's own __str__
        text = ""
    name = type(error).__name__ + (": " + text if text else "")
    if isinstance(error, SyntaxError):
        return name  # which has the line
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__)
             if frame.filename == file]
    return name + (" (%s, line %d)" % (os.path.basename(file), lines[-1]) if lines else "")


def load(file, name):
    sys.path.insert(0, os.path.dirname(file))  # for what stands beside it
    module_name = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None:
        raise Refused("is not a Python file", "name a file that ends with .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # also SystemExit
        raise Refused("cannot be imported: " + described(error, file),
                      "fix it, or name another Python by reward.python")
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            there = [key for key, value in vars(module).items()
                     if inspect.isfunction(value) and value.__module__ == module_name]
            raise Refused("has no function '%s'" % name, "it has " + (", ".join(there) or "none"))
        found = getattr(found, part)
    if not callable(found):
        raise Refused("has '%s', which is not a function" % name, "name a function of the file")
    return found


class Function:
    """The user's function, and how it is called."""

    TRL = ("prompts", "completions", "completion_ids")
    VERL = ("data_source", "solution_str", "ground_truth", "extra_info")

    def __init__(self, call, file):
        self.call, self.file, self.loop = call, file, None
        try:
            parameters = inspect.signature(call).parameters.values()
        except (TypeError, ValueError):
            raise Refused("has a function whose parameters cannot be told", "write one in Python")
        names = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.accepted = set(names)
        self.takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
        self.required = [p.name for p in parameters
                         if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self.is_single = "solution_str" in names
        if not self.is_single and not self.takes_all and not self.accepted.intersection(self.TRL):
            raise Refused("has a function with the parameters (%s)" % ", ".join(names),
                          "take those of TRL (prompts, completions, ... -> a list of numbers) or "
                          "of verl (data_source, solution_str, ground_truth, extra_info -> a number)")

    def run(self, arguments, columns, given):
        """The function's result. Only what it asks for is passed."""
        missing = [name for name in self.required if name not in arguments]
        if missing:
            raise Misfit("it asks for '%s', which is neither one of %s nor a column of the row; the "
                         "row has: %s" % (missing[0], ", ".join(given), ", ".join(sorted(columns))))
        if not self.takes_all:
            arguments = {name: value for name, value in arguments.items() if name in self.accepted}
        result = self.call(**arguments)
        if inspect.isawaitable(result):
            result = self.wait_for(result)
        return result

    def wait_for(self, result):
        import asyncio

        async def finish():
            return await result

        if self.loop is None:  # one for all calls: clients of the user's belong to their loop
            self.loop = asyncio.new_event_loop()
            asyncio.set_event_loop(self.loop)
        return self.loop.run_until_complete(finish())

    def grade(self, rows):
        """A (reward or None, reason) for each row."""
        return [self.grade_single(row) for row in rows] if self.is_single else self.grade_batch(rows)

    def grade_batch(self, rows):
        columns = {name: None for row in rows for name in row["columns"]}
        arguments = {name: [row["columns"].get(name) for row in rows] for name in columns}
        arguments["prompts"] = [row["prompt"] for row in rows]
        is_chat = [isinstance(row["prompt"], list) for row in rows]
        arguments["completions"] = [
            [{"role": "assistant", "content": row["response"]}] if chat else row["response"]
            for row, chat in zip(rows, is_chat)]
        if all(row["ids"] is not None for row in rows):
            arguments["completion_ids"] = [row["ids"] for row in rows]
        rewards = self.run(arguments, columns, self.TRL)
        if isinstance(rewards, (str, bytes, dict)) or not hasattr(rewards, "__iter__"):
            raise Misanswer("returned %s, not a list of rewards" % shown(rewards))
        rewards = list(itertools.islice(iter(rewards), len(rows) + 1))
        if len(rewards) != len(rows):
            count = len(rewards) if len(rewards) < len(rows) else "more"
            raise Misanswer("returned %s rewards for %d completions" % (count, len(rows)))
        return [number_of(reward) for reward in rewards]

    def grade_single(self, row):
        columns = row["columns"]
        model = columns.get("reward_model")
        has_truth = isinstance(model, dict) and "ground_truth" in model
        extra = columns.get("extra_info")
        # verl passes no columns; a function that names one gets it.
        arguments = {name: value for name, value in columns.items() if name in self.accepted}
        arguments.update(
            data_source=columns.get("data_source", row["source"]),
            solution_str=row["response"],
            ground_truth=model["ground_truth"] if has_truth else row["answer"],
            extra_info=extra if isinstance(extra, dict) else columns)
        result = self.run(arguments, columns, self.VERL)
        reason = ""
        if isinstance(result, dict):
            if "score" not in result:
                raise Misanswer("returned %s, which has no 'score'" % shown(result))
            reason = result.get("reason")
            reason = clean(reason) if isinstance(reason, str) else ""
            result = result["score"]
        reward, problem = number_of(result)
        return reward, problem if reward is None and not reason else reason


def number_of(value):
    """The value as a finite number; or None and the reason."""
    if value is None:
        return None, "reward.function gave no reward"
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: torch's
        return None, "reward.function gave a reward that is not a number: " + shown(value)
    if not math.isfinite(number):
        return None, "reward.function gave a reward that is not finite: " + shown(number)
    return number, ""


class Service:
    def __init__(self, channel, function):
        self.channel, self.function, self.process = channel, function, os.getpid()
        self.has_shown = False

    def answer(self, request):
        answer, is_last = {}, False
        try:
            grades = self.function.grade(request["rows"])
            answer = {"rewards": [reward for reward, _ in grades],
                      "reasons": [reason for _, reason in grades]}
        except Misfit as error:
            answer = {"error": clean(error), "misfit": True}
        except Misanswer as error:
            answer = {"error": clean(error), "misanswer": True}
        except BaseException as error:  # also SystemExit: it costs this call alone
            is_last = isinstance(error, MemoryError)
            answer = {"error": "raised " + described(error, self.function.file), "last": is_last}
            if not is_last and not self.has_shown:
                self.has_shown = True
                traceback.print_exc()
        if os.getpid() != self.process:
            os._exit(0)  # a fork of the user's that came back
        self.channel.say(id=request["id"], **answer)
        if is_last:
            os._exit(1)  # what it holds is not known: it is replaced


def main():
    channel = Channel()
    start = json.loads(channel.lines.readline())["start"]
    limit_memory(start["memory_mb"])
    try:
        function = Function(load(start["file"], start["function"]), start["file"])
    except Refused as error:
        channel.say(refused={"what": clean(error.what), "remedy": clean(error.remedy)})
        os._exit(1)
    channel.say(ready="single" if function.is_single else "batch")
    service = Service(channel, function)
    for line in channel.lines:
        service.answer(json.loads(line))
    os._exit(0)  # threads of the user's do not hold it


main()
