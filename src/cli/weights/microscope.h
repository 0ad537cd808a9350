// Inspections of problems and responses: samples responses if none is given, grades, builds the
// teacher's context as in training, and scores under both prompts.
//
//   Microscope microscope(config, method, model_options, samples);
//   for (Inspection& inspection : microscope.look(rows, on_bad)) analysis.add(inspection);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/weights/model_options.h"
#include "config/run_config.h"
#include "context/context_builder.h"
#include "core/error.h"
#include "inference/scorer.h"
#include "report/inspect/inspection.h"
#include "reward/grader.h"
#include "trainer/sampler.h"

namespace antisd::inline cli {

// The request of one row.
struct LookRequest {
  std::string where;  // of the row, for messages
  Problem problem;
  std::optional<std::vector<TokenId>> response_ids;  // none: responses are sampled
  std::optional<double> reward;                      // instead of the grader's
};

class Microscope {
 public:
  // Borrows both. `samples`: responses per problem, or, if a response is given, further ones as its
  // group; nothing: rollout.group_size, or none if a response is given. Loads only tokenizer and
  // template.
  Microscope(const RunConfig& config, const Method& method, const ModelOptions& options,
             std::optional<std::int64_t> samples);
  Microscope(const Microscope&) = delete;  // the contexts borrow the renderer
  Microscope& operator=(const Microscope&) = delete;

  const Tokenizer& tokenizer() const { return renderer_.tokenizer(); }

  // A row of a data set, with its "response" or "response_ids" and "reward" if given. InputError.
  LookRequest read(Json row, const std::string& where, const std::string& stem,
                   std::int64_t number) const;

  // Reports what is wrong with one row of many, and where; if it returns, the row is skipped.
  using OnBad = std::function<void(const InputError& error, const std::string& where)>;

  // All requests have a response, or none has. Of a given response's group, only that response is
  // returned. Responses that could not be graded have no teacher: they are skipped and counted.
  std::vector<Inspection> look(std::vector<LookRequest> requests, const OnBad& on_bad);
  // Scores a response under the two prompts, all given as ids.
  Inspection look(Inspection inspection);

  std::int64_t ungraded() const { return ungraded_; }

 private:
  struct Seen;  // a group per problem with all that is known of it
  void sample(Seen& seen, std::span<const LookRequest> requests);
  void grade(Seen& seen, std::span<const LookRequest> requests);
  std::vector<Inspection> inspections_of(Seen& seen, std::span<const LookRequest> requests,
                                         const OnBad& on_bad);
  void score_both(std::vector<Inspection>& inspections);
  void check_lengths(const Inspection& inspection);
  const CausalLm& model();

  const RunConfig& config_;
  const Method& method_;
  ModelOptions options_;
  std::optional<std::int64_t> samples_;
  PromptRenderer renderer_;
  ContextBuilder context_;
  std::optional<CausalLm> model_;
  std::unique_ptr<Grader> grader_;
  std::optional<GroupSampler> sampler_;
  std::uint32_t next_prompt_ = 0;  // keys the random numbers: independent of batches
  std::int64_t ungraded_ = 0;
};

}  // namespace antisd::inline cli
