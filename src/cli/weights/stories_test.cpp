// stories260K, a trained Llama: its legacy file, converted by a script, gives the continuation that
// its author published. The script computes the continuation independently, in the file's own
// interleaved format.

#include <cstdlib>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>

#include "core/testing.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "model/weights.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline cli {
namespace {

using ::testing::StartsWith;

TEST(Stories, ContinuesAsPublished) {
  const std::filesystem::path source = testing::shared_data("weights/stories260K");
  ANTISD_NEEDS_SHARED(source);
  const std::filesystem::path repository = ANTISD_SOURCE_DIR;
  const std::filesystem::path python = repository / ".deps/reference/bin/python";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "needs `make references`";
  const testing::TemporaryFolder folder;
  const std::string command =
      fmt::format("OMP_NUM_THREADS=1 '{}' '{}' '{}' '{}' >/dev/null", python.string(),
                  (repository / "tools/convert_stories260k.py").string(), source.string(),
                  folder.path().string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Json greedy = Json::parse(read_file(folder / "greedy.json"));
  const auto expected = greedy["ids"].get<std::vector<std::int32_t>>();
  ASSERT_EQ(expected.size(), 201u);
  EXPECT_TRUE(greedy["is_published_text"].get<bool>());

  const CausalLm model = load_model(folder.path(), at::kCPU, compute_dtype(at::kCPU));
  EXPECT_EQ(model.shape().parameter_count(), 260'032);
  const at::NoGradGuard no_grad;
  // The most likely token at every position is the next one: by induction, the greedy continuation.
  const at::Tensor hidden = model.hidden_states(pack({&expected, 1}, at::kCPU));
  const at::Tensor likeliest = at::linear(hidden, model.head().weight).argmax(-1);
  for (std::size_t i = 0; i + 1 < expected.size(); ++i)
    EXPECT_EQ(likeliest[static_cast<std::int64_t>(i)].item<std::int32_t>(), expected[i + 1]) << i;

  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const std::string story = tokenizer.decode(expected, /*skip_special_tokens=*/true);
  EXPECT_THAT(story, StartsWith("Once upon a time, there was a little girl"));
  EXPECT_EQ(story, greedy["text"].get<std::string>());
  const std::string opening = "Once upon a time";
  const std::vector<TokenId> ids = tokenizer.encode(opening, /*add_special_tokens=*/true);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), expected.begin()));
}

}  // namespace
}  // namespace antisd::inline cli
