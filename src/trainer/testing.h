// For tests of training: a model of a few thousand weights with a vocabulary of twenty words,
// problems for it, and a grader that looks for one word.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "core/testing.h"
#include "dist/agreement.h"
#include "dist/in_process.h"
#include "io/atomic_file.h"
#include "io/jsonl.h"
#include "model/weights.h"
#include "run/metrics/testing.h"
#include "trainer/trainer.h"

namespace antisd::testing {

inline const std::vector<std::string>& small_words() {
  static const std::vector<std::string> words = {
      "[UNK]",      "[EOS]",   "Numbers",   "target", "|",     "Previous", "attempt",
      "Assessment", "correct", "incorrect", "Solve",  "boxed", "win",      "lose",
      "1",          "2",       "3",         "4",      "5",     "6"};
  return words;
}

// A Hugging Face directory: Qwen3 of two layers with random weights, and a word-level tokenizer.
enum class SmallModel { kDense, kExperts };

inline std::filesystem::path make_small_model(const std::filesystem::path& directory,
                                              std::uint64_t seed = 1,
                                              SmallModel kind = SmallModel::kDense,
                                              const Json& changed = Json::object()) {
  std::filesystem::create_directories(directory);
  Json config = Json::parse(R"({"architectures":["Qwen3ForCausalLM"],
    "model_type":"qwen3","hidden_size":16,"intermediate_size":32,"num_hidden_layers":2,
    "num_attention_heads":2,"num_key_value_heads":1,"head_dim":8,"vocab_size":20,
    "max_position_embeddings":128,"rms_norm_eps":1e-6,"rope_theta":10000.0,"hidden_act":"silu",
    "tie_word_embeddings":true,"attention_bias":false,"eos_token_id":1,"torch_dtype":"float32"})");
  if (kind == SmallModel::kExperts) {
    config.update({{"architectures", {"Qwen3MoeForCausalLM"}},
                   {"model_type", "qwen3_moe"},
                   {"num_experts", 4},
                   {"num_experts_per_tok", 2},
                   {"moe_intermediate_size", 16},
                   {"norm_topk_prob", true}});
  }
  config.update(changed);
  write_file_atomically(directory / "config.json", config.dump());
  std::string vocabulary;
  for (std::size_t i = 0; i < small_words().size(); ++i)
    vocabulary += fmt::format(R"({}"{}":{})", i == 0 ? "" : ",", small_words()[i], i);
  write_file_atomically(
      directory / "tokenizer.json",
      fmt::format(R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":[
        {{"id":1,"content":"[EOS]","single_word":false,"lstrip":false,"rstrip":false,
          "normalized":false,"special":true}}],"normalizer":null,
        "pre_tokenizer":{{"type":"WhitespaceSplit"}},"post_processor":null,"decoder":null,
        "model":{{"type":"WordLevel","vocab":{{{}}},"unk_token":"[UNK]"}}}})",
                  vocabulary));
  write_file_atomically(directory / "tokenizer_config.json",
                        R"({"eos_token":"[EOS]","unk_token":"[UNK]"})");
  CausalLm model(read_model_shape(directory / "config.json"), at::kCPU, at::kFloat);
  initialise_randomly(model, seed, 0.1);
  save_model(model, directory, directory, at::kFloat);
  return directory;
}

// Another model for the same words: wider, deeper, and with rows that are no tokens.
inline std::filesystem::path make_other_teacher(const std::filesystem::path& directory,
                                                std::uint64_t seed = 9) {
  return make_small_model(directory, seed, SmallModel::kDense,
                          {{"hidden_size", 24},
                           {"intermediate_size", 40},
                           {"num_hidden_layers", 3},
                           {"vocab_size", 24}});
}

inline std::filesystem::path make_small_problems(const std::filesystem::path& file, int count = 6) {
  std::string rows;
  for (int i = 0; i < count; ++i)
    rows += fmt::format(R"({{"id":"p{}","problem":"Numbers {} {} target {}","answer":"win"}})"
                        "\n",
                        i, 1 + i % 6, 1 + (i / 6 + i) % 6, 1 + i % 5);
  write_file_atomically(file, rows);
  return file;
}

// Settings for a small run; `folder` gets the model, the data and the run.
inline std::vector<std::string> small_settings(const std::filesystem::path& folder) {
  return {"model.path=" + (folder / "model").string(),
          "data.train=" + (folder / "problems.jsonl").string(),
          "data.template=countdown",
          "data.max_prompt_tokens=16",
          "rollout.prompts_per_step=3",
          "rollout.group_size=4",
          "rollout.max_sequence_tokens=24",
          "context.max_solution_tokens=24",
          "method.gate.warmup_steps=2",
          "reward.kind=countdown",
          "optim.lr=0.003",
          "train.steps=6",
          "checkpoint.every=0",
          "record.dir=" + (folder / "run").string(),
          "record.rollouts_every=1"};
}

