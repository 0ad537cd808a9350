#include "run/wandb_logger.h"

#include <csignal>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "core/error.h"
#include "core/testing.h"
#include "io/atomic_file.h"
#include "run/config_json.h"
#include "run/run_files.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// A module that writes down how it is used.
constexpr const char* kModule = R"(
import json, os
FOLDER = os.path.dirname(os.path.abspath(__file__))
def note(**call):
    with open(os.path.join(FOLDER, "calls"), "a") as file:
        file.write(json.dumps(call) + "\n")
def Settings(**settings):
    return settings
class Summary:
    def update(self, values):
        note(summary=values)
class Run:
    resumed, offline, step, url, summary = False, True, 0, None, Summary()
    dir = FOLDER + "/run/files"
    def __init__(self, id):
        self.id = id
    def log(self, values, step, commit):
        note(step=step, values=values)
    def finish(self, exit_code):
        note(finish=exit_code)
def init(**named):
    note(init=named)
    return Run(named["id"])
)";

MetricSet row_of(double value) {
  MetricSet metrics;
  metrics.set("loss", value);
  metrics.set("nothing", NAN);
  return metrics;
}

class Wandb : public ::testing::Test {
 protected:
  Wandb() {
    fs::create_directories(run_);
    setenv("ANTISD_PYTHON", python("").c_str(), 1);
    for (const char* name : {"WANDB_PROJECT", "WANDB_NAME", "WANDB_DIR", "WANDB_RUN_ID"})
      unsetenv(name);
  }
  ~Wandb() override { unsetenv("ANTISD_PYTHON"); }

  // A Python with the modules of this test.
  std::string python(const std::string& options) const {
    const fs::path script = folder_ / "python";
    write_file_atomically(script, fmt::format("#!/bin/sh\nPYTHONPATH='{}' exec python3 {} \"$@\"\n",
                                              folder_.path().string(), options));
    ::chmod(script.c_str(), 0755);
    return script.string();
  }

  // The module is kModule and what `more` changes about it.
  WandbLogger start(const std::string& more = "", std::int64_t step = 0,
                    std::size_t queue = 16 << 20) {
    write_file_atomically(folder_ / "wandb.py", kModule + more);
    return WandbLogger({.config = config_,
                        .directory = run_,
                        .step = step,
                        .settings = {{"train", {{"steps", 3}}}},
                        .max_queued_bytes = queue},
                       {.info = [this](const std::string& text) { said_.push_back(text); },
                        .warn = [this](const std::string& text) { warned_.push_back(text); }});
  }

  std::vector<Json> calls() const {
    std::vector<Json> calls;
    if (!fs::exists(folder_ / "calls")) return calls;
    const std::string text = read_file(folder_ / "calls");
    for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
         begin = end + 1)
      calls.push_back(Json::parse(text.substr(begin, end - begin)));
    return calls;
  }
  std::vector<std::int64_t> logged_steps() const {
    std::vector<std::int64_t> steps;
    for (const Json& call : calls())
      if (call.contains("step")) steps.push_back(call["step"]);
    return steps;
  }
  // Of a process whose number the module wrote down.
  bool lives(const std::string& file) const {
    return ::kill(std::stoi(read_file(folder_ / file)), 0) == 0;
  }

  testing::TemporaryFolder folder_;
  fs::path run_ = folder_ / "first";
  WandbConfig config_;
  std::vector<std::string> said_, warned_;
};

