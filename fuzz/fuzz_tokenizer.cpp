// Bytes as a tokenizer.json; if it loads, a text is encoded and decoded: the input after a NUL
// byte.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/utf8.h"
#include "text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using antisd::Tokenizer;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  std::string text = "Hello, w\u00F6rld! 12 \u65E5\u672C\n  <|im_end|> don't \U0001F600 ";
  if (end < input.size()) text += antisd::replace_invalid_utf8(input.substr(end + 1));
  try {
    const Tokenizer tokenizer = Tokenizer::from_json(input.substr(0, end), "fuzz");
    const auto ids = tokenizer.encode(text, /*add_special_tokens=*/true);
    tokenizer.decode(ids);
    tokenizer.decode(ids, /*skip_special_tokens=*/true);
    for (const antisd::TokenId id : ids)
      tokenizer.id_to_token(id);
  } catch (const antisd::Error&) {
  }
  return 0;
}
