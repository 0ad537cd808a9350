// Benchmarks x n samples through the rollout engine and the graders, into a folder:
//
//   Evaluator evaluator(config, renderer, stop_ids, console, ranks);   // loads eval.benches
//   const std::optional<EvalSummary> summary =
//       evaluator.run(model, {.model = "Qwen3-0.6B", .folder = "eval/qwen"}, stop);
//
// A problem's samples become rows of <bench>.jsonl as soon as they are graded, so a stopped
// evaluation can resume. A sample depends only on the weights, its prompt, the settings and its
// number: the same evaluation gives the same rows however often it was interrupted, and on any
// number of ranks. Each rank samples and grades a part of the problems; rank 0 has the folder.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context/prompt_renderer.h"
#include "dist/communicator.h"
#include "eval/benchmark.h"
#include "eval/results/bench_rows.h"
#include "eval/results/summary.h"
#include "inference/rollout_engine.h"
#include "reward/grader.h"
#include "run/metrics/console.h"
#include "run/metrics/metric_set.h"

namespace antisd::inline eval {

struct EvaluationRequest {
  std::string model;                      // its name, for the summary
  std::optional<std::int64_t> step = {};  // of training
  std::filesystem::path folder;
  bool again = false;          // first remove what the folder holds
  bool replace_other = false;  // the same if it was made with other settings or weights
};

class Evaluator {
 public:
  // Borrows everything except the ids. InputError for unusable benchmarks; see load_benchmark().
  Evaluator(const RunConfig& config, const PromptRenderer& renderer, std::vector<TokenId> stop_ids,
            Console& console, Communicator& ranks);

  const std::vector<Benchmark>& benchmarks() const { return benchmarks_; }

  // Nothing if `stop` ended it on any rank; the finished rows are then in the folder. A complete
  // evaluation in the folder is read, not repeated. InputError if the folder holds rows of other
  // settings. All ranks call it and get the same.
  std::optional<EvalSummary> run(const CausalLm& model, const EvaluationRequest& request,
                                 const std::function<bool()>& stop);

 private:
  struct Prepared {
    std::vector<std::vector<TokenId>> prompts;  // by problem
    Json settings;
  };

  Prepared prepare(const Benchmark& benchmark, const CausalLm& model,
                   const std::string& weights) const;
  using OnRows = std::function<void(std::vector<SampleRow> samples)>;  // of one problem

  std::unique_ptr<BenchRows> open_rows(const EvaluationRequest& request, const Benchmark& benchmark,
                                       const Prepared& prepared) const;
  bool sample(const CausalLm& model, const Benchmark& benchmark, const Prepared& prepared,
              const std::vector<std::int64_t>& missing, BenchRows* rows,
              const std::function<bool()>& stop);
  bool sample_share(const CausalLm& model, const Benchmark& benchmark, const Prepared& prepared,
                    const std::vector<std::int64_t>& problems, const std::function<bool()>& stop,
                    const OnRows& on_rows);
  Grader& grader_of(const Benchmark& benchmark);

  const RunConfig& config_;
  const PromptRenderer& renderer_;
  std::vector<TokenId> stop_ids_;
  Console& console_;
  Communicator& ranks_;
  std::vector<Benchmark> benchmarks_;
  std::map<std::string, std::unique_ptr<Grader>> graders_;  // by reward.kind
  RolloutEngine engine_;
};

// 16 hex digits over a few values of every weight: they change with every training step.
std::string weights_fingerprint(const CausalLm& model);

// Named as in verl: val-core/<bench>/acc/mean@N and pass@K for the K of eval.k, val-aux/... for
// lengths and failures, and val-core/average/acc/mean.
MetricSet evaluation_metrics(const EvalSummary& summary, const std::vector<std::int64_t>& k);

}  // namespace antisd::inline eval
