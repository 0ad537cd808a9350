// Groups that are being sampled. With rollout.partial a response gets a number of new tokens in a
// step; a group with one that has not ended by then is carried into the next step, whole, and
// goes on there. It is trained on in the step in which its last response ends.
//
//   std::vector<OpenGroup> open = open_groups(fresh);   // behind those that were carried
//   ResponseBatch found = sampler.generate(model, fresh, on_group);
//   RolledOut ended = settle(std::move(open), std::move(found), {.step = now, .track = true});
//   use(ended.prompts, ended.batch);
//   open = std::move(ended.open);                       // into the next step
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "algo/moments.h"
#include "algo/response.h"
#include "data/prompts.h"

namespace antisd::inline trainer {

struct OpenGroup {
  Prompt prompt;
  std::vector<Response> responses = {};  // one per sample; empty: none has begun

  std::size_t to_sample(std::size_t group_size) const;  // responses that have not ended
};

std::vector<OpenGroup> open_groups(PromptBatch prompts);

// A rank's part of the groups: runs of about the same number of responses to sample, in order.
// May be empty.
std::span<const OpenGroup> share_of(std::span<const OpenGroup> groups, std::size_t group_size,
                                    std::size_t rank, std::size_t ranks);

// Groups whose responses have all ended, and the others.
struct RolledOut {
  PromptBatch prompts = {};
  ResponseBatch batch = {};  // one group per prompt
  std::vector<OpenGroup> open = {};
};

struct SettleOptions {
  std::uint32_t step = 0;  // whose policy sampled what is new
  bool track = false;      // fill Response::policies; groups that were carried have it anyway
};

// `found` holds what was sampled of each of the groups.
RolledOut settle(std::vector<OpenGroup> groups, ResponseBatch found, SettleOptions options);

// For the metrics of a step.
struct PartialCounts {
  std::int64_t groups = 0, responses = 0, tokens = 0;  // carried: responses that have not ended
  Moments age;                                         // steps since a trained response began
  std::int64_t old_tokens = 0, trained_tokens = 0;     // old: sampled by an earlier policy
  std::int64_t new_tokens = 0;                         // sampled in this step, trained or carried
};
PartialCounts count_partial(const ResponseBatch& trained, std::span<const OpenGroup> carried,
                            std::uint32_t step);

}  // namespace antisd::inline trainer
