// Every system call of a save fails once, in every way: the disk holds the old state or the new
// one.
#include <fcntl.h>
#include <gmock/gmock.h>

#include "core/faults/testing.h"
#include "io/atomic_file.h"
#include "run/checkpoint/checkpoint.h"
#include "run/checkpoint/folders.h"
#include "run/checkpoint/testing.h"

namespace antisd::inline run {
namespace {

namespace fs = std::filesystem;
using testing::FaultKind;
using ::testing::HasSubstr;
using testing::read_tree;
using testing::SmallRun;
using testing::Tree;

// Runs `action` with each fault at each of its calls, after `prepare`. Then `check` gets the
// message, which is empty if there was no error.
template <typename Prepare, typename Action, typename Check>
std::int64_t try_every_fault(const fs::path& folder, Prepare prepare, Action action, Check check) {
  prepare();
  faults::watch(folder.string());
  action();
  const std::int64_t calls = faults::calls();
  std::int64_t hit = 0;
  for (const FaultKind& kind : testing::fault_kinds()) {
    for (std::int64_t call = 1; call <= calls; ++call) {
      faults::disarm();
      prepare();
      faults::arm(kind.at(call));
      std::string message;
      try {
        action();
      } catch (const RunError& error) {
        message = error.message();
      }
      const std::string failed = faults::last_failed();
      hit += faults::failed() > 0;
      faults::disarm();
      SCOPED_TRACE(::testing::Message() << kind.name << " at call " << call << ": " << failed);
      check(message);
      if (::testing::Test::HasFailure()) return hit;
    }
  }
  faults::watch("/nowhere");
  return hit;
}

TEST(CheckpointFaults, ASaveLeavesTheOldOrTheNewCheckpoint) {
  const testing::TemporaryFolder folder;
  const fs::path before = folder / "before", after = folder / "after", now = folder / "now";
  SmallRun run("qwen3_gqa_tied");
  run.train_step();
  run.save(before);
  run.train_step();
  run.save(after);
  const Tree first = read_tree(before / "step-000001"), second = read_tree(after / "step-000002");
  const std::int64_t hit = try_every_fault(
      now,
      [&] {
        fs::remove_all(now);
        fs::copy(before, now, fs::copy_options::recursive);
      },
      [&] {
        run.save(now);
        prune_checkpoints(now, {.keep = 1});
      },
      [&](const std::string& message) {
        bool has_first = false, has_second = false;
        for (const StepFolder& found : step_folders(now)) {
          const bool is_first = found.step == 1;
          EXPECT_EQ(read_tree(found.path), is_first ? first : second);
          (is_first ? has_first : has_second) = true;
        }
        EXPECT_TRUE(has_first || has_second);
        if (message.empty()) {
          EXPECT_TRUE(has_second);
        } else {
          EXPECT_THAT(message, HasSubstr("cannot be"));
          EXPECT_TRUE(has_first) << "nothing may be pruned for a checkpoint that was not saved";
        }
        const NewestCheckpoint newest = find_newest_whole(now);
        ASSERT_TRUE(newest.found);
        EXPECT_EQ(newest.found->step, has_second ? 2 : 1);
      });
  EXPECT_GT(hit, 300);
}

TEST(CheckpointFaults, ASaveOverOneOfTheSameStepLeavesEitherOfThem) {
  const testing::TemporaryFolder folder;
  const fs::path before = folder / "before", after = folder / "after", now = folder / "now";
  SmallRun run("qwen3_gqa_tied");
  run.train_step();
  run.save(before);
  SmallRun other("qwen3_gqa_tied");
  other.model.parameters().at("embedding").value.detach().add_(1);
  other.train_step();
  other.save(after);
  const Tree first = read_tree(before / "step-000001"), second = read_tree(after / "step-000001");
  ASSERT_NE(first, second);
  const std::int64_t hit = try_every_fault(
      now,
      [&] {
        fs::remove_all(now);
        fs::copy(before, now, fs::copy_options::recursive);
      },
      [&] { other.save(now); },
      [&](const std::string& message) {
        const Tree found = read_tree(now / "step-000001");
        EXPECT_TRUE(found == first || found == second);
        if (message.empty()) {
          EXPECT_EQ(found, second);
        }
      });
  EXPECT_GT(hit, 300);
}

TEST(CheckpointFaults, AnAtomicFileIsTheOldOrTheNewOne) {
  const testing::TemporaryFolder folder;
  const fs::path file = folder / "folder" / "file";
  const std::string text(100'000, 'n');
  fs::create_directories(file.parent_path());
  const std::int64_t hit = try_every_fault(
      file.parent_path(), [&] { std::ofstream(file) << "old"; },
      [&] { write_file_atomically(file, text); },
      [&](const std::string& message) {
        const std::string found = read_file(file);
        EXPECT_TRUE(found == "old" || found == text);
        if (message.empty()) {
          EXPECT_EQ(found, text);
        } else {
          EXPECT_THAT(message, HasSubstr("cannot be written"));
        }
      });
  EXPECT_GT(hit, 20);
}

}  // namespace
}  // namespace antisd::inline run
