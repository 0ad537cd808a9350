#include "config/run_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline config {

RunConfig::RunConfig() {
  describe_data_and_model();
  describe_method();
  describe_teacher();
  describe_gate();
  describe_objective();
  describe_training();
  describe_pretraining();
  describe_results();
}

void RunConfig::describe_data_and_model() {
  OptionSet& o = options_;
  o.add("model.path", model.path,
        "Hugging Face model directory, or the name of a model in the local cache: "
        "Qwen/Qwen3-0.6B, with a revision Qwen/Qwen3-0.6B@main")
      .common_in({"train", "sweep", "pretrain"});
  o.add("model.dtype", model.dtype,
        "precision of the forward and backward passes; auto is fp32 on a CPU and bf16 on a GPU; "
        "fp16 has three more bits of mantissa than bf16")
      .one_of({"auto", "fp32", "bf16", "fp16"});
  o.add("model.base_dtype", model.base_dtype,
        "format of the frozen matrices below adapters: model is that of model.dtype; int8 has a "
        "scale per row, nf4 has 4 bits and a scale per 64 elements")
      .one_of({"model", "int8", "nf4"});
  o.add("model.gradient_checkpointing", model.gradient_checkpointing,
        "whether the backward pass recomputes what layers computed, which takes less memory and a "
        "third more arithmetic: true: every layer; false: none; auto: only as many as memory asks "
        "for, chosen when the run starts. On a CPU the result is the same, bit for bit")
      .one_of({"auto", "true", "false"});
  o.add("model.lora.rank", model.lora.rank,
        "rank of low-rank adapters, which are trained in place of the weights; 0: none")
      .at_least(0)
      .common_in({"train", "sweep"});
  o.add("model.lora.alpha", model.lora.alpha, "adapters are scaled by alpha / rank").above(0);
  o.add("model.lora.targets", model.lora.targets,
        "projections with an adapter, by their names in the model's files");
  o.add("model.lora.experts", model.lora.experts,
        "also in the experts of a sparse model; its router never has one");

  o.add(
       "data.train", data.train,
       "training files (JSONL, CSV or Parquet), names of data sets in the local Hugging Face cache "
       "(openai/gsm8k, openai/gsm8k:main/train), or problems of the built-in task: countdown:3, "
       "countdown:4, countdown:3+4:train:8000:seed=7")
      .common_in({"train", "sweep"});
  o.add("data.template", data.template_name,
        "student prompt for rows that hold a plain problem: math, code, countdown, none, or a text "
        "that contains {problem}")
      .common_in({"eval"});
  o.add("data.chat_options", data.chat_options,
        "variables for the chat template, e.g. {enable_thinking = false}");
  o.add("data.map", data.map, "column names, ours = the file's, e.g. {problem = \"question\"}");
  o.add("data.max_prompt_tokens", data.max_prompt_tokens,
        "longer prompts are dropped and counted; unless set, half of rollout.max_sequence_tokens, "
        "at most 2048")
      .at_least(1);
  o.add("data.shuffle", data.shuffle, "reorder the problems every epoch, from the seed");

  o.add("rollout.prompts_per_step", rollout.prompts_per_step, "problems per step")
      .at_least(1)
      .common_in({"train", "sweep"});
  o.add("rollout.group_size", rollout.group_size, "responses per problem (G)")
      .between(2, 4096)
      .common_in({"train", "sweep"});
  o.add("rollout.max_sequence_tokens", rollout.max_sequence_tokens,
        "limit on the tokens of prompt and response together")
      .at_least(2)
      .common_in({"train", "sweep"});
  o.add("rollout.temperature", rollout.temperature, "sampling temperature").above(0);
  o.add("rollout.top_p", rollout.top_p,
        "nucleus sampling: sample from the smallest set of tokens with at least this probability; "
        "1 is off")
      .between(0, 1);
  o.add("rollout.top_k", rollout.top_k, "sample from the k most likely tokens; 0 is off")
      .at_least(0);
  o.add("rollout.refill", rollout.refill,
        "dynamic sampling: groups whose rewards are all equal are replaced by groups of further "
        "prompts, in at most so many rounds a step; 0 is off")
      .at_least(0);
  o.add("rollout.partial", rollout.partial,
        "responses that are longer than rollout.partial_tokens are not waited for: the next step "
        "goes on with them, and trains on a group once all its responses have ended");
  o.add("rollout.partial_tokens", rollout.partial_tokens,
        "new tokens of a response in one step; a good choice is the length that nine responses in "
        "ten do not reach; unless set, a quarter of rollout.max_sequence_tokens")
      .at_least(1);
}

