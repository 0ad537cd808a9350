// Merging compared with a brute-force version: repeatedly merge the leftmost pair of the lowest
// rank.
#include "text/tokenizer/bpe.h"

#include <map>
#include <random>

#include <gtest/gtest.h>

namespace antisd::inline text {
namespace {

struct Model {
  Vocabulary vocabulary;
  std::vector<std::pair<std::string, std::string>> merges;

  // Letters a to c and random merges of existing tokens.
  explicit Model(int seed, int merge_count) {
    std::mt19937 random(seed);
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::map<std::string, int> known = {{"a", 0}, {"b", 1}, {"c", 2}};
    std::map<std::pair<std::string, std::string>, int> used;
    for (int i = 0; i < merge_count; ++i) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (left.size() + right.size() > 24 || !used.emplace(std::pair(left, right), 0).second)
        continue;
      merges.emplace_back(left, right);
      if (known.emplace(left + right, static_cast<int>(tokens.size())).second) {
        tokens.push_back(left + right);
      }
    }
    for (const auto& [token, id] : known)
      vocabulary.add(token, id, "test");
    vocabulary.finish("test");
  }

  BpeModel bpe() const {
    std::vector<Merge> list;
    for (const auto& [left, right] : merges)
      list.push_back({left, right});
    return BpeModel(vocabulary, list, {}, "test");
  }

  std::vector<TokenId> brute_force(std::string_view text) const {
    std::vector<std::string> symbols;
    for (const char c : text)
      symbols.emplace_back(1, c);
    while (true) {
      std::size_t best_rank = merges.size(), best = 0;
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        for (std::size_t rank = 0; rank < best_rank; ++rank) {
          if (merges[rank].first == symbols[i] && merges[rank].second == symbols[i + 1]) {
            best_rank = rank;
            best = i;
          }
        }
      }
      if (best_rank == merges.size()) break;
      symbols[best] += symbols[best + 1];
      symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    std::vector<TokenId> ids;
    for (const std::string& symbol : symbols)
      ids.push_back(*vocabulary.find(symbol));
    return ids;
  }
};

TEST(BpeModel, EqualsBruteForce) {
  std::mt19937 random(3);
  for (int seed = 0; seed < 40; ++seed) {
    const Model model(seed, 5 + seed * 2);
    const BpeModel bpe = model.bpe();
    for (const int length : {0, 1, 2, 5, 20, 47, 48, 49, 50, 90, 200}) {
      std::string text;
      const int letters = 1 + static_cast<int>(random() % 3);
      for (int i = 0; i < length; ++i)
        text += static_cast<char>('a' + random() % letters);
      std::vector<TokenId> ids;
      bpe.encode(text, ids);
      ASSERT_EQ(ids, model.brute_force(text)) << seed << " " << text;
    }
  }
}

TEST(BpeModel, ALongPieceTakesNoTime) {
  const Model model(5, 60);
  const BpeModel bpe = model.bpe();
  std::vector<TokenId> ids;
  bpe.encode(std::string(4'000'000, 'a'), ids);  // quadratic work would take more than an hour
  std::size_t bytes = 0;
  for (const TokenId id : ids)
    bytes += model.vocabulary.token(id).size();
  EXPECT_EQ(bytes, 4'000'000u);
}

TEST(ByteSymbols, AreTheOnesOfGpt2) {
  EXPECT_EQ(bytes_to_symbols(" a\n"), "ĠaĊ");
  EXPECT_EQ(byte_to_symbol(0), "Ā");
  EXPECT_EQ(byte_to_symbol(0xAD), "Ń");
  EXPECT_EQ(symbols_to_bytes("Ġaé"), std::string(" a\xE9"));
  EXPECT_EQ(symbols_to_bytes("日"), std::nullopt);
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  EXPECT_EQ(symbols_to_bytes(bytes_to_symbols(all)), all);
}

}  // namespace
}  // namespace antisd::inline text
