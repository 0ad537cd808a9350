#include "dist/place.h"

#include <map>

#include <gmock/gmock.h>

#include "core/testing.h"

namespace antisd::inline dist {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

Place place_in(const Variables& variables) {
  return find_place([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

// As torchrun --nnodes 2 --nproc-per-node 8 sets them for the fourth process of the second node.
const Variables kTorchrun = {{"RANK", "11"},
                             {"WORLD_SIZE", "16"},
                             {"LOCAL_RANK", "3"},
                             {"LOCAL_WORLD_SIZE", "8"},
                             {"MASTER_ADDR", "n1"},
                             {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "a1"},
                             {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};

// As srun sets them for three nodes of 8, 8 and 4 tasks.
const Variables kSlurm = {{"SLURM_PROCID", "17"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "2"},
                          {"SLURM_JOB_ID", "4711"},
                          {"SLURM_STEP_ID", "0"},
                          {"SLURM_STEP_NUM_TASKS", "20"},
                          {"SLURM_STEP_NODELIST", "gpu[03-04,17]"},
                          {"SLURM_STEP_TASKS_PER_NODE", "8(x2),4"},
                          {"SLURM_CPUS_ON_NODE", "64"},
                          {"SLURM_NTASKS", "20"}};

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(Place, OfTorchrun) {
  const Place place = place_in(kTorchrun);
  EXPECT_EQ(place.rank, 11);
  EXPECT_EQ(place.size, 16);
  EXPECT_EQ(place.local_rank, 3);
  EXPECT_EQ(place.local_size, 8);
  EXPECT_EQ(place.host, "n1");
  EXPECT_EQ(place.port, 29500);
  EXPECT_TRUE(place.store_is_running);
  EXPECT_EQ(place.meeting, "antisd/a1/2");
  EXPECT_EQ(place.text(), "rank 11 of 16 (torchrun), 3 of 8 on this node, meeting at n1:29500");
  EXPECT_FALSE(place_in(without(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE")).store_is_running);
}

// torchrun's words beside the launcher's variable.
TEST(Place, OfOurLauncher) {
  const Variables launched = with(kTorchrun, kLaunchVariable, "5f3a");
  const Place place = place_in(launched);
  EXPECT_EQ(place.source, "--processes");
  EXPECT_EQ(place.rank, 11);
  EXPECT_EQ(place.size, 16);
  EXPECT_EQ(place.local_rank, 3);
  EXPECT_EQ(place.local_size, 8);
  EXPECT_EQ(place.host, "n1");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.store_is_running);
  EXPECT_EQ(place.meeting, "antisd/5f3a");
  EXPECT_EQ(place_in({{kLaunchVariable, "5f3a"}}).source, "");
}

TEST(Place, OfSlurm) {
  const Place place = place_in(kSlurm);
  EXPECT_EQ(place.rank, 17);
  EXPECT_EQ(place.size, 20);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_size, 4);
  EXPECT_EQ(place.node_cores, 64);
  EXPECT_EQ(place.host, "gpu03");
  EXPECT_EQ(place.port, 15000 + 4711);
  EXPECT_FALSE(place.store_is_running);
  EXPECT_NE(place.meeting, place_in(with(kSlurm, "SLURM_STEP_ID", "1")).meeting);
  EXPECT_NE(place.port, place_in(with(kSlurm, "SLURM_STEP_ID", "1")).port);
}

TEST(Place, TheFirstWholeSetWins) {
  Variables both = kTorchrun;
  both.insert(kSlurm.begin(), kSlurm.end());
  EXPECT_EQ(place_in(both).source, "torchrun");
  EXPECT_EQ(place_in(with(both, kLaunchVariable, "5f3a")).source, "--processes");
  EXPECT_EQ(place_in(without(both, "MASTER_PORT")).source, "Slurm");
  // The body of a batch script, outside srun.
  Variables script = kSlurm;
  for (const char* name : {"SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST"})
    script.erase(name);
  const Place alone = place_in(script);
  EXPECT_EQ(alone.size, 1);
  EXPECT_EQ(alone.text(), "one process");
}

TEST(Place, ContradictionsAreNamed) {
  const auto error = [](const Variables& variables) {
    return error_of([&] { place_in(variables); });
  };
  EXPECT_THAT(error(with(kTorchrun, "RANK", "16")),
              AllOf(HasSubstr("the variable RANK is '16', not an integer from 0 to 15"),
                    HasSubstr("torchrun")));
  EXPECT_THAT(error(with(kTorchrun, "WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE"));
  EXPECT_THAT(error(with(kTorchrun, "WORLD_SIZE", "2x")), HasSubstr("'2x'"));
  EXPECT_THAT(error(with(kTorchrun, "LOCAL_RANK", "-1")), HasSubstr("LOCAL_RANK"));
  EXPECT_THAT(error(with(kTorchrun, "MASTER_PORT", "65536")), HasSubstr("from 1 to 65535"));
  EXPECT_THAT(error(with(kTorchrun, "MASTER_PORT", "")), HasSubstr("MASTER_PORT"));
  EXPECT_THAT(error(with(kSlurm, "SLURM_LOCALID", "4")), HasSubstr("from 0 to 3"));
  EXPECT_THAT(error(with(kSlurm, "SLURM_NODEID", "3")), HasSubstr("a list that has this node"));
  EXPECT_THAT(error(with(kSlurm, "SLURM_STEP_NODELIST", "gpu[1")), HasSubstr("a list of hosts"));
  EXPECT_THAT(error(with(kSlurm, "SLURM_STEP_NODELIST", "")), HasSubstr("a list of hosts"));
}

TEST(Place, FirstHosts) {
  const std::map<std::string, std::string> cases = {{"n1", "n1"},
                                                    {"n1,n2", "n1"},
                                                    {"n[3-5]", "n3"},
                                                    {"n[003-005,9]", "n003"},
                                                    {"n[7,2],login", "n7"},
                                                    {"rack[1-2]n[04-08]", "rack1n04"},
                                                    {"gpu-a[1]-ib", "gpu-a1-ib"}};
  for (const auto& [list, host] : cases)
    EXPECT_EQ(first_host(list), host) << list;
}

TEST(Place, TasksOfANode) {
  EXPECT_EQ(tasks_of_node("8", 0), 8);
  EXPECT_EQ(tasks_of_node("8(x3)", 2), 8);
  EXPECT_EQ(tasks_of_node("8(x2),4,2(x2)", 1), 8);
  EXPECT_EQ(tasks_of_node("8(x2),4,2(x2)", 2), 4);
  EXPECT_EQ(tasks_of_node("8(x2),4,2(x2)", 4), 2);
  for (const char* wrong : {"", "8(x2", "x", "8,,4", "8(x0)"})
    EXPECT_THAT(error_of([&] { tasks_of_node(wrong, 1); }), HasSubstr("TASKS_PER_NODE")) << wrong;
}

}  // namespace
}  // namespace antisd::inline dist
