// `plan`: what a run needs and how long it takes on machines that need not be here.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/weights/run_options.h"
#include "core/error.h"
#include "model/adapted_shape.h"
#include "plan/model_names.h"
#include "plan/run_plan.h"

namespace antisd::inline cli {
namespace {

struct PlanOptions {
  RunOptions run;  // its arguments
  std::string device = "h200", lengths, recorded;
  int gpus = 1, per_node = 0;
  double link_gb_s = 45;
  bool json = false;
};

std::string card_names() {
  std::string names;
  for (const Card& card : cards())
    names += (names.empty() ? "" : ", ") + card.name;
  return names;
}

}  // namespace

std::function<int()> add_plan(CLI::App& app) {
  const auto options = std::make_shared<PlanOptions>();
  app.add_option("CONFIG key=value", options->run.arguments, "a TOML file, then overrides")
      ->required();
  app.add_option("--gpus", options->gpus, "ranks, one a GPU")
      ->capture_default_str()
      ->check(CLI::Range(1, 1 << 16));
  app.add_option("--per-node", options->per_node, "GPUs of a node; default: at most 8")
      ->check(CLI::Range(1, 1 << 10));
  app.add_option("--device", options->device, "the card: " + card_names())->capture_default_str();
  CLI::Option* lengths = app.add_option(
      "--lengths", options->lengths,
      "of responses: mean=8000,p99=32000, and prompt=256 for the prompts; default: a quarter of "
      "rollout.max_sequence_tokens, 1 % of them as long as it allows");
  app.add_option("--run", options->recorded, "a run whose recorded lengths are taken")
      ->type_name("RUN")
      ->excludes(lengths);
  app.add_option("--link-gb-s", options->link_gb_s, "GB/s of a GPU to other nodes, each way")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options->json, "one JSON object");
  app.footer(
      "It needs no weights and no data: shapes of the recipes' models are known by name, others "
      "are read from model.path's config.json.\nThe exit status is 0 also if the run does not "
      "fit.");
  return [options] {
    RunConfig config;
    read_config(options->run, config);
    const ModelShape shape = configured_shape(shape_of_model(config.model.path), config.model);
    const auto seed = static_cast<std::uint64_t>(config.train.seed);
    const Lengths lengths =
        !options->lengths.empty() ? Lengths::drawn(parse_lengths(options->lengths), seed)
        : !options->recorded.empty()
            ? Lengths::of_run(options->recorded, seed)
            : Lengths::within(std::min(config.rollout.max_sequence_tokens, shape.max_positions),
                              kPromptTokens, seed);
    const Machine machine{.card = find_card(options->device),
                          .gpus = options->gpus,
                          .per_node = options->per_node > 0
                                          ? std::min(options->per_node, options->gpus)
                                          : std::min(8, options->gpus),
                          .network = options->link_gb_s * 1e9};
    std::optional<ModelShape> teacher;
    if (!config.method.teacher.path.empty()) teacher = shape_of_model(config.method.teacher.path);
    const RunPlan plan = plan_run(
        {config, shape, machine, set_forms(config), teacher ? &*teacher : nullptr}, lengths);
    std::cout << (options->json ? json_of(plan).dump(1) + "\n" : text_of(plan));
    return 0;
  };
}

}  // namespace antisd::inline cli
