#include "trainer/rank_messages.h"

#include <algorithm>

#include "core/check.h"

namespace antisd::inline trainer {
namespace {

void write_verdict(MessageWriter& writer, const Verdict& verdict) {
  writer.add(verdict.failed())
      .add(verdict.reward.value_or(0))
      .add(verdict.reason)
      .add(verdict.passed)
      .add(verdict.total)
      .add(verdict.extracted)
      .add(verdict.right.has_value())
      .add(verdict.right.value_or(false))
      .add(std::uint64_t{verdict.parts.size()});
  for (const auto& [name, reward] : verdict.parts)
    writer.add(name).add(reward);
}

Verdict read_verdict(MessageReader& reader) {
  const bool failed = reader.take<bool>();
  const auto reward = reader.take<double>();
  Verdict verdict{.reward = failed ? std::nullopt : std::optional(reward),
                  .reason = reader.take_text()};
  verdict.passed = reader.take<int>();
  verdict.total = reader.take<int>();
  verdict.extracted = reader.take_text();
  const bool has_right = reader.take<bool>(), right = reader.take<bool>();
  if (has_right) verdict.right = right;
  for (auto n = reader.take<std::uint64_t>(); n > 0; --n) {
    std::string name = reader.take_text();
    verdict.parts[std::move(name)] = reader.take<double>();
  }
  return verdict;
}

MicroBatchResult read_result(MessageReader& reader) {
  MicroBatchResult result;
  result.student = read_scores(reader);
  result.teacher = read_scores(reader);
  result.loss = reader.take_vector<double>();
  result.loss_sum = reader.take<double>();
  return result;
}

}  // namespace

void write(MessageWriter& writer, const MicroBatchResult& result) {
  write(writer, result.student);
  write(writer, result.teacher);
  writer.add(result.loss).add(result.loss_sum);
}

void exchange_results(Communicator& ranks, std::vector<MicroBatchResult>& results) {
  if (ranks.size() == 1) return;
  const auto size = static_cast<std::size_t>(ranks.size());
  MessageWriter own;
  for (auto i = static_cast<std::size_t>(ranks.rank()); i < results.size(); i += size)
    write(own, results[i]);
  const std::vector<std::string> all = ranks.gather(own.bytes());
  for (std::size_t r = 0; r < size; ++r) {
    MessageReader reader(all[r]);
    for (std::size_t i = r; i < results.size(); i += size)
      results[i] = read_result(reader);
  }
}

void write(MessageWriter& writer, const Rollouts& rollouts) {
  writer.add(rollouts.grades.asked).add(rollouts.grades.graded).add(rollouts.grades.last_reason);
  writer.add(std::uint64_t{rollouts.warnings.size()});
  for (const std::string& text : rollouts.warnings)
    writer.add(text);
  writer.add(std::uint64_t{rollouts.batch.groups.size()});
  for (const ResponseGroup& group : rollouts.batch.groups) {
    writer.add(std::uint64_t{group.responses.size()});
    for (const Response& response : group.responses) {
      write(writer, response);
      write_verdict(writer, response.verdict);
    }
  }
}

Rollouts join_rollouts(std::span<const std::string> messages) {
  Rollouts all;
  for (const std::string& message : messages) {
    MessageReader reader(message);
    all.grades.asked += reader.take<std::int64_t>();
    all.grades.graded += reader.take<std::int64_t>();
    if (std::string reason = reader.take_text(); !reason.empty())
      all.grades.last_reason = std::move(reason);
    for (auto n = reader.take<std::uint64_t>(); n > 0; --n) {
      // Graders of several ranks meet the same trouble.
      std::string text = reader.take_text();
      if (std::ranges::find(all.warnings, text) == all.warnings.end())
        all.warnings.push_back(std::move(text));
    }
    for (auto n = reader.take<std::uint64_t>(); n > 0; --n) {
      ResponseGroup& group = all.batch.groups.emplace_back();
      for (auto k = reader.take<std::uint64_t>(); k > 0; --k) {
        group.responses.push_back(read_response(reader));
        group.responses.back().verdict = read_verdict(reader);
      }
    }
    ANTISD_CHECK(reader.empty());
  }
  return all;
}

}  // namespace antisd::inline trainer
