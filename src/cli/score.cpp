// `score`: log-probabilities and entropies of given responses under a model.
#ifdef ANTISD_TORCH

#include <iostream>
#include <memory>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "cli/command.h"
#include "cli/device_choice.h"
#include "cli/rows.h"
#include "cli/score_rows.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "model/weights.h"
#include "scoring/scorer.h"
#include "text/tokenizer.h"

namespace antisd {
namespace {

struct ScoreCommandOptions {
  std::string model;
  RowStreamOptions rows;
  std::string device = "auto";
  std::string dtype = "auto";
  int threads = available_threads();
  double temperature = 1;
  bool check_weights = false;
  std::int64_t batch_tokens = ScoreOptions().max_batch_tokens;
};

// Ids as they are, or texts through the model's tokenizer, which is loaded when the first text
// comes.
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
  app.add_option("MODEL", options->model, "Hugging Face model directory")->required();
  add_row_stream_options(app, options->rows);
  app.add_option("--device", options->device,
                 "cpu, cuda, cuda:N, or auto: a GPU where there is one")
      ->capture_default_str();
  app.add_option("--dtype", options->dtype, "auto is fp32 on a CPU, bf16 on a GPU")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "fp32", "bf16"}));
  app.add_option("--threads", options->threads, "threads of the tensor library")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--temperature", options->temperature, "everything is under logits / temperature")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--check-weights", options->check_weights,
               "refuse weights that hold NaN or infinity, by name");
  app.add_option("--batch-tokens", options->batch_tokens,
                 "tokens that go through the model at once; lower it where memory runs out")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 31));
  app.footer(
      "Row in: {\"prompt_ids\", \"response_ids\"} or {\"prompt\", \"response\"}.\n"
      "Row out: {\"logp\": [..], \"entropy\": [..]}, one number a response token.");
  return [options] {
    at::set_num_threads(options->threads);
    const at::Device device = choose_device(options->device);
    const CausalLm model = load_model(options->model, device, choose_dtype(options->dtype, device),
                                      {.check_weights = options->check_weights});
    RequestReader reader(options->model);
    const ScoreOptions scoring = {.temperature = options->temperature,
                                  .max_batch_tokens = options->batch_tokens};
    return score_rows(options->rows, model, scoring,
                      [&](const Json& row) { return reader.read(row); });
  };
}

}  // namespace antisd

#endif
