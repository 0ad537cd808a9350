// libFuzzer: a foreign run directory. The input is split at NUL bytes; the first byte of a piece
// selects its file. Every reader ends with what it could read; metrics that grow while they are
// read give the same as the whole file; the page gets valid JSON.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <unistd.h>

#include "core/error.h"
#include "eval/results/run_results.h"
#include "eval/results/sample_row.h"
#include "io/json.h"
#include "report/run_json.h"
#include "report/run_reader.h"
#include "report/samples.h"
#include "report/series.h"

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 7> kFiles = {"metrics.jsonl",
                                               "config.toml",
                                               "run.json",
                                               "log.txt",
                                               "eval/step-000010/summary.json",
                                               "rollouts/step-000003.jsonl",
                                               "eval/step-000010/aime24.jsonl"};

// In memory if the system has such a folder; removed with this process.
struct RunFolder {
  fs::path path;
  RunFolder() {
    std::string pattern =
        fs::exists("/dev/shm") ? "/dev/shm/antisd-fuzz-XXXXXX" : "/tmp/antisd-fuzz-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path = pattern;
    fs::create_directories(path / "eval/step-000010");
    fs::create_directories(path / "rollouts");
  }
  ~RunFolder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

void put(const fs::path& path, std::string_view text, bool append = false) {
  std::ofstream(path, append ? std::ios::app : std::ios::trunc) << text;
}

void require(bool holds) {
  if (!holds) std::abort();
}

antisd::RunReader read_all(const fs::path& path) {
  antisd::RunReader run("fuzz", antisd::Folder(path));
  while (run.refresh(1 << 20).more) {
  }
  return run;
}

std::string rows_of(const antisd::RunReader& run) {
  std::string rows;
  append_rows_json(rows, run, 0);
  return rows.substr(0, rows.find("\"written\"")) + rows.substr(rows.find("\"columns\""));
}

void read_sample_rows(std::string_view text) {
  for (std::size_t end; !text.empty(); text.remove_prefix(std::min(end + 1, text.size()))) {
    end = std::min(text.find('\n'), text.size());
    try {
      const antisd::SampleRow row =
          antisd::sample_row_from(antisd::parse_json(text.substr(0, end), "row"), "row");
      require(antisd::sample_row_from(to_json(row), "again") == row);
    } catch (const antisd::InputError&) {
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const RunFolder folder;
  for (const char* file : kFiles)
    fs::remove(folder.path / file);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::string metrics, samples;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view piece = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (piece.empty()) continue;
    const std::size_t which = static_cast<unsigned char>(piece[0]) % kFiles.size();
    put(folder.path / kFiles[which], piece.substr(1));
    if (which == 0) metrics = piece.substr(1);
    if (which == 6) samples = piece.substr(1);
  }
  const antisd::RunReader run = read_all(folder.path);
  (void)antisd::parse_json(antisd::to_json_line(facts_json(run)), "facts");
  const std::string rows = rows_of(run);
  (void)antisd::parse_json(rows, "rows");
  (void)antisd::parse_json(antisd::to_json_line(read_samples(run.folder(), 3)), "samples");
  (void)antisd::read_run_results(folder.path);
  read_sample_rows(samples);

  // The same file in two steps.
  const std::size_t half = metrics.size() / 2;
  put(folder.path / kFiles[0], std::string_view(metrics).substr(0, half));
  antisd::RunReader grown = read_all(folder.path);
  put(folder.path / kFiles[0], std::string_view(metrics).substr(half), true);
  while (grown.refresh(1 << 20).more) {
  }
  require(rows_of(grown) == rows);
  return 0;
}
