#include "config/run_config.h"

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline config {

RunConfig::RunConfig() {
  describe_data_and_model();
  describe_method();
  describe_gate();
  describe_training();
  describe_pretraining();
  describe_results();
}

void RunConfig::describe_data_and_model() {
  OptionSet& o = options_;
  o.add("model.path", model.path, "Hugging Face model directory");
  o.add("model.dtype", model.dtype,
        "compute precision; auto is fp32 on a CPU, bf16 on a GPU; fp16 rounds eight times less")
      .one_of({"auto", "fp32", "bf16", "fp16"});
  o.add("model.gradient_checkpointing", model.gradient_checkpointing,
        "recompute each block in the backward pass: less memory, a third more arithmetic");

  o.add("data.train", data.train,
        "training files, JSONL or Parquet, or problems of the built-in task: countdown:3, "
        "countdown:4, countdown:3+4:train:8000:seed=7");
  o.add("data.template", data.template_name,
        "student prompt for rows that are plain problems: math, code, countdown, none, or a text "
        "with "
        "{problem} in it");
  o.add("data.chat_options", data.chat_options,
        "variables for the chat template, e.g. {enable_thinking = false}");
  o.add("data.map", data.map, "our column -> the file's, e.g. {problem = \"question\"}");
  o.add("data.max_prompt_tokens", data.max_prompt_tokens,
        "longer prompts are dropped and counted; unless set, half of rollout.max_sequence_tokens "
        "and at most 2048")
      .at_least(1);
  o.add("data.shuffle", data.shuffle, "a new order each epoch, from the seed");

  o.add("rollout.prompts_per_step", rollout.prompts_per_step, "problems in a step").at_least(1);
  o.add("rollout.group_size", rollout.group_size, "responses per problem").between(2, 4096);
  o.add("rollout.max_sequence_tokens", rollout.max_sequence_tokens, "prompt and response together")
      .at_least(2);
  o.add("rollout.temperature", rollout.temperature, "sampling temperature").above(0);
  o.add("rollout.top_p", rollout.top_p, "nucleus sampling; 1 is off").between(0, 1);
  o.add("rollout.top_k", rollout.top_k, "sample among the k likeliest tokens; 0 is off")
      .at_least(0);
}

void RunConfig::describe_training() {
  OptionSet& o = options_;
  o.add("loss.clip_low", loss.clip_low, "the ratio is clipped below 1 - this").between(0, 1);
  o.add("loss.clip_high", loss.clip_high, "the ratio is clipped above 1 + this").at_least(0);
  o.add("loss.dual_clip", loss.dual_clip,
        "bound on the loss of negative advantages, in units of |A|")
      .above(1);
  o.add("loss.kl_coef", loss.kl_coef,
        "weight of the KL to the frozen reference; 0 keeps no reference")
      .at_least(0);
  o.add("loss.aggregation", loss.aggregation, "mean over the response tokens of the global batch")
      .one_of({"token-mean"});

  o.add("reward.kind", reward.kind, "the grader").one_of({"math", "code", "countdown", "command"});
  o.add("reward.command", reward.command,
        "program of reward.kind = \"command\", with its arguments");
  o.add("reward.timeout_s", reward.timeout_s, "wall-clock seconds for one grade").above(0);
  o.add("reward.give_up_after", reward.give_up_after,
        "end the run after so many steps in a row in which the grader gave not one grade")
      .at_least(1);
  o.add("reward.workers", reward.workers, "grading processes or threads; 0 is one a core")
      .at_least(0);
  o.add("reward.sandbox", reward.sandbox,
        "auto isolates graded code as strongly as the machine allows and refuses where it cannot; "
        "reduced does without namespaces; none runs it unprotected")
      .one_of({"auto", "reduced", "none"});

  o.add("optim.lr", optim.lr, "learning rate").above(0);
  o.add("optim.betas", optim.betas, "AdamW's two decay rates").between(0, 1);
  o.add("optim.eps", optim.eps, "AdamW's epsilon").above(0);
  o.add("optim.weight_decay", optim.weight_decay, "decoupled weight decay").at_least(0);
  o.add("optim.grad_clip", optim.grad_clip, "largest norm of the gradient").above(0);
  o.add("optim.warmup_steps", optim.warmup_steps, "steps of linear warm-up").at_least(0);
  o.add("optim.schedule", optim.schedule, "after warm-up").one_of({"constant", "cosine", "linear"});

  o.add("train.steps", train.steps, "training steps in all").at_least(0);
  o.add("train.seed", train.seed, "decides every random number of the run").at_least(0);
  o.add("train.minibatches", train.minibatches, "optimizer steps per batch of rollouts")
      .at_least(1);
  o.add("train.epochs", train.epochs, "passes over a batch of rollouts").at_least(1);
  o.add("train.micro_batch_tokens", train.micro_batch_tokens,
        "tokens in one forward and backward pass; changes the update by rounding alone")
      .at_least(1);
  o.add("train.init_from", train.init_from,
        "start from another run's checkpoint: weights, optimizer, data cursor and reference");
}

void RunConfig::describe_results() {
  OptionSet& o = options_;
  o.add("eval.benches", eval.benches,
        "names of files in eval.dir, such as aime24; paths; or countdown:4:held-out:512");
  o.add("eval.dir", eval.dir, "where benchmarks that are given by name are looked for");
  o.add("eval.every", eval.every, "evaluate each so many steps; 0 is never").at_least(0);
  o.add("eval.n", eval.n,
        "samples per problem, by benchmark; default is for those not named, else 1")
      .at_least(1);
  o.add("eval.k", eval.k, "pass@k for these k; empty is every power of two up to n").at_least(1);
  o.add("eval.temperature", eval.temperature, "sampling temperature; 0 is greedy").at_least(0);
  o.add("eval.top_p", eval.top_p, "nucleus sampling; 1 is off").between(0, 1);
  o.add("eval.max_sequence_tokens", eval.max_sequence_tokens,
        "prompt and response together (65536 for Olmo-3-Think)")
      .at_least(2);

  o.add("checkpoint.every", checkpoint.every,
        "save each so many steps, and at the end; 0 is the end only")
      .at_least(0);
  o.add("checkpoint.keep", checkpoint.keep, "newest checkpoints kept").at_least(1);
  o.add("checkpoint.keep_best", checkpoint.keep_best,
        "a metric whose best checkpoint is never pruned, e.g. val-core/aime24/acc/mean@32");

  o.add("record.dir", record.dir, "the run directory");
  o.add("record.rollouts_every", record.rollouts_every,
        "dump all rollouts each so many steps; 0 is never")
      .at_least(0);
  o.add("record.tensorboard", record.tensorboard, "write TensorBoard event files too");
}

void RunConfig::validate() const {
  if (optim.betas.size() != 2) {
    throw InputError(fmt::format("optim.betas has {} values", optim.betas.size()),
                     {.remedy = "give two, e.g. [0.9, 0.999]"});
  }
  if (rollout.top_p <= 0 || eval.top_p <= 0) {
    throw InputError("top_p = 0 leaves no token to sample",
                     {.where = rollout.top_p <= 0 ? "rollout.top_p" : "eval.top_p",
                      .remedy = "use 1 to switch it off"});
  }
  if (data.max_prompt_tokens >= rollout.max_sequence_tokens) {
    throw InputError(fmt::format("data.max_prompt_tokens = {} leaves no room for a response in "
                                 "rollout.max_sequence_tokens = {}",
                                 data.max_prompt_tokens, rollout.max_sequence_tokens),
                     {.remedy = "lower the first or raise the second"});
  }
  validate_method();
  if (reward.kind == "command" && reward.command.empty()) {
    throw InputError("reward.kind = \"command\" without reward.command",
                     {.remedy = "name the program that grades"});
  }
}

}  // namespace antisd::inline config
