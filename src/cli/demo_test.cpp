// `demo` as a user runs it, made small: twice the same, done once, without its model.
#ifdef ANTISD_TORCH

#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/wait.h>

#include "core/testing.h"
#include "io/atomic_file.h"

namespace antisd {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Demo : public ::testing::Test {
 protected:
  struct Outcome {
    int status = -1;
    std::string out, err;
  };

  Outcome run(const fs::path& program, const std::string& directory) const {
    const std::string command = fmt::format(
        "cd '{}' && '{}' demo --dir {} train.steps=2 eval.every=2 rollout.prompts_per_step=2 "
        "eval.benches=countdown:3:held-out:16 >out 2>err",
        folder_.path().string(), program.string(), directory);
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(folder_ / "out"),
            read_file(folder_ / "err")};
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Demo, SaysTheSameTwiceAndTrainsOnce) {
  const fs::path program = fs::path(ANTISD_BINARY_DIR) / "antisd";
  const Outcome first = run(program, "a"), second = run(program, "b"), again = run(program, "a");
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("two-sided gate, because"));
  EXPECT_THAT(first.err, HasSubstr("0/2      accuracy")) << "no terminal: a line an evaluation";
  EXPECT_THAT(first.out, AllOf(HasSubstr("minus grpo"), HasSubstr("antisd-two-sided: solved"),
                               HasSubstr("a/report.html")));
  EXPECT_TRUE(fs::exists(folder_ / "a/report.html"));
  const auto table = [](const std::string& out) { return out.substr(0, out.find("Curves")); };
  EXPECT_EQ(table(first.out), table(second.out));
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("3 finished before"));
  EXPECT_EQ(again.out, first.out);
}

TEST_F(Demo, SaysWhereItsModelComesFrom) {
  fs::copy_file(fs::path(ANTISD_BINARY_DIR) / "antisd", folder_ / "antisd");
  const Outcome outcome = run(folder_ / "antisd", "a");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the shipped model is not here"),
                                 HasSubstr("antisd pretrain recipes/countdown/pretrain.toml")));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

}  // namespace
}  // namespace antisd

#endif