TEST_F(Wandb, TellsConfigurationRowsAndEnd) {
  config_ = {.project = "sums", .group = "small", .tags = {"a", "b"}};
  WandbLogger logger = start();
  logger.amend(0, row_of(4));
  logger.log(1, row_of(0.5));
  logger.log(2, row_of(0.25));
  logger.amend(2, row_of(8));
  logger.finish("stopped by a signal", 2);
  const std::vector<Json> found = calls();
  ASSERT_THAT(found, SizeIs(7));
  const Json& init = found[0]["init"];
  EXPECT_EQ(init["project"], "sums");
  EXPECT_EQ(init["group"], "small");
  EXPECT_EQ(init["name"], "first");  // the run directory's
  EXPECT_EQ(init["tags"], Json({"a", "b"}));
  EXPECT_EQ(init["dir"], run_.string());
  EXPECT_EQ(init["config"], Json({{"train", {{"steps", 3}}}}));
  EXPECT_FALSE(init.contains("entity"));
  EXPECT_EQ(found[1], Json({{"step", 0}, {"values", {{"loss", 4}, {"training/global_step", 0}}}}));
  EXPECT_EQ(found[3],
            Json({{"step", 2}, {"values", {{"loss", 0.25}, {"training/global_step", 2}}}}));
  EXPECT_EQ(found[4], Json({{"summary", {{"loss", 8}}}}));  // its row is gone
  EXPECT_EQ(found[5]["summary"]["exit_reason"], "stopped by a signal");
  EXPECT_EQ(found[6], Json({{"finish", 130}}));
  EXPECT_THAT(said_, ElementsAre(HasSubstr(init["id"].get<std::string>())));
  EXPECT_THAT(warned_, IsEmpty());
}

TEST_F(Wandb, ALaterStartGoesOnWithTheSameRunAndRepeatsNoStep) {
  write_file_atomically(run_ / kMetricsFile,
                        "{\"training/global_step\":1,\"loss\":1,\"time\":5}\n"
                        "{\"training/global_step\":2,\"loss\":2}\n"
                        "{\"training/glo");
  {
    WandbLogger logger = start("", 1);  // wandb is switched on after a step
    logger.log(2, row_of(2));
    logger.log(3, row_of(3));
    logger.finish("failed: here", 3);
  }
  {
    WandbLogger logger = start("", 2);
    logger.log(3, row_of(3));
    logger.log(4, row_of(4));
    logger.finish("finished", 4);
  }
  EXPECT_THAT(logged_steps(), ElementsAre(1, 2, 3, 4));
  const std::vector<Json> found = calls();
  EXPECT_EQ(found[1]["values"]["_timestamp"], 5);
  EXPECT_EQ(found[5], Json({{"finish", 1}}));
  EXPECT_EQ(found[6]["init"]["id"], found[0]["init"]["id"]);
  WandbLogger other = start();  // nothing was done before: another run
  other.finish("finished", 0);
  EXPECT_NE(calls()[10]["init"]["id"], found[0]["init"]["id"]);
}

// The server may have more than the file of the last steps says, or less.
TEST_F(Wandb, OnlineTheServerKnowsTheLastStep) {
  write_file_atomically(run_ / kWandbFile, R"({"id": "abc", "last_step": 9})");
  WandbLogger logger = start("\nRun.resumed, Run.offline, Run.step = True, False, 5\n", 3);
  for (const int step : {4, 5, 6})
    logger.log(step, row_of(step));
  logger.finish("finished", 6);
  EXPECT_THAT(logged_steps(), ElementsAre(5, 6));
}

TEST_F(Wandb, AFailureIsOneWarningAndTheRunGoesOn) {
  struct Case {
    const char *module, *warning;
  };
  const Case cases[] = {
      {"\nraise ImportError('half installed')", "ImportError: half installed"},
      {"\ndef init(**named): raise RuntimeError('no key\\nmore')", "RuntimeError: no key."},
      {"\ndef init(**named): raise SystemExit(3)", "SystemExit: 3"},
      {"\ndef log(self, *_, **__): raise ValueError('bad row')\nRun.log = log",
       "ValueError: bad row"},
      {"\ndef finish(self, exit_code): raise OSError('disk')\nRun.finish = finish",
       "OSError: disk"},
      {"\ndef init(**named): os.kill(os.getpid(), 9)", "killed by signal 9"},
      {"\ndef init(**named): os._exit(7)", "ended with status 7"},
      {"\nimport time\ndef init(**named):\n  os.closerange(0, 100)\n  time.sleep(100)",
       "it closed its input"},
  };
  for (const Case& one : cases) {
    warned_.clear();
    WandbLogger logger = start(one.module);
    for (int step = 1; step < 30; ++step)
      logger.log(step, row_of(step));
    logger.finish("finished", 29);
    logger.log(30, row_of(30));
    EXPECT_THAT(warned_, ElementsAre(HasSubstr(one.warning))) << one.module;
  }
}

