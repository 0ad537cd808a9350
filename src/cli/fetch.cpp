// `fetch`: a model or data set of the hub into the local Hugging Face cache.
#include "hub/fetch/fetch.h"

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "cli/build_info.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "core/error.h"
#include "run/metrics/console.h"

namespace antisd::inline cli {
namespace {

struct FetchCommandOptions {
  std::string name, type;
  FilePatterns patterns;
  bool quiet = false;
};

FetchRequest fetch_request(const FetchCommandOptions& options) {
  const std::optional<RepoName> repo = parse_repo_name(RepoType::kModel, options.name);
  if (!repo) {
    throw InputError(
        "not a name of the hub",
        {.where = "'" + options.name + "'", .remedy = "write OWNER/NAME or OWNER/NAME@REVISION"});
  }
  FetchRequest request{
      .name = repo->name, .revision = repo->revision, .patterns = options.patterns};
  if (!options.type.empty())
    request.type = options.type == "model" ? RepoType::kModel : RepoType::kDataset;
  return request;
}

// Without a network, what is there already is the answer.
std::optional<Snapshot> find_offline(const FetchRequest& request) {
  for (const RepoType type : {RepoType::kModel, RepoType::kDataset}) {
    if (request.type && *request.type != type) continue;
    if (auto found = find_snapshot({type, request.name, request.revision})) return found;
  }
  return std::nullopt;
}

constexpr std::int64_t kMegabyte = 1'000'000;

int run_fetch(const FetchCommandOptions& options) {
  const FetchRequest request = fetch_request(options);
  const FetchSettings settings = fetch_settings(fmt::format("antisd/{}", kBuildInfo.version));
  Console console({.quiet = options.quiet});
  if (settings.offline) {
    if (const std::optional<Snapshot> found = find_offline(request)) {
      console.info("HF_HUB_OFFLINE is set: this is what the cache holds");
      std::cout << found->folder.string() << "\n";
      return 0;
    }
  }
  outlive_refused_writes();
  const std::atomic<bool>& interrupted = catch_interrupts();
  std::optional<ProgressBar> bar;
  const FetchWatch watch{
      .stop = [&] { return interrupted.load(); },
      .report = [&](const std::string& text) { console.info(text); },
      .progress =
          [&](std::int64_t done, std::int64_t total) {
            if (!bar)
              bar.emplace(console, ProgressOptions{.label = "fetch",
                                                   .unit = "MB",
                                                   .total = (total + kMegabyte - 1) / kMegabyte});
            bar->update(done / kMegabyte);
          }};
  try {
    const FetchResult result = fetch(settings, request, watch);
    bar.reset();
    console.info(fmt::format("{} files, {} of them new", result.files, result.fetched));
    std::cout << result.snapshot.folder.string() << "\n";
    return 0;
  } catch (const FetchStopped&) {
    bar.reset();
    console.info("stopped; the same command goes on where it ended");
    return kInterruptedStatus;
  }
}

}  // namespace

std::function<int()> add_fetch(CLI::App& app) {
  const auto options = std::make_shared<FetchCommandOptions>();
  app.add_option("NAME", options->name, "OWNER/NAME, then @REVISION: a branch, a tag or a commit")
      ->required();
  app.add_option("--type", options->type, "what it is; default: a model, else a data set")
      ->check(CLI::IsMember({"model", "dataset"}));
  app.add_option("--include", options->patterns.include,
                 "only files that fit one of these patterns; default for a model: safetensors, "
                 "configuration and tokenizer, for a data set: all")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_option("--exclude", options->patterns.exclude, "no files that fit one of these patterns")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  app.add_flag("--quiet", options->quiet, "only the folder, on standard output");
  app.footer(
      "It prints the folder. An interrupted fetch goes on where it ended. The cache and the token\n"
      "are huggingface_hub's: HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE.");
  return [options] { return run_fetch(*options); };
}

}  // namespace antisd::inline cli
