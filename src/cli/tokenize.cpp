// `tokenize` and `detokenize`.
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/rows.h"
#include "hub/cache.h"
#include "text/tokenizer/tokenizer.h"

namespace antisd::inline cli {
namespace {

struct TokenizeOptions {
  std::string model;
  bool special_tokens = false;  // add them, or leave them out
  RowStreamOptions rows;
};

}  // namespace

std::function<int()> add_tokenize(CLI::App& app) {
  const auto options = std::make_shared<TokenizeOptions>();
  app.add_option("MODEL", options->model, "Hugging Face model directory, or a name")->required();
  add_row_stream_options(app, options->rows);
  app.add_flag(
      "--add-special-tokens", options->special_tokens,
      "add the tokens that the tokenizer puts around a text, e.g. a beginning-of-text token");
  app.footer("Row in: {\"text\"}. Row out: {\"ids\"}.");
  return [options] {
    const Tokenizer tokenizer = Tokenizer::load(model_folder(options->model));
    return run_rows(options->rows, [&](const Json& row) -> Json {
      return {{"ids", tokenizer.encode(required_string(row, "text"), options->special_tokens)}};
    });
  };
}

std::function<int()> add_detokenize(CLI::App& app) {
  const auto options = std::make_shared<TokenizeOptions>();
  app.add_option("MODEL", options->model, "Hugging Face model directory, or a name")->required();
  add_row_stream_options(app, options->rows);
  app.add_flag("--skip-special-tokens", options->special_tokens,
               "leave special tokens out of the text");
  app.footer("Row in: {\"ids\"}. Row out: {\"text\"}.");
  return [options] {
    const Tokenizer tokenizer = Tokenizer::load(model_folder(options->model));
    return run_rows(options->rows, [&](const Json& row) -> Json {
      return {{"text", tokenizer.decode(ids_of(row, "ids"), options->special_tokens)}};
    });
  };
}

}  // namespace antisd::inline cli
