#include "trainer/open_groups.h"

#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "trainer/carried_file.h"

namespace antisd::inline trainer {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Response response_of(int tokens, FinishReason finish, std::vector<PolicySpan> policies = {}) {
  Response response;
  for (int i = 0; i < tokens; ++i) {
    response.ids.push_back(i + 3);
    response.sampling_logp.push_back(-0.1f * static_cast<float>(i + 1));
    response.raw_logp.push_back(-0.3f * static_cast<float>(i + 1));
  }
  response.finish = finish;
  response.policies = std::move(policies);
  return response;
}

constexpr auto kStop = FinishReason::kStop, kPaused = FinishReason::kPaused;

TEST(OpenGroups, FreshOnesAreSharedOutByTheirNumber) {
  for (std::size_t count = 0; count < 9; ++count) {
    const std::vector<OpenGroup> groups(count);
    for (std::size_t ranks = 1; ranks < 6; ++ranks) {
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const auto share = share_of(groups, 4, rank, ranks);
        const std::size_t begin = rank * count / ranks, end = (rank + 1) * count / ranks;
        ASSERT_THAT(share, SizeIs(end - begin)) << count << " groups, rank " << rank;
        if (begin < end) EXPECT_EQ(share.data(), groups.data() + begin);
      }
    }
  }
}

// Two responses that go on and eight that begin: five each.
TEST(OpenGroups, CarriedOnesCountByWhatIsLeftToSample) {
  std::vector<OpenGroup> groups(4);
  for (int g = 0; g < 2; ++g)
    groups[g].responses = {response_of(4, kPaused), response_of(2, kStop), response_of(3, kStop),
                           response_of(1, kStop)};
  EXPECT_THAT(share_of(groups, 4, 0, 2), SizeIs(2));
  EXPECT_THAT(share_of(groups, 4, 1, 2), SizeIs(2));
  groups[0].responses[1].finish = kPaused;
  groups.resize(3);  // 2 + 1 + 4
  EXPECT_THAT(share_of(groups, 4, 0, 2), SizeIs(2));
  EXPECT_THAT(share_of(groups, 4, 1, 2), SizeIs(1));
}

TEST(OpenGroups, AGroupIsDoneWithItsLastResponse) {
  std::vector<OpenGroup> groups(3);
  for (std::uint32_t g = 0; g < 3; ++g)
    groups[g].prompt.index = g;
  groups[0].responses = {response_of(3, kStop, {{6, 3}}), response_of(4, kPaused, {{6, 4}})};
  ResponseBatch found;
  found.groups.resize(3);
  found.groups[0].responses = {response_of(3, kStop), response_of(6, kStop)};
  found.groups[1].responses = {response_of(4, kPaused), response_of(2, kStop)};
  found.groups[2].responses = {response_of(1, kStop), response_of(2, FinishReason::kLength)};
  const RolledOut done = settle(groups, found, {.step = 7, .track = true});
  ASSERT_THAT(done.prompts.prompts, SizeIs(2));
  EXPECT_EQ(done.prompts.prompts[0].index, 0u);
  EXPECT_EQ(done.prompts.prompts[1].index, 2u);
  ASSERT_THAT(done.open, SizeIs(1));
  EXPECT_EQ(done.open[0].prompt.index, 1u);
  const auto spans = [](const Response& response) {
    std::vector<std::pair<std::uint32_t, std::int64_t>> all;
    for (const PolicySpan& span : response.policies)
      all.emplace_back(span.step, span.tokens);
    return all;
  };
  EXPECT_THAT(spans(done.batch[0]), ElementsAre(std::pair(6, 3)));
  EXPECT_THAT(spans(done.batch[1]), ElementsAre(std::pair(6, 4), std::pair(7, 2)));
  EXPECT_THAT(spans(done.batch[2]), ElementsAre(std::pair(7, 1)));

  // Another round of the same step: one policy, one span.
  found.groups = {{{response_of(9, kStop), response_of(2, kStop)}}};
  const RolledOut again = settle(done.open, found, {.step = 7});
  EXPECT_THAT(spans(again.batch[0]), ElementsAre(std::pair(7, 9)));

  // One response of 4 tokens is carried; of 12 trained tokens 7 are older; ages 1, 1, 0, 0.
  const PartialCounts counts = count_partial(done.batch, done.open, 7);
  EXPECT_EQ(counts.groups, 1);
  EXPECT_EQ(counts.responses, 1);
  EXPECT_EQ(counts.tokens, 4);
  EXPECT_EQ(counts.old_tokens, 7);
  EXPECT_EQ(counts.trained_tokens, 12);
  EXPECT_EQ(counts.new_tokens, 5 + 4 + 2);
  EXPECT_DOUBLE_EQ(counts.age.mean(), 0.5);
}

