// The benchmarks of antisd-bench. Each takes the arguments after its name and returns the exit
// status; `antisd-bench NAME --help` lists its options.
#pragma once

#include <string>
#include <vector>

namespace antisd::bench {

using Arguments = std::vector<std::string>;

// How fast a tokenizer encodes texts one by one on one thread, and its speed on a megabyte of one
// letter, of white space and of digits. tools/bench_tokenize_peer.py measures PyPI's tokenizers in
// the same way.
int run_tokenize(const Arguments& arguments);

// Seconds to read each file into a PromptSet.
int run_data(const Arguments& arguments);

// Grades per second over answers in typical sentences, and the time to grade a step's worth of long
// rollouts.
int run_grade(const Arguments& arguments);

// Small programs per second in the full sandbox.
int run_grade_code(const Arguments& arguments);

// Sampling with random weights and no end-of-sequence token: tokens per second, the share of the
// lower bound (weights and the keys and values of all sequences read once per step, at the measured
// bandwidth) and the time by phase.
int run_rollout(const Arguments& arguments);

// The time to sample a token of each row of random logits, flat and peaked, by filter.
int run_sample(const Arguments& arguments);

// score() with random weights, token_scores compared with its matrix products, and a shared prefix
// compared with the same sequences unshared: time and memory.
int run_score(const Arguments& arguments);

// Forward, backward and AdamW over packed sequences, by part; tokens per second and, on an H200, 6
// N D as a share of 989 TFLOP/s. With --exchange also what a rank of several would wait for the
// exchange of gradients and weights.
int run_update(const Arguments& arguments);

// A whole training step with random weights, by phase, and AntiSD's cost on top of GRPO.
int run_step(const Arguments& arguments);

// What each rank does on the host in a step besides passes over the model: messages, contexts, the
// gate, losses, metrics and the deal of the work, for synthetic responses, by number of ranks.
int run_ranks(const Arguments& arguments);

// A sparse layer's experts compared with one gated unit of equal FLOPs, and each of their products
// alone, by torch's GPU code or ours (--grouped): TFLOP/s, share of the peak, bytes.
int run_experts(const Arguments& arguments);

// Attention over equal, ragged and long-tailed lengths, behind a shared prefix and with a window:
// TFLOP/s of what was chosen and of each code that a GPU has.
int run_attention(const Arguments& arguments);

// The effect of bf16 or fp16 on a GPU on log-probabilities, compared with fp32 on the CPU; both use
// the same weights, rounded to bf16. The logits of random weights are too flat to show anything, so
// they are scaled until the mean entropy is below --entropy nats. On the CPU, which has no bf16
// path, only the last hidden states are rounded to bf16, after one thread has computed one sequence
// at a time: the part of the difference that every bf16 path has.
int run_precision(const Arguments& arguments);

}  // namespace antisd::bench