void RunConfig::describe_training() {
  OptionSet& o = options_;
  describe_reward();

  o.add("optim.lr", optim.lr, "learning rate").above(0).common_in({"train", "sweep", "pretrain"});
  o.add("optim.betas", optim.betas, "AdamW's two decay rates").between(0, 1);
  o.add("optim.eps", optim.eps, "AdamW's epsilon").above(0);
  o.add("optim.weight_decay", optim.weight_decay, "decoupled weight decay").at_least(0);
  o.add("optim.grad_clip", optim.grad_clip, "the gradient is scaled down to at most this norm")
      .above(0);
  o.add("optim.warmup_steps", optim.warmup_steps,
        "steps of linear learning-rate warm-up; 0 is none")
      .at_least(0);
  o.add("optim.schedule", optim.schedule, "learning rate after the warm-up")
      .one_of({"constant", "cosine", "linear"});
  o.add("optim.offload", optim.offload,
        "what of AdamW's state lies in pinned host memory, from where each update streams it: "
        "none; moments: both moments; all: also the fp32 masters; auto: the first of these with "
        "which the run fits in the GPU's memory. The result is the same")
      .one_of({"auto", "none", "moments", "all"});

  o.add("train.steps", train.steps, "total number of training steps")
      .at_least(0)
      .common_in({"train", "sweep", "pretrain"});
  o.add("train.seed", train.seed, "seed of every random number of the run")
      .at_least(0)
      .common_in({"pretrain"});
  o.add("train.minibatches", train.minibatches,
        "mini-batches that a step's rollouts are cut into, one optimizer step each")
      .at_least(1);
  o.add("train.epochs", train.epochs, "passes over a step's rollouts").at_least(1);
  o.add("train.micro_batch_tokens", train.micro_batch_tokens,
        "tokens per forward and backward pass; affects memory and, beyond rounding, no result")
      .at_least(1);
  o.add(
       "train.micro_batches", train.micro_batches,
       "at least so many micro-batches in a mini-batch, of about the same cost; runs with the same "
       "number give the same bits on a CPU, whatever the number of ranks; 0: one per rank")
      .at_least(0);
  o.add(
      "train.deterministic", train.deterministic,
      "on a GPU: sums of the update have a fixed order, so that the same seed gives the same bits; "
      "attention's backward pass takes longer, and the prompt of a group is computed for each "
      "response");
  o.add("train.init_from", train.init_from,
        "start from another run's checkpoint: weights, optimizer, data cursor and reference; "
        "empty: from model.path");

  o.add("dist.shard", dist.shard,
        "what the ranks of a run divide: none: nothing; optimizer: masters and moments; gradients: "
        "also "
        "the gradients, which are freed while the backward pass goes on; weights: also those of "
        "the layers during an update, which recomputes every layer; auto: the first of "
        "these that fits in memory. The result is the same")
      .one_of({"auto", "none", "optimizer", "gradients", "weights"});
  o.add("dist.shard_over", dist.shard_over,
        "who divides it: all ranks, or the ranks of each node, so that less goes over the network")
      .one_of({"all", "node"});
  o.add("dist.backend", dist.backend,
        "what the ranks' tensors travel by; auto: nccl between GPUs, gloo on the CPU")
      .one_of({"auto", "gloo", "nccl"});
  o.add("dist.silence_s", dist.silence_s,
        "seconds without a sign of life after which a rank counts as lost, which ends the run")
      .at_least(1);
}

