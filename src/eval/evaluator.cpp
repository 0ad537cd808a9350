#include "eval/evaluator.h"

#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "algo/response_text.h"
#include "context/templates.h"
#include "core/error.h"
#include "dist/agreement.h"
#include "dist/message.h"
#include "eval/graded_rows.h"
#include "io/checksum.h"
#include "model/causal_lm.h"
#include "ops/tensor_errors.h"
#include "reward/grading_stage.h"
#include "run/run_files.h"

namespace antisd::inline eval {
namespace {

namespace fs = std::filesystem;

// Each benchmark has its own random numbers, separate from training's. They are the same for every
// checkpoint, so a difference between checkpoints is not sampling noise.
std::uint64_t sampling_seed(std::int64_t seed, const std::string& bench) {
  const std::string hex = checksum_of(fmt::format("evaluation {} {}", seed, bench));
  return std::stoull(hex.substr(0, 16), nullptr, 16);
}

std::string fingerprint_of(const std::vector<std::vector<TokenId>>& prompts) {
  Checksum sum;
  for (const std::vector<TokenId>& ids : prompts) {
    sum.add(fmt::format("{} ", ids.size()));
    sum.add(std::as_bytes(std::span(ids)));
  }
  return sum.hex().substr(0, 16);
}

std::string fingerprint_of(const std::vector<Problem>& problems) {
  Checksum sum;
  for (const Problem& problem : problems)
    sum.add(to_json_line(to_row(problem)) + "\n");
  return sum.hex().substr(0, 16);
}

std::vector<ChatMessage> messages_of(const Problem& problem, const std::string& words) {
  if (!problem.messages.empty()) return problem.messages;
  return {{"user", fill_template(words, {{"problem", problem.problem}})}};
}

EvalSettings settings_of(const RunConfig& config) {
  return {.temperature = config.eval.temperature,
          .top_p = config.eval.top_p,
          .max_sequence_tokens = config.eval.max_sequence_tokens,
          .seed = config.train.seed};
}

std::vector<std::int64_t> missing_problems(const BenchRows& rows, std::int64_t problems) {
  std::vector<std::int64_t> missing;
  for (std::int64_t p = 0; p < problems; ++p)
    if (!rows.has(p)) missing.push_back(p);
  return missing;
}

// The samples of each problem that a rank found: a line each, and the last one says how it ended.
std::vector<std::vector<SampleRow>> rows_of(const std::string& found) {
  std::vector<std::vector<SampleRow>> problems;
  std::size_t begin = 0;
  for (std::size_t end; (end = found.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::vector<SampleRow>& samples = problems.emplace_back();
    for (const Json& row : parse_json(found.substr(begin, end - begin), "another rank"))
      samples.push_back(sample_row_from(row, "another rank"));
  }
  return problems;
}

std::vector<std::string> names_of(const std::vector<Benchmark>& benchmarks) {
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks)
    names.push_back(benchmark.name);
  return names;
}

}  // namespace

std::string weights_fingerprint(const CausalLm& model) {
  constexpr std::int64_t kValues = 64;  // per weight
  Checksum sum;
  const auto add = [&](const at::Tensor& values) {
    const at::Tensor flat = values.detach().flatten();
    const std::int64_t stride = std::max<std::int64_t>(1, flat.numel() / kValues);
    const at::Tensor some = flat.slice(0, 0, flat.numel(), stride).to(at::kCPU).contiguous();
    sum.add(std::span(static_cast<const std::byte*>(some.const_data_ptr()), some.nbytes()));
  };
  for (const Parameter& parameter : model.parameters()) {
    sum.add(parameter.name());
    if (parameter.quantized.defined()) {
      add(parameter.quantized.codes);
      add(parameter.quantized.scales);
    } else {
      add(parameter.value);
    }
  }
  return sum.hex().substr(0, 16);
}

Evaluator::Evaluator(const RunConfig& config, const PromptRenderer& renderer,
                     std::vector<TokenId> stop_ids, Console& console, Communicator& ranks)
    : config_(config),
      renderer_(renderer),
      stop_ids_(std::move(stop_ids)),
      console_(console),
      ranks_(ranks),
      benchmarks_(load_benchmarks(config)) {
  for (const Benchmark& benchmark : benchmarks_)
    grader_of(benchmark);  // finds missing requirements now
}

Grader& Evaluator::grader_of(const Benchmark& benchmark) {
  std::unique_ptr<Grader>& grader = graders_[benchmark.grader];
  if (!grader) {
    grader = make_grader(benchmark_reward(benchmark, config_.reward));
  }
  return *grader;
}

Evaluator::Prepared Evaluator::prepare(const Benchmark& benchmark, const CausalLm& model,
                                       const std::string& weights) const {
  Prepared prepared;
  const std::string words = student_template(benchmark_template(benchmark, config_));
  const std::int64_t longest =
      std::min(config_.eval.max_sequence_tokens, model.shape().max_positions);
  for (const Problem& problem : benchmark.problems) {
    try {
      prepared.prompts.push_back(renderer_.encode(messages_of(problem, words)));
    } catch (const InputError& error) {
      throw InputError(fmt::format("problem '{}': {}", problem.id, error.message()),
                       {.where = benchmark.file.string()});
    }
    const std::int64_t tokens = std::ssize(prepared.prompts.back());
    if (tokens > 0 && tokens < longest) continue;
    throw InputError(
        fmt::format("the prompt of problem '{}' has {} tokens, which leaves none of {} for a "
                    "response",
                    problem.id, tokens, longest),
        {.where = benchmark.file.string(), .remedy = "raise eval.max_sequence_tokens"});
  }
  prepared.settings = {{"n", benchmark.n},
                       {"temperature", config_.eval.temperature},
                       {"top_p", config_.eval.top_p},
                       {"max_sequence_tokens", longest},
                       {"seed", config_.train.seed},
                       {"grader", benchmark.grader},
                       {"problems", fingerprint_of(benchmark.problems)},
                       {"prompts", fingerprint_of(prepared.prompts)},
                       {"weights", weights}};
  const RewardConfig reward = benchmark_reward(benchmark, config_.reward);
  if (reward.kind == "python") prepared.settings["function"] = reward.function;
  if (reward.correct_at != 1) prepared.settings["correct_at"] = reward.correct_at;
  if (reward.kind == "math" && reward.relative_tolerance > 0)
    prepared.settings["relative_tolerance"] = reward.relative_tolerance;
  return prepared;
}

std::unique_ptr<BenchRows> Evaluator::open_rows(const EvaluationRequest& request,
                                                const Benchmark& benchmark,
                                                const Prepared& prepared) const {
  const auto open = [&] {
    return std::make_unique<BenchRows>(request.folder, benchmark.name, prepared.settings,
                                       std::ssize(benchmark.problems), benchmark.n);
  };
  try {
    return open();
  } catch (const InputError&) {
    if (!request.replace_other) throw;
    remove_evaluation(request.folder, {benchmark.name});
    return open();
  }
}

std::optional<EvalSummary> Evaluator::run(const CausalLm& model, const EvaluationRequest& request,
                                          const std::function<bool()>& stop) {
  const bool first = ranks_.rank() == 0;
  if (first && request.again) remove_evaluation(request.folder, names_of(benchmarks_));
  EvalSummary summary{
      .model = request.model, .step = request.step, .settings = settings_of(config_)};
  const std::string weights = weights_fingerprint(model);
  for (const Benchmark& benchmark : benchmarks_) {
    ranks_.enter("evaluation of " + benchmark.name);
    const Prepared prepared = prepare(benchmark, model, weights);
    std::unique_ptr<BenchRows> rows;  // rank 0's
    const std::string missing = gather_agreed(ranks_, [&] {
      MessageWriter own;
      if (first) {
        rows = open_rows(request, benchmark, prepared);
        own.add(missing_problems(*rows, std::ssize(benchmark.problems)));
      }
      return own.bytes();
    })[0];
    const auto problems = MessageReader(missing).take_vector<std::int64_t>();
    if (!problems.empty()) {
      std::error_code ignored;
      if (first) fs::remove(request.folder / kSummaryFile, ignored);
      const bool whole = sample(model, benchmark, prepared, problems, rows.get(), stop);
      engine_.release();
      if (!whole) return std::nullopt;
    }
    agree(ranks_, [&] {
      if (!first) return;
      if (!problems.empty()) rows->finish();
      summary.benches.emplace_back(
          benchmark.name,
          summarise_bench(rows->rows(), std::ssize(benchmark.problems), benchmark.n));
    });
  }
  const std::string text = gather_agreed(ranks_, [&] {
    if (!first) return std::string();
    summarise_average(summary);
    write_summary(request.folder / kSummaryFile, summary);
    return to_json(summary).dump();
  })[0];
  return first ? summary : summary_from(parse_json(text, "rank 0"), "rank 0");
}

// Problems of one call of sample_share() are dealt out to the ranks, whose rows then go to rank 0:
// so many samples a rank that few wait for the longest, and that a stop loses little.
constexpr std::int64_t kShareSamples = 256;

bool Evaluator::sample(const CausalLm& model, const Benchmark& benchmark, const Prepared& prepared,
                       const std::vector<std::int64_t>& missing, BenchRows* rows,
                       const std::function<bool()>& stop) {
  const std::int64_t problems = std::ssize(benchmark.problems);
  ProgressBar bar(console_, {.label = "eval " + benchmark.name,
                             .unit = "problem",
                             .total = problems,
                             .done = problems - std::ssize(missing)});
  std::int64_t right = 0, graded = 0;
  const OnRows add = [&](std::vector<SampleRow> samples) {
    for (const SampleRow& row : samples) {
      graded += row.correct.has_value();
      right += row.correct.value_or(false);
    }
    rows->add(std::move(samples));
    const double share = graded > 0 ? static_cast<double>(right) / static_cast<double>(graded) : 0;
    bar.update(rows->done(), {{"right", share}});
  };
  if (ranks_.size() == 1) {
    if (!sample_share(model, benchmark, prepared, missing, stop, add)) return false;
    bar.finish();
    return true;
  }
  const auto size = static_cast<std::size_t>(ranks_.size());
  const auto share =
      static_cast<std::size_t>(std::max<std::int64_t>(1, kShareSamples / benchmark.n));
  for (std::size_t begin = 0; begin < missing.size(); begin += size * share) {
    const std::size_t end = std::min(missing.size(), begin + size * share);
    std::vector<std::int64_t> own;
    for (std::size_t i = begin + static_cast<std::size_t>(ranks_.rank()); i < end; i += size)
      own.push_back(missing[i]);
    const std::vector<std::string> all = gather_agreed(ranks_, [&] {
      std::string found;
      const OnRows note = [&](const std::vector<SampleRow>& samples) {
        Json problem = Json::array();
        for (const SampleRow& row : samples)
          problem.push_back(to_json(row));
        found += problem.dump() + "\n";
      };
      with_tensor_errors([&] {
        model.make_passes({}, [&] {
          const bool whole = sample_share(model, benchmark, prepared, own, stop, note);
          found += whole ? "whole" : "stopped";
        });
      });
      return found;
    });
    agree(ranks_, [&] {
      if (rows == nullptr) return;
      for (const std::string& found : all)
        for (std::vector<SampleRow>& samples : rows_of(found))
          add(std::move(samples));
    });
    if (!std::ranges::all_of(all,
                             [](const std::string& found) { return found.ends_with("whole"); }))
      return false;
  }
  bar.finish();
  return true;
}

// False if `stop` ended it.
bool Evaluator::sample_share(const CausalLm& model, const Benchmark& benchmark,
                             const Prepared& prepared, const std::vector<std::int64_t>& problems,
                             const std::function<bool()>& stop, const OnRows& on_rows) {
  if (problems.empty()) return true;
  std::vector<RolloutRequest> requests;
  for (const std::int64_t p : problems) {
    requests.push_back({prepared.prompts[static_cast<std::size_t>(p)],
                        static_cast<int>(benchmark.n), static_cast<std::uint32_t>(p)});
  }
  Grader& grader = grader_of(benchmark);
  grader.probe(grade_request(benchmark.problems[requests.front().prompt], {}));
  GradingStage stage(grader, {.workers = static_cast<int>(config_.reward.workers), .open = 1024});
  std::map<std::size_t, std::vector<Response>> waiting;  // by problem
  std::size_t handed_over = 0;
  const auto hand_over = [&](const std::vector<GradedGroup>& done) {
    for (const GradedGroup& group : done) {
      on_rows(graded_rows(benchmark.problems[group.group], group,
                          waiting.extract(group.group).mapped()));
      ++handed_over;
    }
  };
  std::atomic<bool> interrupted = stop();
  RolloutOptions options;
  options.sampling = {.temperature = config_.eval.temperature, .top_p = config_.eval.top_p};
  options.max_sequence_tokens =
      std::min(config_.eval.max_sequence_tokens, model.shape().max_positions);
  options.stop_ids = stop_ids_;
  options.seed = sampling_seed(config_.train.seed, benchmark.name);
  options.interrupted = &interrupted;
  options.on_step = [&](const RolloutProgress&) {
    if (stop()) interrupted = true;
  };
  if (!interrupted) {
    engine_.generate(model, requests, options, [&](SampleGroup& group) {
      std::vector<Response>& responses = waiting[group.prompt] = std::move(group.samples);
      add_texts(responses, renderer_.tokenizer());
      stage.submit(group.prompt, benchmark.problems[group.prompt], responses);
      hand_over(stage.take_done());
    });
  }
  hand_over(stage.finish(stop));
  for (const std::string& text : grader.take_warnings())
    console_.warn(text);
  return handed_over == problems.size();
}

MetricSet evaluation_metrics(const EvalSummary& summary, const std::vector<std::int64_t>& k) {
  MetricSet metrics;
  for (const auto& [name, bench] : summary.benches) {
    metrics.set(fmt::format("val-core/{}/acc/mean@{}", name, bench.n), bench.avg);
    for (const std::int64_t shown : shown_k(k, bench.n)) {
      if (shown == 1) continue;  // the mean
      metrics.set(fmt::format("val-core/{}/acc/pass@{}", name, shown),
                  bench.pass[static_cast<std::size_t>(shown) - 1]);
    }
    metrics.set(fmt::format("val-aux/{}/response_length/mean", name), bench.mean_tokens);
    metrics.set(fmt::format("val-aux/{}/response_length/clip_ratio", name), bench.truncated);
    metrics.set(fmt::format("val-aux/{}/extraction_failed", name), bench.extraction_failed);
    metrics.set(fmt::format("val-aux/{}/grader_failed", name),
                static_cast<double>(bench.grader_failed));
  }
  if (summary.benches.size() > 1) metrics.set("val-core/average/acc/mean", summary.average);
  return metrics;
}

}  // namespace antisd::inline eval
