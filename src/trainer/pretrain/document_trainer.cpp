#include "trainer/pretrain/document_trainer.h"

#include <cmath>
#include <map>

#include "algo/response_text.h"
#include "core/stopwatch.h"
#include "dist/agreement.h"
#include "dist/message.h"
#include "model/not_finite.h"
#include "ops/device.h"
#include "ops/tensor_errors.h"
#include "run/checkpoint/checkpoint.h"
#include "trainer/memory_peaks.h"
#include "trainer/saved_state.h"

namespace antisd::inline trainer {
namespace {

constexpr std::size_t kLoggedSamples = 2;
constexpr std::size_t kTextPromptTokens = 16;  // of a text that is to be continued

// What a sampled response continues.
std::vector<TokenId> shown_tokens(const TrainingDocument& document) {
  const std::size_t own = document.prompt_tokens();
  const std::size_t tokens = own > 1 ? own : std::min(kTextPromptTokens, document.ids.size() - 1);
  return {document.ids.begin(), document.ids.begin() + std::ptrdiff_t(tokens)};
}

}  // namespace

Json to_json(const DocumentState& state) {
  return {{"kind", "pretrain"},
          {"step", state.step},
          {"documents", state.documents},
          {"best", to_json(state.best)}};
}

void resume(DocumentState& state, const std::filesystem::path& checkpoint) {
  const Json saved = load_checkpoint(checkpoint, state.model, state.optimizer,
                                     state.base ? &*state.base : nullptr);
  read_saved([&] {
    const std::string documents = saved.at("documents").get<std::string>();
    if (documents != state.documents) {
      throw InputError(fmt::format("the run was trained on other documents: {} then, {} now",
                                   documents, state.documents),
                       {.where = checkpoint.string(),
                        .remedy = "give it its old [pretrain] settings, or start a new run with "
                                  "model.path = its checkpoint's model/"});
    }
    state.step = saved.at("step").get<std::int64_t>();
    state.best = best_checkpoint_from(saved.at("best"));
  });
}

DocumentTrainer::DocumentTrainer(DocumentTrainerParts parts)
    : parts_(std::move(parts)),
      config_(parts_.config),
      state_(parts_.state),
      schedule_(make_schedule(config_.optim, config_.train.steps)),
      peak_flops_(peak_flops(state_.model.device())),
      keeper_(config_.checkpoint, parts_.recorder, state_.optimizer.ranks(), state_.step) {}

GradientPassOptions DocumentTrainer::pass_options() const {
  return {.micro_batch_tokens = config_.train.micro_batch_tokens,
          .micro_batches = config_.train.micro_batches,
          .kept_layers = parts_.kept_layers,
          .pack = {.share = false, .sums = sum_order(config_, state_.model.device())},
          .noun = "document"};
}

bool DocumentTrainer::run(const std::function<bool()>& stop) {
  ProgressBar bar(
      parts_.console,
      {.label = "pretrain", .unit = "step", .total = config_.train.steps, .done = state_.step});
  DocumentsAhead ahead(parts_.documents, state_.step, config_.train.steps);
  Communicator& ranks = state_.optimizer.ranks();
  while (state_.step < config_.train.steps && !any_of(ranks, stop())) {
    ranks.enter(fmt::format("step {}", state_.step + 1));
    checked_step(ahead.next());
    bar.update(state_.step,
               {{"loss", last_row_.metrics.find("train/loss").value_or(NAN)},
                {"tokens/s", last_row_.metrics.find("perf/throughput").value_or(NAN)}});
    if (keeper_.due(state_.step)) save();
  }
  if (!keeper_.saved(state_.step)) save_last(stop);
  bar.finish();
  return state_.step >= config_.train.steps;
}

void DocumentTrainer::checked_step(std::span<const TrainingDocument> documents) {
  const std::int64_t done = state_.step;
  try {
    step(documents);
    keeper_.proved(state_.best);
  } catch (const NotFinite& error) {
    throw keeper_.not_finite_error(error, done, schedule_.at(done), state_.step == done);
  }
}

void DocumentTrainer::step(std::span<const TrainingDocument> documents) {
  Stopwatch clock;
  const double lr = schedule_.at(state_.step), save_s = keeper_.take_seconds();
  const PassBatch batch{.sequences = document_sequences(documents)};
  const MeanOver mean = mean_over(batch.sequences);
  DocumentObjective objective;
  const UpdateReport report = update(documents, batch, mean, lr, objective);
  const double loss = objective.sums.mean("loss"), seconds = clock.lap();
  if (!std::isfinite(loss)) throw NotFinite("the loss is not finite");
  ++state_.step;

  MetricSet metrics;
  double tokens = 0;
  for (const TrainingDocument& document : documents)
    tokens += static_cast<double>(document.ids.size());
  metrics.set("train/loss", loss);
  metrics.set("train/grad_norm", report.grad_norm);
  metrics.set("train/lr", lr);
  metrics.set("perf/total_num_tokens", tokens);
  metrics.set("perf/loss_tokens", static_cast<double>(mean.tokens));
  const double own_tokens = tokens / state_.optimizer.ranks().size();  // per rank, as in train
  metrics.set("perf/throughput", own_tokens / seconds);
  if (peak_flops_) {
    const double flops = state_.model.shape().training_flops() * own_tokens;
    metrics.set("perf/mfu", flops / seconds / *peak_flops_);
  }
  metrics.set("perf/max_memory_allocated_gb", MemoryPeaks(state_.model.device()).most());
  metrics.set("timing_s/step", seconds);
  metrics.set("timing_s/save", save_s);
  const std::int64_t every = config_.pretrain.eval_every;
  const bool evaluated =
      every > 0 && (state_.step % every == 0 || state_.step == config_.train.steps);
  if (evaluated) {
    evaluate(metrics);
    metrics.set("timing_s/eval", clock.lap());
  }
  last_row_ = {std::move(metrics), evaluated};
  parts_.recorder.metrics(state_.step, last_row_.metrics);
}

void DocumentTrainer::evaluate(MetricSet& metrics) {
  std::string text = fmt::format("step {}: loss {:.4f}", state_.step, *metrics.find("train/loss"));
  if (!parts_.held_out.empty()) {
    const std::vector<TargetSequence> held_out = document_sequences(parts_.held_out);
    DocumentObjective objective;
    measure(state_.model, state_.optimizer.ranks(), held_out, pass_options(), mean_over(held_out),
            objective);
    const double loss = objective.sums.mean("loss");
    metrics.set("val/loss", loss);
    text += fmt::format(", held-out loss {:.4f}", loss);
  }
  if (!parts_.prompts.empty()) sample(metrics);
  for (const Metric& metric : metrics.values()) {
    if (metric.name.starts_with("val-core/"))
      text += fmt::format(", {} {:.3f}", metric.name, metric.value);
  }
  parts_.recorder.info(text);
}

// A response to each prompt; each rank samples a part of them.
std::vector<std::string> DocumentTrainer::sample_texts() {
  Communicator& ranks = state_.optimizer.ranks();
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<RolloutRequest> requests;
  for (auto i = static_cast<std::size_t>(ranks.rank()); i < parts_.prompts.size(); i += size)
    requests.push_back({shown_tokens(parts_.prompts[i]), 1, static_cast<std::uint32_t>(i)});
  RolloutOptions options;
  options.max_sequence_tokens =
      std::min(config_.pretrain.sequence_tokens, state_.model.shape().max_positions);
  options.stop_ids = parts_.stop_ids;
  options.seed = static_cast<std::uint64_t>(config_.train.seed);
  options.step = static_cast<std::uint32_t>(state_.step);
  const std::vector<std::string> all = gather_agreed(ranks, [&] {
    MessageWriter own;
    with_tensor_errors([&] {
      state_.model.make_passes({}, [&] {
        if (requests.empty()) return;
        SampleBatch samples = engine_.generate(state_.model, requests, options);
        for (SampleGroup& group : samples.groups) {
          add_texts(group.samples, parts_.tokenizer);
          own.add(group.samples[0].text);
        }
      });
    });
    engine_.release();
    return own.bytes();
  });
  std::vector<std::string> texts(parts_.prompts.size());
  for (std::size_t r = 0; r < size; ++r) {
    MessageReader reader(all[r]);
    for (std::size_t i = r; i < texts.size(); i += size)
      texts[i] = reader.take_text();
  }
  return texts;
}

void DocumentTrainer::sample(MetricSet& metrics) {
  const std::vector<std::string> texts = sample_texts();
  std::map<std::string, std::pair<double, double>> right;  // and total, by kind of problem
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const TrainingDocument& document = parts_.prompts[i];
    if (i < kLoggedSamples) {
      parts_.recorder.note(
          fmt::format("step {} sample: {} >>> {}", state_.step,
                      to_json_line(Json(parts_.tokenizer.decode(shown_tokens(document)))),
                      to_json_line(Json(texts[i]))));
    }
    if (parts_.grader == nullptr || document.bench.empty()) continue;
    auto& [sum, count] = right[document.bench];
    sum +=
        parts_.grader->grade({.response = texts[i], .problem = document.prompt}).reward.value_or(0);
    ++count;
  }
  for (const auto& [bench, counts] : right)
    metrics.set(fmt::format("val-core/{}/acc/mean@1", bench), counts.first / counts.second);
}

