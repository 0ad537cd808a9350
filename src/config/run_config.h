// All settings of a run, as plain structs with the paper's values as defaults. Each layer takes its
// own section by const reference; only the command line fills them.
//
//   RunConfig config;
//   config.options().load_toml("run.toml");
//   config.options().assign("train.steps=100");
//   config.resolve();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/option_set.h"

namespace antisd::inline config {

// Low-rank adapters: only they are trained.
struct LoraConfig {
  std::int64_t rank = 0;  // 0: none, the whole model is trained
  double alpha = 32;
  std::vector<std::string> targets = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                      "gate_proj", "up_proj", "down_proj"};
  bool experts = false;
};

struct ModelConfig {
  std::string path;
  std::string dtype = "auto";
  std::string base_dtype = "model";
  std::string gradient_checkpointing = "auto";  // auto, true, false
  LoraConfig lora;
};

struct DataConfig {
  std::vector<std::string> train;
  std::string template_name = "math";
  ScalarMap chat_options;
  StringMap map;
  std::int64_t max_prompt_tokens = 2048;
  bool shuffle = true;
};

struct RolloutConfig {
  std::int64_t prompts_per_step = 32;
  std::int64_t group_size = 8;                // G
  std::int64_t max_sequence_tokens = 32'768;  // prompt + response
  double temperature = 1.0;
  double top_p = 1.0;
  std::int64_t top_k = 0;
  std::int64_t refill = 0;  // rounds
  bool partial = false;
  std::int64_t partial_tokens = 8'192;  // of a response, in one step
};

struct GateConfig {
  std::string kind = "entropy";
  std::string statistic = "auto";
  std::int64_t warmup_steps = 5;  // W
  double min_warm = 0.01;         // nats; a smaller H_warm is too small to gate on
  double close = 0.93;            // tau = close * H_warm
  double close_floor = 0;         // tau is at least this
  double reopen = 1.0;
  double band_close = 0;  // 0: one-sided
  double band_reopen = 1.0;
  double max_perplexity = 0;  // 0: every response counts
  bool previous_step = false;
  std::string on_too_small = "open";  // what a warm-up below min_warm does: open | stop
};

// How the authors' released code treats the per-token term before it is weighted; 0 is off.
struct SignalConfig {
  double outlier_sigmas = 0;
  double clamp_u = 0;
  bool standardise = false;
  double clamp_term = 0;
  std::int64_t max_response_tokens = 0;
};

struct SdpoConfig {
  std::int64_t top_k = 100;
  double alpha = 0.5;
  double teacher_ema = 0;  // 0: the teacher has the student's weights
};

// A model other than the student, as its teacher.
struct TeacherConfig {
  std::string path;  // empty: the model itself
};

// On-policy distillation.
struct OpdConfig {
  std::string divergence = "sampled";
  std::int64_t top_k = 0;  // of the teacher; 0: the whole vocabulary
  double alpha = 0.5;

  // Whether the loss is a divergence of distributions, not an advantage.
  bool distils() const { return divergence != "sampled"; }
};

// Fixed additions to the advantages of some tokens, as controls for what a teacher tells.
struct BonusConfig {
  std::vector<std::string> words;
  double size = 0;
};
struct PenaltyConfig {
  double below = 0;  // probability; 0: none
  double size = 0;
};

struct MethodConfig {
  std::string name = "antisd";
  std::string preset = "paper";
  double lambda_max = 0.5;
  std::string lambda_rule = "constant";
  double lambda_slope = 0.2;
  std::string phi = "jsd";
  std::string compose = "additive";
  GateConfig gate;
  SignalConfig signal;
  TeacherConfig teacher;
  OpdConfig opd;
  SdpoConfig sdpo;
  BonusConfig bonus;
  PenaltyConfig penalty;
};

struct ContextConfig {
  std::string control = "none";
  std::string peer = "rollout";
  std::string fallback = "dataset";
  std::string column;   // of the data set, in place of a peer
  std::string command;  // a program that says what is shown
  double timeout_s = 10;
  std::int64_t max_solution_tokens = 3072;
  StringMap templates;
};

// How rewards become A_i.
struct AdvantageConfig {
  std::string baseline = "group";
  std::string scale = "group";
};

struct LossConfig {
  std::string policy = "clip";
  std::string ratio = "token";
  double clip_low = 0.2;
  double clip_high = 0.2;
  double dual_clip = 3;
  double kl_coef = 0;
  std::string kl_estimator = "k3";
  double entropy_coef = 0;
  std::string aggregation = "token-mean";
  std::int64_t norm_tokens = 32'768;
  bool overlong_filter = false;
  std::string rollout_correction = "none";
  double rollout_correction_cap = 2;  // C
};

struct RewardConfig {
  std::string kind = "math";
  std::string command;
  std::string function;  // FILE.py:FUNCTION
  std::string python;    // "": ANTISD_PYTHON's or python3
  double correct_at = 1;
  double truncated = 0;
  double relative_tolerance = 0;  // 0: exact
  double weight = 1;
  StringMap terms;                // name -> kind and argument
  ScalarMap weights;              // name -> number
  std::int64_t memory_mb = 8192;  // 0: no limit
  double timeout_s = 10;
  std::int64_t give_up_after = 3;  // consecutive steps without a single grade
  std::int64_t workers = 0;
  std::string sandbox = "auto";
  double kl_coef = 0;
  std::int64_t overlong_tokens = 0;  // 0: no penalty
  double overlong_penalty = 1;
};

