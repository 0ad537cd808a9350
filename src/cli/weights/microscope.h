// Problems and responses -> inspections: samples where no response is given, grades, builds the
// teacher's context as training does, and scores under both prompts.
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

// What one row asks for.
struct LookRequest {
  std::string where;  // of the row, for messages
  Problem problem;
  std::optional<std::vector<TokenId>> response_ids;  // none: responses are sampled
  std::optional<double> reward;                      // instead of the grader's
};

class Microscope {
 public:
  // Borrows both. `samples`: responses of a problem, or beside a given one as its group; nothing:
  // rollout.group_size, or none beside a given one. Loads tokenizer and template alone.
  Microscope(const RunConfig& config, const Method& method, const ModelOptions& options,
             std::optional<std::int64_t> samples);
  Microscope(const Microscope&) = delete;  // the contexts borrow the renderer
  Microscope& operator=(const Microscope&) = delete;

  const Tokenizer& tokenizer() const { return renderer_.tokenizer(); }

  // A row of a data set, with "response" or "response_ids" and "reward" where they are given.
  // InputError.
  LookRequest read(Json row, const std::string& where, const std::string& stem,
                   std::int64_t number) const;

  // What is wrong with one row of many, and where it is; returns to leave the row out.
  using OnBad = std::function<void(const InputError& error, const std::string& where)>;

  // All with a response or all without. Of a given response's group that response alone comes back.
  // Responses that could not be graded have no teacher: they are left out and counted.
  std::vector<Inspection> look(std::vector<LookRequest> requests, const OnBad& on_bad);
  // A response with both prompts' ids, scored under them as they are.
  Inspection look(Inspection inspection);

  std::int64_t ungraded() const { return ungraded_; }

 private:
  struct Seen;  // a group of each problem with all that is known of it
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
  std::uint32_t next_prompt_ = 0;  // keys the noise: independent of how rows fall into batches
  std::int64_t ungraded_ = 0;
};

}  // namespace antisd::inline cli
