// `render`: applies a model's chat template to messages.
#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/rows.h"
#include "core/error.h"
#include "hub/cache.h"
#include "io/atomic_file.h"
#include "text/chat_template.h"
#include "text/chat_variables.h"
#include "text/tokenizer/tokenizer_config.h"

namespace antisd::inline cli {
namespace {

struct RenderOptions {
  std::string model;
  std::string template_file;
  RowStreamOptions rows;
};

}  // namespace

std::function<int()> add_render(CLI::App& app) {
  const auto options = std::make_shared<RenderOptions>();
  app.add_option("MODEL", options->model, "Hugging Face model directory, or a name");
  add_row_stream_options(app, options->rows);
  app.add_option("--template", options->template_file,
                 "a Jinja file instead of the model's own template");
  app.footer(
      "Row in: {\"messages\", \"tools\"?, \"add_generation_prompt\"? (true), ...}; every other key "
      "is a\n"
      "variable of the template. Row out: {\"text\"}.");
  return [options] {
    // Without MODEL the only positional is FILE.
    if (!options->template_file.empty() && options->rows.file == "-" && !options->model.empty() &&
        !std::filesystem::is_directory(options->model) &&
        pinned_model(options->model) == options->model) {
      options->rows.file = std::exchange(options->model, "");
    }
    if (options->model.empty() && options->template_file.empty()) {
      throw InputError("neither MODEL nor --template was given",
                       {.remedy = "see `antisd render --help`"});
    }
    const ChatTemplate chat_template =
        options->template_file.empty()
            ? ChatTemplate::load(model_folder(options->model))
            : ChatTemplate(read_file(options->template_file), options->template_file);
    Json special_tokens = Json::object();
    if (!options->model.empty())
      special_tokens = TokenizerConfig::load(model_folder(options->model)).special_tokens;
    return run_rows(options->rows, [&](const Json& row) -> Json {
      return {{"text", chat_template.render(chat_variables(row, special_tokens))}};
    });
  };
}

}  // namespace antisd::inline cli
