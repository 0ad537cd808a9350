// The benchmarks of antisd-bench. Each takes the arguments behind its name and returns the exit
// status; `antisd-bench NAME --help` lists its options.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

using Arguments = std::vector<std::string>;

// How fast a tokenizer encodes texts one by one on one thread, and how it bears a megabyte of one
// letter, of white space and of digits. tools/bench_tokenize_peer.py measures PyPI's tokenizers
// alike.
int run_tokenize(const Arguments& arguments);

// Seconds to read each file into a PromptSet.
int run_data(const Arguments& arguments);

// Grades a second over answers in sentences as models write them, and the time to grade a step's
// worth of long rollouts.
int run_grade(const Arguments& arguments);

// Small programs a second inside the full sandbox.
int run_grade_code(const Arguments& arguments);

// Sampling with random weights and no end-of-sequence token: tokens a second, the share of the
// floor (weights and the keys and values of all sequences read once a step, over the measured
// bandwidth) and the time by phase.
int run_rollout(const Arguments& arguments);

// score() on random weights, token_scores alone against its matrix products, and a shared prefix
// against the same sequences apart: time and memory.
int run_score(const Arguments& arguments);

// Forward, backward and AdamW over packed sequences, by part; tokens a second and, on an H200, the
// share of 989 TFLOP/s that 6 N D makes of it.
int run_update(const Arguments& arguments);

// A whole training step with random weights, by phase, and what AntiSD adds to GRPO.
int run_step(const Arguments& arguments);

// A sparse layer's experts against one gated unit of equal FLOPs.
int run_experts(const Arguments& arguments);

// What bf16 or fp16 on a GPU does to log-probabilities, against fp32 on the CPU with the same
// weights, rounded to bf16 for both. The logits of random weights are too flat to show anything:
// they are scaled until the mean entropy is below --entropy nats. On the CPU, which has no bf16
// path, only the last hidden states are rounded to bf16, after one thread has computed one sequence
// at a time: the part of the difference that no bf16 path escapes.
int run_precision(const Arguments& arguments);

}  // namespace antisd::bench
