#include "plan/benchmark_sizes.h"

#include <filesystem>
#include <fstream>
#include <utility>

#include "hub/repo_name.h"

namespace antisd::inline plan {
namespace {

namespace fs = std::filesystem;

constexpr std::pair<const char*, std::int64_t> kSizes[] = {
    {"aime24", 30},   {"aime25", 30}, {"aime26", 30},  {"hmmt_feb25", 30},     {"minerva", 272},
    {"math500", 500}, {"amc23", 40},  {"gsm8k", 1319}, {"humanevalplus", 164}, {"mbppplus", 378}};

std::int64_t lines_of(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t lines = 0;
  for (std::string line; std::getline(stream, line);)
    lines += line.empty() ? 0 : 1;
  return lines;
}

// minerva_math.jsonl is "minerva", gsm8k_test.jsonl "gsm8k".
const char* known_name(const std::string& stem) {
  for (const auto& [name, problems] : kSizes)
    if (stem.starts_with(name)) return name;
  return nullptr;
}

// "gsm8k" of openai/gsm8k@main:main/test; a file's own otherwise.
std::string stem_of(const std::string& bench, const fs::path& file) {
  const auto repo = parse_repo_name(RepoType::kDataset, bench.substr(0, bench.find(':')));
  if (!repo || bench.find('/') == std::string::npos || bench.ends_with(".jsonl"))
    return file.stem().string();
  return fs::path(repo->name).filename().string();
}

}  // namespace

std::vector<BenchmarkSize> benchmark_sizes(const RunConfig& config,
                                           std::vector<std::string>& unknown) {
  std::vector<BenchmarkSize> sizes;
  for (const std::string& bench : config.eval.benches) {
    const fs::path file = bench.ends_with(".jsonl")
                              ? fs::path(bench)
                              : fs::path(config.eval.dir) / (bench + ".jsonl");
    const std::string stem = stem_of(bench, file);
    const char* known = known_name(stem);
    BenchmarkSize size{.name = stem};
    std::error_code ignored;
    if (fs::exists(file, ignored)) {
      size.problems = lines_of(file);
    } else {
      for (const auto& [name, problems] : kSizes)
        if (name == known) size.problems = problems;
    }
    if (size.problems == 0) {
      unknown.push_back(bench);
      continue;
    }
    for (const std::string& key : {std::string("default"), std::string(known ? known : ""), stem})
      if (const auto found = config.eval.n.find(key); found != config.eval.n.end())
        size.samples = found->second;
    sizes.push_back(size);
  }
  return sizes;
}

}  // namespace antisd::inline plan
