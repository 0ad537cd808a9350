#include "cli/processes.h"

#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "cli/command_testing.h"
#include "core/error.h"

namespace antisd::inline cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Outcome;

constexpr const char* kAsked = "ANTISD_TEST_PROCESSES";

// Before main: where the variable is set, this process is a command with that option, on a machine
// with 3 GPUs. Rank 1 fails if there are 4.
[[maybe_unused]] const bool is_no_command = [] {
  const char* const asked = std::getenv(kAsked);
  if (asked == nullptr) return true;
  try {
    const auto status = run_as_launcher(asked, {.gpus = [] { return 3; }, .silence_s = 0.2});
    if (status) _exit(*status);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.message());
    _exit(error.exit_status());
  }
  const Place place = find_place(process_environment());
  fmt::print(stderr, "{} of {}\n", place.rank, place.size);
  _exit(place.size == 4 && place.rank == 1 ? 2 : 0);
}();

class Processes : public testing::CommandTest {
 protected:
  Outcome ask(const std::string& variables) {
    const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
    const int status = shell(fmt::format("env {} '{}' >out 2>err", variables, program));
    return {status, read_file(folder_ / "out"), read_file(folder_ / "err")};
  }
};

TEST_F(Processes, StartsItselfAgain) {
  const Outcome three = ask("ANTISD_TEST_PROCESSES=3");
  EXPECT_EQ(three.status, 0);
  EXPECT_THAT(three.err, AllOf(HasSubstr("0 of 3\n"), HasSubstr("rank 1: 1 of 3\n"),
                               HasSubstr("rank 2: 2 of 3\n")));
  EXPECT_THAT(ask("ANTISD_TEST_PROCESSES=gpus").err, HasSubstr("rank 2: 2 of 3\n"));
  EXPECT_EQ(ask("ANTISD_TEST_PROCESSES=4").status, 2);
  EXPECT_EQ(ask("ANTISD_TEST_PROCESSES=1").err, "0 of 1\n");
  EXPECT_EQ(ask("ANTISD_TEST_PROCESSES=").err, "0 of 1\n");
}

TEST_F(Processes, JoinsTheRanksThatAreThere) {
  const std::string torchrun =
      "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=n1 MASTER_PORT=29500 ";
  EXPECT_EQ(ask(torchrun + "ANTISD_TEST_PROCESSES=").err, "1 of 2\n");
  const Outcome both = ask(torchrun + "ANTISD_TEST_PROCESSES=2");
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.err,
            "--processes: this process already is rank 1 of 2, started by torchrun; leave it out, "
            "or start the command without torchrun\n");
}

TEST(ProcessesOption, IsANumberOrGpus) {
  const auto parsed = [](const std::string& value) {
    CLI::App app;
    std::string processes;
    add_processes_option(app, processes);
    app.parse("--processes " + value);
    return processes;
  };
  for (const char* right : {"1", "8", "1024", "gpus"})
    EXPECT_EQ(parsed(right), right);
  for (const char* wrong : {"0", "1025", "-1", "2x", "gpu", "''", "99999999999"})
    EXPECT_THROW(parsed(wrong), CLI::ParseError) << wrong;
}

TEST(ProcessesOption, HowManyRanksToStart) {
  const auto count = [](const std::string& processes, const std::string& source, int gpus) {
    return ranks_to_start(processes, {.rank = 3, .size = 8, .source = source},
                          [=] { return gpus; });
  };
  EXPECT_EQ(count("", "", 2), 1);
  EXPECT_EQ(count("6", "", 2), 6);
  EXPECT_EQ(count("gpus", "", 2), 2);
  EXPECT_EQ(count("gpus", "", 1), 1);
  EXPECT_EQ(count("6", "--processes", 2), 1);
  EXPECT_EQ(count("", "Slurm", 2), 1);
  EXPECT_THAT(testing::error_of([&] { count("gpus", "", 0); }),
              AllOf(HasSubstr("no GPU is visible"), HasSubstr("a number")));
  EXPECT_THAT(testing::error_of([&] { count("1", "Slurm", 0); }),
              AllOf(HasSubstr("rank 3 of 8, started by Slurm"), HasSubstr("without srun")));
}

}  // namespace
}  // namespace antisd::inline cli
