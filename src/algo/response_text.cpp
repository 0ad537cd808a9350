#include "algo/response_text.h"

namespace antisd::inline algo {

void add_texts(std::span<Response> responses, const Tokenizer& tokenizer) {
  for (Response& response : responses) {
    std::vector<TokenId> known = response.ids;
    std::erase_if(known, [&](TokenId id) { return id >= tokenizer.vocabulary_size(); });
    response.text = tokenizer.decode(known, /*skip_special_tokens=*/true);
  }
}

}  // namespace antisd::inline algo