// Writes the document that stopped the step to a file.
UpdateReport DocumentTrainer::update(std::span<const TrainingDocument> documents,
                                     const PassBatch& batch, MeanOver mean, double lr,
                                     DocumentObjective& objective) {
  try {
    return GradientPass(state_.model, state_.optimizer, pass_options())
        .update(lr, batch, mean, objective);
  } catch (const NotFiniteError& error) {
    const std::int64_t failed = state_.step + 1;
    const std::filesystem::path file = parts_.recorder.failure(
        failed,
        {{"step", failed}, {"ids", documents[error.number].ids}, {"failure", error.problem()}});
    throw NotFinite(fmt::format("{}; the document is in {}", error.problem(), file.string()));
  }
}

CheckpointParts DocumentTrainer::checkpoint(Communicator& ranks) const {
  return {.model = state_.model,
          .optimizer = state_.optimizer,
          .origin = parts_.origin,
          .base = state_.base ? &*state_.base : nullptr,
          .ranks = &ranks};
}

CheckpointKeeper::Writing DocumentTrainer::writing() const {
  return {.write =
              [this, step = state_.step, saved = to_json(state_)](
                  const std::filesystem::path& folder, Communicator& ranks,
                  const std::function<void()>& call) {
                CheckpointParts parts = checkpoint(ranks);
                parts.call_ranks = call;
                save_checkpoint(folder, step, parts, saved);
              },
          .help = [this](Communicator& ranks) { help_save_checkpoint(checkpoint(ranks)); }};
}

void DocumentTrainer::save() {
  try {
    keeper_.begin_save(state_.step, last_row_, state_.best, [this] { return writing(); });
    keeper_.finish_save(state_.best);  // the next step has no phase that leaves the weights alone
  } catch (const NotFinite& error) {
    throw diverged(error);
  }
}

void DocumentTrainer::save_last(const std::function<bool()>& stop) {
  try {
    keeper_.save_last(
        state_.step, last_row_, state_.best, [this] { return writing(); }, stop);
  } catch (const NotFinite& error) {
    throw diverged(error);
  }
}

// The weights are those that the last step left, so that step is the one that failed.
RunError DocumentTrainer::diverged(const NotFinite& error) const {
  const std::int64_t before = state_.step - 1;
  return keeper_.not_finite_error(error, before, schedule_.at(before), /*untouched=*/false);
}

}  // namespace antisd::inline trainer
