#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "bench/benchmarks.h"
#include "bench/options.h"
#include "core/error.h"
#include "core/stopwatch.h"
#include "io/json.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::bench {
namespace {

constexpr std::size_t kStressBytes = 1'000'000;

struct Options {
  std::string model;
  std::vector<std::string> texts;   // files
  std::vector<std::string> fields;  // one for all files, or one each
  int repeats = 3;
  bool json = false;
};

struct Speed {
  double megabytes_per_second = 0;
  double tokens_per_second = 0;
};

double seconds_of(const auto& action) {
  Stopwatch watch;
  action();
  return watch.lap();
}

std::vector<std::string> read_texts(const Options& options) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < options.texts.size(); ++i) {
    const std::string& path = options.texts[i];
    const std::string& field = options.fields[std::min(i, options.fields.size() - 1)];
    std::ifstream file(path);
    if (!file) throw InputError("cannot be opened", {path, "check --texts"});
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
      const std::string where = fmt::format("{}:{}", path, number);
      const Json row = parse_json(line, where);
      if (!row.is_object() || !row.contains(field) || !row[field].is_string()) {
        throw InputError(fmt::format("there is no text \"{}\"", field), {where, "check --field"});
      }
      texts.push_back(row[field].get<std::string>());
    }
  }
  return texts;
}

// The best of the repeats: the machine may be busy.
Speed measure(const Tokenizer& tokenizer, const std::vector<std::string>& texts, int repeats) {
  std::size_t bytes = 0, tokens = 0;
  for (const std::string& text : texts)
    bytes += text.size();
  double best = 1e300;
  for (int i = 0; i < repeats; ++i) {
    tokens = 0;
    best = std::min(best, seconds_of([&] {
                      for (const std::string& text : texts)
                        tokens += tokenizer.encode(text).size();
                    }));
  }
  return {static_cast<double>(bytes) / best / 1e6, static_cast<double>(tokens) / best};
}

}  // namespace

int run_tokenize(const Arguments& arguments) {
  Options options;
  CLI::App app("encodes texts one by one on one thread", "antisd-bench tokenize");
  app.add_option("--model", options.model, "Hugging Face directory")->required();
  app.add_option("--texts", options.texts, "JSONL files")->required();
  app.add_option("--field", options.fields, "key of the text, one for all files or one each");
  add_number(app, "--repeats", options.repeats, 1, 1000, "the fastest counts");
  app.add_flag("--json", options.json, "one line of JSON");
  if (const auto status = parse(app, arguments)) return *status;
  if (options.fields.empty()) options.fields = {"problem"};

  std::optional<Tokenizer> tokenizer;
  const double load_seconds = seconds_of([&] { tokenizer = Tokenizer::load(options.model); });
  const Speed texts = measure(*tokenizer, read_texts(options), options.repeats);
  Json result = {{"load_seconds", load_seconds},
                 {"megabytes_per_second", texts.megabytes_per_second},
                 {"tokens_per_second", texts.tokens_per_second}};
  for (const auto& [name, letter] : {std::pair{"letter", 'a'}, {"space", ' '}, {"digit", '7'}}) {
    const Speed stress = measure(*tokenizer, {std::string(kStressBytes, letter)}, options.repeats);
    // How many times longer than the same number of bytes of ordinary text.
    result["stress"][name] = texts.megabytes_per_second / stress.megabytes_per_second;
  }
  if (options.json) {
    fmt::print("{}\n", to_json_line(result));
    return 0;
  }
  fmt::print("load {:.3f} s, {:.1f} MB/s, {:.2f} M tokens/s on one thread\n", load_seconds,
             texts.megabytes_per_second, texts.tokens_per_second / 1e6);
  for (const auto& [name, ratio] : result["stress"].items()) {
    fmt::print("1 MB of one {}: {:.2f} times its share\n", name, ratio.get<double>());
  }
  return 0;
}

}  // namespace antisd::bench
