// `score`: log-probabilities and entropies of given responses under a model.

#include <memory>

#include "cli/command.h"
#include "cli/finite_number.h"
#include "cli/processes.h"
#include "cli/rows.h"
#include "cli/weights/device_choice.h"
#include "cli/weights/model_options.h"
#include "cli/weights/rank_session.h"
#include "cli/weights/score_rows.h"
#include "inference/scorer.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline cli {
namespace {

struct ScoreCommandOptions {
  ModelOptions model;
  RowStreamOptions rows;
  double temperature = 1;
  std::int64_t batch_tokens = ScoreOptions().max_batch_tokens;
  std::string processes;
};

// Reads ids as they are, or text through the model's tokenizer, which is loaded with the first
// text.
class RequestReader {
 public:
  explicit RequestReader(std::string model) : model_(std::move(model)) {}

  ScoreRequest read(const Json& row) {
    if (row.contains("prompt_ids") || row.contains("response_ids")) {
      return {ids_of(row, "prompt_ids"), ids_of(row, "response_ids")};
    }
    if (!tokenizer_) tokenizer_ = Tokenizer::load(model_);
    return {tokenizer_->encode(required_string(row, "prompt")),
            tokenizer_->encode(required_string(row, "response"))};
  }

 private:
  std::string model_;
  std::optional<Tokenizer> tokenizer_;
};

}  // namespace

std::function<int()> add_score(CLI::App& app) {
  const auto options = std::make_shared<ScoreCommandOptions>();
  add_model_argument(app, options->model);
  add_row_stream_options(app, options->rows);
  add_device_options(app, options->model);
  app.add_option("--temperature", options->temperature, "compute under logits / temperature")
      ->capture_default_str()
      ->check(CLI::PositiveNumber)
      ->check(finite_number());
  app.add_option("--batch-tokens", options->batch_tokens,
                 "tokens per pass through the model; lower it if memory runs out")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  app.footer(
      "Row in: {\"prompt_ids\", \"response_ids\"} or {\"prompt\", \"response\"}.\n"
      "Row out: {\"logp\": [..], \"entropy\": [..]}, one number per response token.");
  add_processes_option(app, options->processes);
  return [options] {
    if (const std::optional<int> status = run_as_launcher(options->processes, {visible_gpus}))
      return *status;
    const Place place = this_place();
    return run_on_ranks(place, {.identity = "score " + options->model.model},
                        [&](Communicator& ranks) {
                          const CausalLm model = open_model(options->model, place.local_rank);
                          RequestReader reader(files_of(options->model).string());
                          const ScoreOptions scoring = {.temperature = options->temperature,
                                                        .max_batch_tokens = options->batch_tokens};
                          return score_rows(options->rows, model, scoring, ranks,
                                            [&](const Json& row) { return reader.read(row); });
                        });
  };
}

}  // namespace antisd::inline cli
