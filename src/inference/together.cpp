#include "inference/together.h"

#include <algorithm>

#include "core/check.h"
#include "dist/agreement.h"
#include "ops/tensor_errors.h"

namespace antisd::inline inference {

void write(MessageWriter& writer, const std::vector<TokenScores>& scores) {
  writer.add(std::uint64_t{scores.size()});
  for (const TokenScores& one : scores)
    writer.add(one.logp).add(one.entropy);
}

std::vector<TokenScores> read_scores(MessageReader& reader) {
  std::vector<TokenScores> scores(reader.take<std::uint64_t>());
  for (TokenScores& one : scores) {
    one.logp = reader.take_vector<float>();
    one.entropy = reader.take_vector<float>();
  }
  return scores;
}

void write(MessageWriter& writer, const Response& response) {
  writer.add(response.ids)
      .add(response.sampling_logp)
      .add(response.raw_logp)
      .add(response.finish)
      .add(response.text);
}

Response read_response(MessageReader& reader) {
  Response response;
  response.ids = reader.take_vector<TokenId>();
  response.sampling_logp = reader.take_vector<float>();
  response.raw_logp = reader.take_vector<float>();
  response.finish = reader.take<FinishReason>();
  response.text = reader.take_text();
  return response;
}

std::vector<TokenScores> score_together(Communicator& ranks, const CausalLm& model,
                                        std::span<const ScoreRequest> requests,
                                        ScoreOptions options) {
  if (ranks.size() == 1) return score(model, requests, options);
  options.part = static_cast<std::size_t>(ranks.rank());
  options.parts = static_cast<std::size_t>(ranks.size());
  return gather_scores(ranks, [&] {
    std::vector<TokenScores> own;
    model.make_passes({}, [&] { own = score(model, requests, options); });
    return own;
  });
}

std::vector<TokenScores> gather_scores(Communicator& ranks,
                                       const std::function<std::vector<TokenScores>()>& own) {
  const std::vector<std::string> all = gather_agreed(ranks, [&] {
    MessageWriter writer;
    with_tensor_errors([&] { write(writer, own()); });
    return writer.bytes();
  });
  std::vector<TokenScores> scores;
  for (const std::string& message : all) {
    MessageReader reader(message);
    std::vector<TokenScores> found = read_scores(reader);
    scores.resize(found.size());
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (!found[i].logp.empty()) scores[i] = std::move(found[i]);
  }
  return scores;
}

std::vector<SampleGroup> generate_together(Communicator& ranks, RolloutEngine& engine,
                                           const CausalLm& model,
                                           std::span<const RolloutRequest> requests,
                                           const RolloutOptions& options) {
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<RolloutRequest> own;
  std::vector<std::size_t> numbers;  // of those, in `requests`
  for (auto i = static_cast<std::size_t>(ranks.rank()); i < requests.size(); i += size) {
    own.push_back(requests[i]);
    numbers.push_back(i);
  }
  const std::vector<std::string> all = gather_agreed(ranks, [&] {
    MessageWriter found;
    with_tensor_errors([&] {
      model.make_passes({}, [&] {
        if (own.empty()) return;
        engine.generate(model, own, options, [&](SampleGroup& group) {
          found.add(std::uint64_t{numbers[group.request]}).add(std::uint64_t{group.samples.size()});
          for (const Response& sample : group.samples)
            write(found, sample);
        });
      });
    });
    return found.bytes();
  });
  std::vector<SampleGroup> groups;
  for (const std::string& message : all) {
    for (MessageReader reader(message); !reader.empty();) {
      SampleGroup& group = groups.emplace_back();
      group.request = reader.take<std::uint64_t>();
      group.prompt = requests[group.request].prompt;
      for (auto n = reader.take<std::uint64_t>(); n > 0; --n)
        group.samples.push_back(read_response(reader));
    }
  }
  std::ranges::sort(groups, {}, &SampleGroup::request);
  return groups;
}

std::vector<ScoreRequest> given_by_first(Communicator& ranks,
                                         std::span<const ScoreRequest> requests) {
  MessageWriter own;
  for (const ScoreRequest& request : requests)
    own.add(request.prompt_ids).add(request.response_ids);
  const std::string first = first_says(ranks, own.bytes());
  std::vector<ScoreRequest> all;
  for (MessageReader reader(first); !reader.empty();) {
    ScoreRequest& request = all.emplace_back();
    request.prompt_ids = reader.take_vector<TokenId>();
    request.response_ids = reader.take_vector<TokenId>();
  }
  return all;
}

std::vector<RolloutRequest> given_by_first(Communicator& ranks,
                                           std::span<const RolloutRequest> requests) {
  MessageWriter own;
  for (const RolloutRequest& request : requests) {
    ANTISD_CHECK(request.begun.empty() && !request.step);
    own.add(request.prompt_ids).add(request.samples).add(request.prompt);
  }
  const std::string first = first_says(ranks, own.bytes());
  std::vector<RolloutRequest> all;
  for (MessageReader reader(first); !reader.empty();) {
    RolloutRequest& request = all.emplace_back();
    request.prompt_ids = reader.take_vector<TokenId>();
    request.samples = reader.take<int>();
    request.prompt = reader.take<std::uint32_t>();
  }
  return all;
}

}  // namespace antisd::inline inference
