#include "dist/place.h"

#include <charconv>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline dist {
namespace {

constexpr int kMostRanks = 65'536;
// Below the ports that Linux hands out by itself (32,768 on), so that nobody holds one by chance.
constexpr int kFirstSlurmPort = 15'000, kSlurmPorts = 15'000;

InputError wrong_variable(const std::string& name, const std::string& value,
                          const std::string& expected) {
  return InputError(fmt::format("the variable {} is '{}', not {}", name, value, expected),
                    {.remedy = "start the ranks by torchrun, by srun or by --processes, or unset "
                               "the variable for a run of one process"});
}

std::int64_t integer(const std::string& name, const std::string& text, std::int64_t least,
                     std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    throw wrong_variable(name, text, fmt::format("an integer from {} to {}", least, most));
  return value;
}

class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_(environment) {}

  bool all_set(std::initializer_list<const char*> names) const {
    for (const char* name : names)
      if (!environment_(name)) return false;
    return true;
  }
  std::string text(const char* name, const std::string& absent = "") const {
    return environment_(name).value_or(absent);
  }
  int number(const char* name, std::int64_t least, std::int64_t most) const {
    return static_cast<int>(integer(name, text(name), least, most));
  }

 private:
  const Environment& environment_;
};

// What torchrun and our launcher both say.
std::optional<Place> place_of_ranks(const Variables& variables) {
  if (!variables.all_set(
          {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}))
    return std::nullopt;
  Place place;
  place.size = variables.number("WORLD_SIZE", 1, kMostRanks);
  place.rank = variables.number("RANK", 0, place.size - 1);
  place.local_size = variables.number("LOCAL_WORLD_SIZE", 1, place.size);
  place.local_rank = variables.number("LOCAL_RANK", 0, place.local_size - 1);
  place.host = variables.text("MASTER_ADDR");
  place.port = variables.number("MASTER_PORT", 1, 65'535);
  return place;
}

std::optional<Place> place_of_launcher(const Variables& variables) {
  if (!variables.all_set({kLaunchVariable})) return std::nullopt;
  std::optional<Place> place = place_of_ranks(variables);
  if (!place) return std::nullopt;
  place->source = "--processes";
  place->meeting = fmt::format("antisd/{}", variables.text(kLaunchVariable));
  return place;
}

std::optional<Place> place_of_torchrun(const Variables& variables) {
  std::optional<Place> place = place_of_ranks(variables);
  if (!place) return std::nullopt;
  place->source = "torchrun";
  place->store_is_running = variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place->meeting = fmt::format("antisd/{}/{}", variables.text("TORCHELASTIC_RUN_ID", "none"),
                               variables.text("TORCHELASTIC_RESTART_COUNT", "0"));
  return place;
}

// The variables of a step are there only under srun. In the body of a batch script SLURM_PROCID is
// 0 and SLURM_NTASKS that of the job, but nobody started the other ranks.
std::optional<Place> place_of_slurm(const Variables& variables) {
  if (!variables.all_set({"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_JOB_ID",
                          "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_NODELIST",
                          "SLURM_STEP_TASKS_PER_NODE"}))
    return std::nullopt;
  Place place{.source = "Slurm"};
  place.size = variables.number("SLURM_STEP_NUM_TASKS", 1, kMostRanks);
  place.rank = variables.number("SLURM_PROCID", 0, place.size - 1);
  place.local_size = tasks_of_node(variables.text("SLURM_STEP_TASKS_PER_NODE"),
                                   variables.number("SLURM_NODEID", 0, kMostRanks));
  place.local_rank = variables.number("SLURM_LOCALID", 0, place.local_size - 1);
  // srun usually binds each task to cores of its own.
  if (variables.all_set({"SLURM_CPUS_ON_NODE"}))
    place.node_cores = variables.number("SLURM_CPUS_ON_NODE", 1, kMostRanks);
  place.host = first_host(variables.text("SLURM_STEP_NODELIST"));
  const std::int64_t job = integer("SLURM_JOB_ID", variables.text("SLURM_JOB_ID"), 0, INT64_MAX);
  // Steps of one job may run side by side.
  const auto step = static_cast<std::uint64_t>(
      integer("SLURM_STEP_ID", variables.text("SLURM_STEP_ID"), 0, INT64_MAX));
  place.port =
      kFirstSlurmPort + static_cast<int>((static_cast<std::uint64_t>(job) + step) % kSlurmPorts);
  place.meeting =
      fmt::format("antisd/{}.{}/{}", job, step, variables.text("SLURM_RESTART_COUNT", "0"));
  return place;
}

}  // namespace

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* const value = std::getenv(name.c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

std::string Place::text() const {
  if (source.empty()) return "one process";
  return fmt::format("rank {} of {} ({}), {} of {} on this node, meeting at {}:{}", rank, size,
                     source, local_rank, local_size, host, port);
}

Place find_place(const Environment& environment) {
  const Variables variables(environment);
  if (std::optional<Place> place = place_of_launcher(variables)) return *place;
  if (std::optional<Place> place = place_of_torchrun(variables)) return *place;
  if (std::optional<Place> place = place_of_slurm(variables)) return *place;
  return {};
}

void hide_place() {
  // One variable of each set: the others are then incomplete.
  for (const char* name : {"ANTISD_LAUNCH", "RANK", "SLURM_PROCID"})
    unsetenv(name);
}

std::string first_host(const std::string& node_list) {
  std::string host;
  for (std::size_t i = 0; i < node_list.size() && node_list[i] != ','; ++i) {
    if (node_list[i] != '[') {
      host += node_list[i];
      continue;
    }
    const std::size_t end = node_list.find(']', i);
    if (end == std::string::npos)
      throw wrong_variable("SLURM_STEP_NODELIST", node_list, "a list of hosts");
    const std::size_t first = node_list.find_first_of(",-]", i);
    host += node_list.substr(i + 1, first - i - 1);
    i = end;
  }
  if (host.empty()) throw wrong_variable("SLURM_STEP_NODELIST", node_list, "a list of hosts");
  return host;
}

int tasks_of_node(const std::string& tasks_per_node, int node) {
  const std::string name = "SLURM_STEP_TASKS_PER_NODE";
  for (std::size_t begin = 0; begin < tasks_per_node.size();) {
    const std::size_t end = std::min(tasks_per_node.find(',', begin), tasks_per_node.size());
    const std::string item = tasks_per_node.substr(begin, end - begin);
    const std::size_t times = item.find("(x");
    std::int64_t nodes = 1;
    if (times != std::string::npos) {
      if (item.back() != ')') throw wrong_variable(name, tasks_per_node, "a list such as 8(x2),4");
      nodes = integer(name, item.substr(times + 2, item.size() - times - 3), 1, kMostRanks);
    }
    const std::int64_t tasks = integer(name, item.substr(0, times), 1, kMostRanks);
    if (node < nodes) return static_cast<int>(tasks);
    node -= static_cast<int>(nodes);
    begin = end + 1;
  }
  throw wrong_variable(name, tasks_per_node, "a list that has this node");
}

}  // namespace antisd::inline dist
