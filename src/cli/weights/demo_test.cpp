// `demo` as a user runs it, made small: two runs give the same, a finished one is not repeated, and
// what it says without its model.

#include "cli/command_testing.h"

namespace antisd::inline cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

std::string small_demo(const std::string& directory) {
  return "demo --dir " + directory +
         " train.steps=2 eval.every=2 rollout.prompts_per_step=2 "
         "eval.benches=countdown:3:held-out:16";
}

class Demo : public testing::CommandTest {};

TEST_F(Demo, SaysTheSameTwiceAndTrainsOnce) {
  const Outcome first = run(small_demo("a")), second = run(small_demo("b")),
                again = run(small_demo("a"));
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
  for (const char* file : {"antisd", "libantisd_tensor.so"})
    fs::copy_file(fs::path(ANTISD_BINARY_DIR) / file, folder_ / file);
  EXPECT_EQ(shell("./antisd " + small_demo("a") + " 2>err"), 2);
  EXPECT_THAT(read_file(folder_ / "err"),
              AllOf(HasSubstr("the shipped model is not here"),
                    HasSubstr("antisd pretrain recipes/countdown/pretrain.toml")));
  EXPECT_FALSE(fs::exists(folder_ / "a"));
}

}  // namespace
}  // namespace antisd::inline cli