TEST_F(Wandb, OneThatHangsLosesRowsAndIsEnded) {
  config_.finish_s = 0.3;
  WandbLogger logger = start(R"(
import time
def init(**named):
    note(init={})
    with open(os.path.join(FOLDER, "pid"), "w") as file:
        file.write(str(os.getpid()))
    if os.fork() == 0:
        with open(os.path.join(FOLDER, "child"), "w") as file:
            file.write(str(os.getpid()))
        os.setsid()
    while True:
        time.sleep(100)
)",
                             0, 500'000);
  MetricSet large;
  for (int i = 0; i < 1000; ++i)
    large.set(fmt::format("a_long_name_of_a_metric/{}", i), i);
  for (int step = 1; step <= 200; ++step)
    logger.log(step, large);  // 7 MB
  ASSERT_THAT(warned_, ElementsAre(HasSubstr("does not take its rows")));
  while (!fs::exists(folder_ / "child") || read_file(folder_ / "child").empty())
    usleep(10'000);
  EXPECT_TRUE(lives("pid"));
  logger.finish("finished", 200);
  ASSERT_THAT(warned_, SizeIs(3));
  EXPECT_THAT(warned_[1], HasSubstr("rows, which it did not take"));
  EXPECT_THAT(warned_[2], HasSubstr("was not done after 0.3 s"));
  EXPECT_FALSE(lives("pid"));
  EXPECT_FALSE(lives("child"));
}

TEST_F(Wandb, WhatItPrintsAndStartsChangesNothing) {
  WandbLogger logger = start(R"(
import subprocess
class Loud(Run):
    def log(self, values, step, commit):
        print("{\"error\": \"printed\"}", flush=True)
        subprocess.run(["sh", "-c", "echo '{\"done\": true}'; cat"])
        super().log(values, step, commit)
def init(**named):
    os.write(1, b"\xff" * 100000)
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    with open(os.path.join(FOLDER, "child"), "w") as file:
        file.write(str(process.pid))
    return Loud(named["id"])
)");
  for (const int step : {1, 2, 3})
    logger.log(step, row_of(step));
  logger.finish("finished", 3);
  EXPECT_THAT(warned_, IsEmpty());
  EXPECT_THAT(logged_steps(), ElementsAre(1, 2, 3));
  EXPECT_FALSE(lives("child"));
}

TEST_F(Wandb, APythonWithoutItIsNamed) {
  const auto message = [] {
    try {
      check_wandb();
    } catch (const InputError& error) {
      return error.message();
    }
    return std::string();
  };
  write_file_atomically(folder_ / "wandb.py", kModule);
  EXPECT_EQ(message(), "");
  fs::remove(folder_ / "wandb.py");
  setenv("ANTISD_PYTHON", python("-S").c_str(), 1);         // without installed packages
  fs::create_directories(folder_ / "wandb/offline-run-1");  // as wandb leaves them, no package
  EXPECT_THAT(message(), HasSubstr("has no package wandb"));
  EXPECT_THAT(message(), HasSubstr("-m pip install wandb"));
  setenv("ANTISD_PYTHON", (folder_ / "it's not there").c_str(), 1);
  EXPECT_THAT(message(), HasSubstr("it's not there cannot be run"));
  setenv("ANTISD_PYTHON", "false", 1);
  EXPECT_THAT(message(), HasSubstr("false does not work"));
}

TEST(ConfigJson, IsATreeOfTheValues) {
  RunConfig config;
  for (const char* setting : {"train.steps=7", "optim.lr=2e-06", "eval.n.aime24=4",
                              "record.loggers=wandb", "method.name=grpo", "data.shuffle=false"})
    config.options().assign(setting);
  const Json tree = config_json(config);
  EXPECT_EQ(tree["train"]["steps"], 7);
  EXPECT_EQ(tree["optim"]["lr"], 2e-6);
  EXPECT_EQ(tree["eval"]["n"]["aime24"], 4);
  EXPECT_EQ(tree["record"]["loggers"], Json({"wandb"}));
  EXPECT_EQ(tree["method"]["name"], "grpo");
  EXPECT_EQ(tree["data"]["shuffle"], false);
}

}  // namespace
}  // namespace antisd::inline run
