// Saves that fail or are killed: the last finished checkpoint is always complete.
#include <csignal>
#include <cstdlib>
#include <fstream>

#include <ATen/record_function.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/rng.h"
#include "run/checkpoint/checkpoint.h"
#include "run/checkpoint/folders.h"
#include "run/checkpoint/testing.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using testing::SmallRun;

constexpr const char* kChildFolder = "ANTISD_CHECKPOINT_CHILD";

// A disk that accepts files up to a number of bytes. The limit's signal is ignored, as in the
// commands that train (cli/interrupt.h); TrainLimits tests the program itself.
class SmallDisk {
 public:
  explicit SmallDisk(std::uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    struct rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  struct rlimit before_ {};
  void (*handler_)(int);
};

TEST(CheckpointCrash, AFullDiskLeavesTheOldOneWholeAndNothingElse) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  run.train_step();
  const std::string before = run.bytes();
  run.save(folder.path());
  run.train_step();
  int failed = 0;
  for (std::uint64_t bytes = 1;; bytes = bytes * 3 / 2 + 1) {
    try {
      const SmallDisk disk(bytes);
      run.save(folder.path());
      break;
    } catch (const RunError& error) {
      EXPECT_THAT(error.message(), HasSubstr("cannot be written"));
      ++failed;
    }
    EXPECT_THAT(step_folders(folder.path()), SizeIs(1));
    EXPECT_THAT(unfinished_folders(folder.path()), SizeIs(0));
    const NewestCheckpoint newest = find_newest_whole(folder.path());
    ASSERT_TRUE(newest.found);
    EXPECT_EQ(newest.found->step, 1);
  }
  EXPECT_GT(failed, 10);
  EXPECT_EQ(find_newest_whole(folder.path()).found->step, 2);
  load_checkpoint(folder / "step-000001", run.model, run.optimizer);
  EXPECT_EQ(run.bytes(), before);
}

TEST(CheckpointCrash, AnOriginThatIsGoneIsAnErrorOfTheRun) {
  const testing::TemporaryFolder folder;
  SmallRun run("qwen3_gqa_tied");
  run.origin = folder / "gone";
  EXPECT_THROW(run.save(folder / "checkpoints"), RunError);
  EXPECT_THAT(unfinished_folders(folder / "checkpoints"), SizeIs(0));
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(SmallRun("qwen3_gqa_tied").save(folder / "file" / "checkpoints"), RunError);
}

// The child: trains, saves and prunes from the newest checkpoint on until it is killed.
TEST(CheckpointCrash, DISABLED_ChildSavesUntilKilled) {
  const char* const folder = std::getenv(kChildFolder);
  if (folder == nullptr) GTEST_SKIP() << "runs in a process of its own alone";
  at::set_num_threads(1);
  SmallRun run("qwen3_gqa_tied");
  if (const NewestCheckpoint newest = find_newest_whole(folder); newest.found)
    load_checkpoint(newest.found->path, run.model, run.optimizer);
  while (run.optimizer.steps() < 100'000) {
    run.train_step();
    run.save(folder);
    prune_checkpoints(folder, {.keep = 1});
  }
}

pid_t start_child(const fs::path& folder, const std::string& test) {
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string filter = "--gtest_filter=CheckpointCrash." + test;
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setenv(kChildFolder, folder.c_str(), 1);
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, 1);
  ::execl(program.c_str(), program.c_str(), "--gtest_also_run_disabled_tests", filter.c_str(),
          nullptr);
  ::_exit(127);
}

std::int64_t newest_step(const fs::path& folder) {
  const std::vector<StepFolder> folders = step_folders(folder);
  return folders.empty() ? 0 : folders.front().step;
}

// The child: saves after two steps, and is killed in the next one's update, when some pieces are
// updated on the host and one is on its way down.
TEST(CheckpointCrash, DISABLED_ChildIsKilledInAStreamedUpdate) {
  const char* const folder = std::getenv(kChildFolder);
  if (folder == nullptr) GTEST_SKIP() << "runs in a process of its own alone";
  SmallRun run("qwen3_gqa_tied", at::kBFloat16, one_rank(),
               {.offload = Offload::kAll, .streamed_elements = kUpdateBlock});
  run.train_step();
  run.train_step();
  run.save(folder);
  at::addGlobalCallback(at::RecordFunctionCallback([](const at::RecordFunction& function) {
                          static int copies = 0;  // six a piece
                          if (std::string_view(function.name()) == "aten::copy_" &&
                              ++copies == 3 * 6 + 5)
                            ::kill(::getpid(), SIGKILL);
                          return std::unique_ptr<at::ObserverContext>();
                        }).scopes({at::RecordScope::FUNCTION}));
  run.train_step();
}

TEST(CheckpointCrash, AKillInTheMiddleOfAStreamedUpdate) {
  const testing::TemporaryFolder folder;
  const pid_t child = start_child(folder.path(), "DISABLED_ChildIsKilledInAStreamedUpdate");
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  const NewestCheckpoint newest = find_newest_whole(folder.path());
  ASSERT_TRUE(newest.found);
  EXPECT_EQ(newest.found->step, 2);
  SmallRun straight("qwen3_gqa_tied", at::kBFloat16), resumed("qwen3_gqa_tied", at::kBFloat16);
  load_checkpoint(newest.found->path, resumed.model, resumed.optimizer);
  resumed.train_step();
  for (int step = 0; step < 3; ++step)
    straight.train_step();
  EXPECT_EQ(resumed.bytes(), straight.bytes());
}

TEST(CheckpointCrash, KillsInTheMiddleOfASave) {
  const testing::TemporaryFolder folder;
  const int threads_before = at::get_num_threads();
  at::set_num_threads(1);
  SmallRun straight("qwen3_gqa_tied");
  const CounterRng rng(9, RandomStream::kBootstrap);
  int killed_in_a_save = 0;
  for (std::uint32_t round = 0; round < 8; ++round) {
    const std::int64_t before = newest_step(folder.path());
    const pid_t child = start_child(folder.path(), "DISABLED_ChildSavesUntilKilled");
    ASSERT_GT(child, 0);
    int status = 0;
    // Until it has saved once; half a minute allows for slow machines.
    for (int i = 0; i < 3000 && newest_step(folder.path()) <= before; ++i) {
      ASSERT_EQ(::waitpid(child, &status, WNOHANG), 0) << "the child ended by itself";
      ::usleep(10'000);
    }
    ::usleep(static_cast<useconds_t>(rng.below(60'000, {.step = round})));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));

    killed_in_a_save += !unfinished_folders(folder.path()).empty();
    const NewestCheckpoint newest = find_newest_whole(folder.path());
    ASSERT_TRUE(newest.found);
    ASSERT_GT(newest.found->step, before);
    // No folder with the name of a complete checkpoint is incomplete.
    EXPECT_THAT(newest.skipped, SizeIs(unfinished_folders(folder.path()).size()));
    // The same bytes as in a run that was never killed.
    while (straight.optimizer.steps() < newest.found->step)
      straight.train_step();
    SmallRun resumed("qwen3_gqa_tied");
    load_checkpoint(newest.found->path, resumed.model, resumed.optimizer);
    EXPECT_EQ(resumed.bytes(), straight.bytes());
  }
  EXPECT_GT(killed_in_a_save, 0);
  at::set_num_threads(threads_before);
}

}  // namespace
}  // namespace antisd::inline run
