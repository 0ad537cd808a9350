#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "cli/command_testing.h"
#include "hub/fetch/testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

class FetchCommand : public testing::CommandTest {
 protected:
  FetchCommand() { hub_.add_usual(); }

  void start(const std::string& faults = "") {
    hub_.start(faults);
    setenv("HF_ENDPOINT", hub_.address().c_str(), 1);
    setenv("HF_HOME", path("home").c_str(), 1);
  }
  ~FetchCommand() override {
    for (const char* name : {"HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE"})
      unsetenv(name);
  }

  testing::LoopbackHub hub_;
};

TEST_F(FetchCommand, PrintsTheFolder) {
  start();
  const Outcome outcome = run("fetch openai/gsm8k");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string folder = outcome.out.substr(0, outcome.out.find('\n'));
  EXPECT_EQ(read_file(fs::path(folder) / "README.md"), "# rows\n");
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("data set openai/gsm8k at "), HasSubstr("README.md"),
                                 HasSubstr("2 files, 2 of them new")));
  EXPECT_EQ(run("fetch openai/gsm8k --quiet").err, "");
  setenv("HF_HUB_OFFLINE", "1", 1);
  EXPECT_EQ(run("fetch openai/gsm8k").out, outcome.out);
  const Outcome absent = run("fetch Qwen/Tiny");
  EXPECT_EQ(absent.status, 2);
  EXPECT_THAT(absent.err, HasSubstr("HF_HUB_OFFLINE"));
}

TEST_F(FetchCommand, SaysWhatIsWrong) {
  start();
  for (const std::string name : {"../x", "a/b/c", "openai/gsm8k:main", "x@"}) {
    const Outcome outcome = run("fetch " + name);
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_THAT(outcome.err, HasSubstr("not a name of the hub"));
  }
  EXPECT_EQ(run("fetch no/body").status, 2);
  EXPECT_EQ(run("fetch").status, 2);
}

TEST_F(FetchCommand, GoesOnAfterCtrlC) {
  start("--slow 0.05");
  const pid_t process = launch("fetch Qwen/Tiny");
  const fs::path blobs = folder_ / "home/hub/models--Qwen--Tiny/blobs";
  const auto part = [&] {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(blobs, error))
      if (entry.path().extension() == ".incomplete" && entry.file_size(error) > 0) return true;
    return false;
  };
  for (int i = 0; i < 3000 && !part(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(process, SIGINT);
  EXPECT_EQ(status_of(process), 130);
  EXPECT_THAT(read_file(folder_ / "err"), HasSubstr("the same command goes on"));
  EXPECT_TRUE(part());
  start();
  hub_.clear_log();
  ASSERT_EQ(run("fetch Qwen/Tiny").status, 0);
  EXPECT_THAT(hub_.log(), HasSubstr("range=bytes="));
  EXPECT_FALSE(part());
}

}  // namespace
}  // namespace antisd::inline cli
