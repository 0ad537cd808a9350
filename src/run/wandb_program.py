"""Hands the metrics of a run to wandb: the other end of src/run/wandb_logger.cpp.

Standard input has one JSON object per line: {"start": ...}, then {"step", "values"} for each row,
then {"end": ...}. The answers on standard output are {"ready": ...}, {"done": true} and, before it
gives up, {"error": "..."}.
"""
import json
import os
import secrets
import sys


class Channel:
    """The lines from and to the trainer. wandb, and what it starts, gets /dev/null in their place."""

    def __init__(self):
        self.lines = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)

    def say(self, **answer):
        self.answers.write(json.dumps(answer) + "\n")
        self.answers.flush()


class Memory:
    """wandb.json: which wandb run this is, and the last step that it has."""

    def __init__(self, path):
        self.path = path

    def read(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                saved = json.load(file)
            if isinstance(saved["id"], str) and isinstance(saved["last_step"], int):
                return saved
        except (OSError, ValueError, KeyError, TypeError):
            pass
        return {}

    def write(self, run_id, last_step):
        try:
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump({"id": run_id, "last_step": last_step}, file)
                file.write("\n")
            os.replace(self.path + ".new", self.path)
        except OSError:
            pass  # a full disk or a removed directory: the trainer says so itself


class Log:
    """The run at wandb. Its steps increase: one that it has already is left out."""

    def __init__(self, wandb, start):
        self.memory = Memory(start["memory"])
        saved = self.memory.read() if start["step"] > 0 else {}
        run_id = saved.get("id") or os.environ.get("WANDB_RUN_ID") or secrets.token_hex(4)
        names = self.named(start)
        if os.environ.get("WANDB_MODE") != "offline":  # there wandb warns that it means nothing
            names["resume"] = "allow"
        self.run = wandb.init(id=run_id, config=start["config"], allow_val_change=True,
                              settings=wandb.Settings(console="off", silent=True), **names)
        self.last = saved.get("last_step", -1)
        if self.run.resumed and not self.run.offline:
            self.last = self.run.step - 1  # the server knows what has arrived
        self.memory.write(self.run.id, self.last)
        self.catch_up(start["metrics"], start["step"])

    @staticmethod
    def named(start):
        """What the configuration names, and what neither it nor the environment does."""
        names = {key: start[key] for key in ("project", "entity", "name", "group", "tags") if start[key]}
        defaults = (("project", "WANDB_PROJECT", "antisd"), ("dir", "WANDB_DIR", start["dir"]),
                    ("name", "WANDB_NAME", os.path.basename(os.path.abspath(start["dir"]))))
        for key, variable, value in defaults:
            if key not in names and not os.environ.get(variable):
                names[key] = value
        return names

    def catch_up(self, metrics, step):
        """Rows of earlier starts that wandb never got, such as those before it was switched on."""
        try:
            with open(metrics, encoding="utf-8") as file:
                lines = file.readlines()
        except OSError:
            return
        for line in lines:
            try:
                row = json.loads(line)
                row_step = row.pop("training/global_step")
            except (ValueError, KeyError, AttributeError, TypeError):
                continue
            if isinstance(row_step, int) and row_step <= step:
                self.add(row_step, row)

    def add(self, step, values):
        values = {name: value for name, value in values.items() if value is not None}
        if step <= self.last:
            return False
        if "time" in values:
            values["_timestamp"] = values.pop("time")
        values["training/global_step"] = step
        self.run.log(values, step=step, commit=True)
        self.last = step
        self.memory.write(self.run.id, step)
        return True

    def amend(self, step, values):
        """An evaluation that came after its row was sent: the row stays as it is."""
        if not self.add(step, values):
            self.run.summary.update({name: value for name, value in values.items() if value is not None})

    def end(self, end):
        self.run.summary.update({"exit_reason": end["reason"], "last_step": end["last_step"]})
        self.run.finish(exit_code=end["exit_code"])


def serve(channel):
    start = json.loads(next(channel.lines))["start"]
    import wandb  # after wandb's streams were taken away
    log = Log(wandb, start)
    offline = bool(log.run.offline)
    channel.say(ready={"id": log.run.id, "url": None if offline else log.run.url, "offline": offline,
                       "dir": os.path.dirname(log.run.dir)})
    for line in channel.lines:
        order = json.loads(line)
        if "end" in order:
            log.end(order["end"])
            channel.say(done=True)
            return
        (log.amend if order.get("amend") else log.add)(order["step"], order["values"])


def main():
    sys.path[:] = [folder for folder in sys.path if folder]  # not ./wandb, where wandb puts its runs
    channel = Channel()
    try:
        serve(channel)
    except BaseException as error:  # also SystemExit: whatever ends it is told
        text = str(error).strip().splitlines()
        try:
            channel.say(error=type(error).__name__ + (": " + text[0] if text else ""))
        except OSError:
            pass  # the trainer is gone
        os._exit(1)


main()
