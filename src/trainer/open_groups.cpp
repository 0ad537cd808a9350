#include "trainer/open_groups.h"

#include <algorithm>

#include "core/check.h"

namespace antisd::inline trainer {
namespace {

std::int64_t tokens_of(std::span<const PolicySpan> policies) {
  std::int64_t tokens = 0;
  for (const PolicySpan& span : policies)
    tokens += span.tokens;
  return tokens;
}

std::int64_t tokens_of_step(const Response& response, std::uint32_t step) {
  const bool any = !response.policies.empty() && response.policies.back().step == step;
  return any ? response.policies.back().tokens : 0;
}

// What the response has beyond `policies` is this step's.
void note_policy(Response& response, std::vector<PolicySpan> policies, std::uint32_t step) {
  const std::int64_t added = std::ssize(response.ids) - tokens_of(policies);
  ANTISD_CHECK(added >= 0);
  if (added > 0 && !policies.empty() && policies.back().step == step) {
    policies.back().tokens += added;
  } else if (added > 0) {
    policies.push_back({step, added});
  }
  response.policies = std::move(policies);
}

}  // namespace

std::size_t OpenGroup::to_sample(std::size_t group_size) const {
  if (responses.empty()) return group_size;
  return static_cast<std::size_t>(std::ranges::count_if(responses, &Response::paused));
}

std::vector<OpenGroup> open_groups(PromptBatch prompts) {
  std::vector<OpenGroup> groups;
  for (Prompt& prompt : prompts.prompts)
    groups.push_back({std::move(prompt)});
  return groups;
}

std::span<const OpenGroup> share_of(std::span<const OpenGroup> groups, std::size_t group_size,
                                    std::size_t rank, std::size_t ranks) {
  std::vector<std::size_t> sums;  // responses up to each group
  std::size_t all = 0;
  for (const OpenGroup& group : groups)
    sums.push_back(all += group.to_sample(group_size));
  const auto begin_of = [&](std::size_t part) {
    return static_cast<std::size_t>(std::ranges::upper_bound(sums, part * all / ranks) -
                                    sums.begin());
  };
  return groups.subspan(begin_of(rank), begin_of(rank + 1) - begin_of(rank));
}

RolledOut settle(std::vector<OpenGroup> groups, ResponseBatch found, SettleOptions options) {
  ANTISD_CHECK_EQ(groups.size(), found.groups.size());
  RolledOut out;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<Response>& responses = found.groups[g].responses;
    const std::vector<Response>& before = groups[g].responses;
    for (std::size_t i = 0; i < responses.size() && (options.track || !before.empty()); ++i)
      note_policy(responses[i], before.empty() ? std::vector<PolicySpan>() : before[i].policies,
                  options.step);
    if (std::ranges::any_of(responses, &Response::paused)) {
      out.open.push_back({std::move(groups[g].prompt), std::move(responses)});
    } else {
      out.prompts.prompts.push_back(std::move(groups[g].prompt));
      out.batch.groups.push_back(std::move(found.groups[g]));
    }
  }
  return out;
}

PartialCounts count_partial(const ResponseBatch& trained, std::span<const OpenGroup> carried,
                            std::uint32_t step) {
  PartialCounts counts{.groups = std::ssize(carried)};
  for (const OpenGroup& group : carried) {
    for (const Response& response : group.responses) {
      counts.new_tokens += tokens_of_step(response, step);
      if (!response.paused()) continue;
      ++counts.responses;
      counts.tokens += std::ssize(response.ids);
    }
  }
  for (std::size_t r = 0; r < trained.size(); ++r) {
    const Response& response = trained[r];
    counts.age.add(response.policies.empty() ? 0 : step - response.policies.front().step);
    const std::int64_t fresh = tokens_of_step(response, step);
    counts.new_tokens += fresh;
    counts.trained_tokens += std::ssize(response.ids);
    counts.old_tokens += std::ssize(response.ids) - fresh;
  }
  return counts;
}

}  // namespace antisd::inline trainer