// One of reward.terms.
struct RewardTerm {
  std::string name, kind, argument;
  double weight = 1;
};

// By name, with their weights. InputError for an entry of reward.terms or reward.weights that
// cannot be read.
std::vector<RewardTerm> reward_terms(const RewardConfig& config);

struct OptimConfig {
  double lr = 1e-6;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  double grad_clip = 1.0;
  std::int64_t warmup_steps = 0;
  std::string schedule = "constant";
  std::string offload = "auto";
};

struct TrainConfig {
  std::int64_t steps = 200;
  std::int64_t seed = 0;
  std::int64_t minibatches = 1;
  std::int64_t epochs = 1;
  std::int64_t micro_batch_tokens = 32'768;
  std::int64_t micro_batches = 0;
  bool deterministic = false;
  std::string init_from;
};

// Several ranks (processes) of one run.
struct DistConfig {
  std::string shard = "auto";
  std::string shard_over = "all";
  std::string backend = "auto";
  double silence_s = 60;
};

// The documents of the built-in task: how the pre-trained model behaves as a student, and as a
// teacher that is shown a solution.
struct MixConfig {
  double plain = 0.7;                // documents without a solution in the prompt
  double persistence = 0.6;          // q: another try after one that fails
  double go_on = 0.02;               // another try after one that succeeds
  double copy = 0.4;                 // with a solution in the prompt: give it at once
  double hinted_persistence = 0.35;  // hq: persistence with a solution that is not given at once
  double hint = 0.3;                 // then: a try is the solution itself
  std::int64_t max_tries = 12;
};

// A Qwen3 model with random weights.
struct NewModelConfig {
  std::int64_t hidden = 0;  // 0: the weights are those of model.path
  std::int64_t layers = 4;
  std::int64_t heads = 6, kv_heads = 0, head_dim = 32;
  std::int64_t intermediate = 512;
  std::int64_t positions = 1024;
  std::int64_t vocabulary = 0;
  double rope_theta = 10'000;
  bool tied_head = true;
};

struct PretrainConfig {
  std::vector<std::string> source;
  std::vector<std::string> held_out;
  std::int64_t documents_per_step = 640;
  std::int64_t sequence_tokens = 512;
  std::int64_t eval_every = 200;
  std::int64_t eval_documents = 512;
  std::int64_t samples = 64;
  MixConfig mix;
  NewModelConfig new_model;
};

struct EvalConfig {
  std::vector<std::string> benches;
  std::string dir = "bench";
  std::int64_t every = 10;
  // Samples per problem: the paper's avg@32, avg@4 (MinervaMath) and avg@10 (code).
  IntegerMap n = {{"aime24", 32},   {"aime25", 32}, {"aime26", 32},       {"hmmt_feb25", 32},
                  {"minerva", 4},   {"math500", 4}, {"amc23", 32},        {"gsm8k", 1},
                  {"mbppplus", 10}, {"lcb", 10},    {"humanevalplus", 10}};
  std::vector<std::int64_t> k;
  double temperature = 0.7;
  double top_p = 0.95;
  std::int64_t max_sequence_tokens = 32'768;
};

struct CheckpointConfig {
  std::int64_t every = 10;
  std::int64_t keep = 2;
  std::string keep_best;
};

struct WandbConfig {
  std::string project, entity, name, group;  // empty: what the environment says
  std::vector<std::string> tags;
  double finish_s = 30;
};

struct RecordConfig {
  std::string dir = "runs/run";
  std::int64_t rollouts_every = 0;
  std::vector<std::string> loggers = {"tensorboard"};
  bool tensorboard = true;
  WandbConfig wandb;

  // Whether a logger is in the list and not switched off.
  bool logs_to(const std::string& logger) const;
};

class RunConfig {
 public:
  RunConfig();
  RunConfig(const RunConfig&) = delete;  // the options point into this object
  RunConfig& operator=(const RunConfig&) = delete;

  OptionSet& options() { return options_; }
  const OptionSet& options() const { return options_; }

  // Applies method.preset and other implied values, then validates. Call it after all sources are
  // read.
  void resolve();
  // Checks combinations of keys that contradict each other. Throws InputError.
  void validate() const;

  ModelConfig model;
  DataConfig data;
  RolloutConfig rollout;
  MethodConfig method;
  ContextConfig context;
  AdvantageConfig advantage;
  LossConfig loss;
  RewardConfig reward;
  OptimConfig optim;
  TrainConfig train;
  DistConfig dist;
  PretrainConfig pretrain;
  EvalConfig eval;
  CheckpointConfig checkpoint;
  RecordConfig record;

 private:
  void describe_data_and_model();
  void describe_method();
  void describe_gate();
  void validate_method() const;
  void describe_teacher();
  void imply_teacher();
  void validate_teacher() const;
  void describe_objective();
  void imply_objective();
  void validate_objective() const;
  void describe_reward();
  void validate_reward() const;
  void describe_training();
  void describe_pretraining();
  void describe_results();

  OptionSet options_;
};

// A base in a format of its own is frozen, so training needs something to train beside it.
// InputError without.
void check_base(const ModelConfig& model);

}  // namespace antisd::inline config