// A response with "win" is right; one that starts with "lose" cannot be graded.
class WordGrader : public Grader {
 public:
  Verdict grade(const GradeRequest& request) override {
    const std::size_t win = request.response.find("win"), lose = request.response.find("lose");
    if (fails && lose < win) return {std::nullopt, "said lose"};
    return {win != std::string::npos ? 1.0 : 0.0, ""};
  }
  bool fails = false;
};

// A complete training in memory, except for its run directory.
class SmallTraining {
 public:
  explicit SmallTraining(const std::vector<std::string>& settings = {})
      : SmallTraining(settings, one_rank()) {}

  // As one of several ranks. Model, data and run are in rank 0's folder.
  SmallTraining(const std::vector<std::string>& settings, Communicator& all,
                ShardOptions shard = {}, SmallModel kind = SmallModel::kDense)
      : ranks(all) {
    at::set_num_threads(1);  // more threads only wait for each other on so little work
    if (ranks.rank() == 0) {
      make_small_model(folder / "model", 1, kind);
      make_small_problems(folder / "problems.jsonl");
      make_other_teacher(folder / "teacher");
    }
    files = first_says(ranks, folder.path().string());
    for (const std::string& setting : small_settings(files))
      config.options().assign(setting);
    for (const std::string& setting : settings)
      config.options().assign(setting);
    config.resolve();
    method = resolve_method(config.method, config.loss);
    renderer.emplace(Tokenizer::load(files / "model"), std::nullopt, config.data);
    problems = PromptSet::load({.files = config.data.train, .map = {}, .count_tokens = {}});
    state = std::make_unique<TrainState>(
        load_model(files / "model", at::kCPU, at::kFloat),
        PromptStream(problems.size(), problems.fingerprint(), {.seed = 0}), method.gate,
        adamw_options(config.optim), ranks, shard);
    if (method.slow_teacher()) state->teacher.emplace(state->model);
    if (method.other_teacher) {
      state->other_teacher = identify_base(files / "teacher");
      state->other_teacher->path = config.method.teacher.path;  // checkpoints are compared
      other_teacher.emplace(load_model(files / "teacher", at::kCPU, at::kFloat),
                            TeacherRest::kWhereItIs);
    }
    if (!config.context.command.empty())
      context_command.emplace(ContextCommandOptions{
          .command = config.context.command, .timeout_s = config.context.timeout_s, .workers = 2});
    if (keeps_reference(config)) reference = load_model(files / "model", at::kCPU, at::kFloat);
    if (ranks.rank() == 0) {
      recorder.emplace(config.record, console);
    } else {
      recorder.emplace(config.record, console, ranks.rank());
    }
    recorder->open(config, {}, 0);
  }

  bool run(const std::function<bool()>& stop = [] { return false; }) {
    return run_with(grader, {1}, stop);
  }

  bool run_with(
      Grader& other, std::vector<TokenId> stop_ids,
      const std::function<bool()>& stop = [] { return false; }) {
    Trainer trainer({.config = config,
                     .state = *state,
                     .problems = problems,
                     .renderer = *renderer,
                     .grader = other,
                     .ranks = ranks,
                     .recorder = *recorder,
                     .console = console,
                     .reference = reference ? &*reference : nullptr,
                     .other_teacher = other_teacher ? &*other_teacher : nullptr,
                     .context_command = context_command ? &*context_command : nullptr,
                     .stop_ids = std::move(stop_ids),
                     .origin = files / "model",
                     .kept_layers = config.model.gradient_checkpointing == "false"
                                        ? state->model.shape().layers.size()
                                        : 0});
    return trainer.run(stop);
  }

  // Rows of a file of the run directory.
  std::vector<Json> rows(const std::string& file) const {
    std::vector<Json> all;
    JsonlReader reader(recorder->directory() / file);
    for (Json row; reader.next(row);)
      all.push_back(row);
    return all;
  }

  TemporaryFolder folder;
  std::filesystem::path files;  // rank 0's folder
  RunConfig config;
  Method method;
  Communicator& ranks;
  std::optional<PromptRenderer> renderer;
  PromptSet problems = {};
  std::unique_ptr<TrainState> state;
  std::optional<CausalLm> reference;
  std::optional<OtherTeacher> other_teacher;  // files / "teacher", whatever the path says
  std::optional<ContextCommand> context_command;
  WordGrader grader;
  Console console{ConsoleOptions{}};  // tests look for warnings
  std::optional<Recorder> recorder;
};

// All bytes of the weights.
inline std::string weight_bytes(const CausalLm& model) {
  std::string bytes;
  for (const Parameter& parameter : model.parameters())
    bytes.append(static_cast<const char*>(parameter.value.const_data_ptr()),
                 parameter.value.nbytes());
  return bytes;
}

}  // namespace antisd::testing