TEST(OpenGroups, WithoutTrackingNothingIsNoted) {
  ResponseBatch found;
  found.groups = {{{response_of(2, kStop)}}};
  const RolledOut done = settle(std::vector<OpenGroup>(1), found, {.step = 3});
  EXPECT_THAT(done.batch[0].policies, IsEmpty());
}

class CarriedFile : public ::testing::Test {
 protected:
  CarriedFile() {
    carried_.resize(2);
    carried_[0].prompt.number = 5;
    carried_[0].prompt.step = 2;
    carried_[0].prompt.index = 1;
    carried_[0].responses = {response_of(3, kPaused, {{2, 2}, {3, 1}}),
                             response_of(0, FinishReason::kStop)};
    carried_[1].responses = {response_of(2, FinishReason::kLength, {{4, 2}}),
                             response_of(1, kPaused, {{4, 1}})};
  }
  testing::TemporaryFolder folder_;
  std::vector<OpenGroup> carried_;
};

TEST_F(CarriedFile, ComesBackAsItWas) {
  write_carried(folder_.path(), carried_);
  const Json saved = Json::parse(to_json(carried_).dump());
  const std::vector<OpenGroup> found = read_carried(folder_.path(), saved);
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].prompt.number, 5u);
  EXPECT_EQ(found[0].prompt.step, 2u);
  EXPECT_EQ(found[0].prompt.index, 1u);
  for (std::size_t g = 0; g < 2; ++g) {
    ASSERT_THAT(found[g].responses, SizeIs(2));
    for (std::size_t i = 0; i < 2; ++i) {
      const Response &a = found[g].responses[i], &b = carried_[g].responses[i];
      EXPECT_EQ(a.ids, b.ids);
      EXPECT_EQ(a.sampling_logp, b.sampling_logp);
      EXPECT_EQ(a.raw_logp, b.raw_logp);
      EXPECT_EQ(a.finish, b.finish);
    }
  }
  EXPECT_EQ(to_json(found), saved);
}

TEST_F(CarriedFile, NothingIsNoFile) {
  write_carried(folder_.path(), {});
  EXPECT_THAT(std::filesystem::directory_iterator(folder_.path()),
              std::filesystem::directory_iterator());
  EXPECT_THAT(read_carried(folder_.path(), Json::array()), IsEmpty());
}

TEST_F(CarriedFile, WhatDoesNotFitTogetherIsRefused) {
  const Json saved = to_json(carried_);
  const auto refused = [&](const Json& json) {
    return error_of([&] { read_carried(folder_.path(), json); });
  };
  EXPECT_THAT(refused(saved), HasSubstr("carried.safetensors"));  // it is missing
  write_carried(folder_.path(), carried_);
  Json other = saved;
  other[0]["responses"][0]["policies"][0][1] = 3;
  EXPECT_THAT(refused(other), HasSubstr("another number of tokens"));
  other[0]["responses"][0]["policies"][0][1] = -1;
  EXPECT_THAT(refused(other), HasSubstr("wrote -1 tokens"));
  other[0]["responses"][0]["policies"][0][1] = std::int64_t{1} << 62;
  EXPECT_THAT(refused(other), HasSubstr("tokens of a response"));
  other = saved;
  other[1]["responses"][0]["finish"] = "bored";
  EXPECT_THAT(refused(other), HasSubstr("'bored'"));
  other = saved;
  other[1].erase("index");
  EXPECT_THAT(refused(other), HasSubstr("not one of ours"));
  EXPECT_THAT(refused(Json("text")), HasSubstr("not one of ours"));
  write_file_atomically(folder_ / "carried.safetensors", "rubbish");
  EXPECT_THAT(refused(saved), HasSubstr("carried.safetensors"));
}

}  // namespace
}  // namespace antisd::inline trainer