void RunConfig::describe_results() {
  OptionSet& o = options_;
  o.add("eval.benches", eval.benches,
        "benchmarks: names of files in eval.dir (aime24), paths, data sets "
        "(openai/gsm8k:main/test), or countdown:4:held-out:512; empty: none")
      .common_in({"train", "sweep", "eval"});
  o.add("eval.dir", eval.dir, "directory of the benchmarks that are given by name")
      .common_in({"eval"});
  o.add("eval.every", eval.every, "evaluate every N steps and at the end; 0 is never")
      .at_least(0)
      .common_in({"train", "sweep"});
  o.add("eval.n", eval.n,
        "samples per problem, by benchmark; the entry \"default\" is for those not listed, else 1")
      .at_least(1)
      .common_in({"eval"});
  o.add("eval.k", eval.k, "report pass@k for these k; empty: every power of two up to n")
      .at_least(1)
      .common_in({"eval"});
  o.add("eval.temperature", eval.temperature, "sampling temperature; 0 is greedy")
      .at_least(0)
      .common_in({"eval"});
  o.add("eval.top_p", eval.top_p,
        "nucleus sampling: sample from the smallest set of tokens with at least this probability; "
        "1 is off")
      .between(0, 1)
      .common_in({"eval"});
  o.add("eval.max_sequence_tokens", eval.max_sequence_tokens,
        "limit on the tokens of prompt and response together (65536 for Olmo-3-Think)")
      .at_least(2)
      .common_in({"eval"});

  o.add("checkpoint.every", checkpoint.every,
        "save a checkpoint every N steps and at the end; 0: only at the end")
      .at_least(0)
      .common_in({"train", "sweep", "pretrain"});
  o.add("checkpoint.keep", checkpoint.keep, "number of newest checkpoints to keep").at_least(1);
  o.add("checkpoint.keep_best", checkpoint.keep_best,
        "metric whose best checkpoint is never deleted, e.g. val-core/aime24/acc/mean@32; empty: "
        "none");

  o.add("record.dir", record.dir, "the run directory").common_in({"train", "sweep", "pretrain"});
  o.add("record.rollouts_every", record.rollouts_every,
        "write all rollouts to a file every N steps; 0 is never")
      .at_least(0);
  o.add("record.loggers", record.loggers,
        "where metrics go besides metrics.jsonl; wandb needs its Python package")
      .one_of({"tensorboard", "wandb"});
  o.add("record.tensorboard", record.tensorboard,
        "false: no TensorBoard files, also where record.loggers names them");
  o.add("record.wandb.project", record.wandb.project,
        "wandb's project; empty: WANDB_PROJECT, or else antisd");
  o.add("record.wandb.entity", record.wandb.entity,
        "user or team at wandb; empty: WANDB_ENTITY, or else the account's own");
  o.add("record.wandb.name", record.wandb.name,
        "the run's name at wandb; empty: WANDB_NAME, or else the run directory's");
  o.add("record.wandb.group", record.wandb.group,
        "group of runs at wandb; empty: WANDB_RUN_GROUP, or else none");
  o.add("record.wandb.tags", record.wandb.tags, "tags at wandb; empty: WANDB_TAGS, or else none");
  o.add("record.wandb.finish_s", record.wandb.finish_s,
        "seconds that the end of a run waits for wandb to send the rest")
      .between(0, 3600);
}

bool RecordConfig::logs_to(const std::string& logger) const {
  if (logger == "tensorboard" && !tensorboard) return false;
  return std::ranges::find(loggers, logger) != loggers.end();
}

void check_base(const ModelConfig& model) {
  if (model.base_dtype == "model" || model.lora.rank > 0) return;
  throw InputError(
      fmt::format(
          "model.base_dtype = \"{}\" freezes the model's matrices, so that nothing would be "
          "trained",
          model.base_dtype),
      {.remedy = "set model.lora.rank, or leave model.base_dtype out"});
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
  if (dist.shard == "weights" && model.gradient_checkpointing == "false") {
    throw InputError(
        "dist.shard = \"weights\" recomputes every layer in the backward pass, but "
        "model.gradient_checkpointing is false",
        {.remedy = "leave model.gradient_checkpointing out, or use dist.shard = "
                   "\"gradients\""});
  }
  validate_method();
  validate_teacher();
  validate_objective();
  validate_reward();
}

}  // namespace antisd::inline config
