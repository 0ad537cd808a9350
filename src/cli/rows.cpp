#include "cli/rows.h"

#include <iostream>
#include <memory>

#include <fmt/format.h>

#include "core/error.h"
#include "io/jsonl.h"

namespace antisd {
namespace {

Json with_id(const Json& row, Json result) {
  const auto id = row.find("id");
  if (id == row.end()) return result;
  Json out = {{"id", *id}};
  out.update(result);
  return out;
}

}  // namespace

void add_row_stream_options(CLI::App& app, RowStreamOptions& options) {
  app.add_option("FILE", options.file, "JSONL file, one object a line; - is standard input")
      ->capture_default_str();
  app.add_flag("--keep-going", options.keep_going,
               "a bad row becomes {\"id\",\"error\"} instead of the end");
}

int run_rows(const RowStreamOptions& options, const std::function<Json(const Json& row)>& work) {
  const bool from_stdin = options.file == "-";
  const auto reader = from_stdin ? std::make_unique<JsonlReader>(std::cin, "standard input")
                                 : std::make_unique<JsonlReader>(options.file);
  JsonlWriter writer(std::cout, "standard output");
  for (;;) {
    Json row;
    try {
      if (!reader->next(row)) break;
      writer.write(with_id(row, work(row)));
    } catch (const InputError& error) {
      std::string message = error.message();
      const std::string where = reader->where();
      if (!options.keep_going) {
        writer.flush();
        if (message.starts_with(where)) throw;
        throw InputError(message, {.where = where});
      }
      writer.write(
          with_id(row.is_object() ? row : Json::object(), {{"error", std::move(message)}}));
    }
    // Whoever feeds rows by hand or through a pipe waits for each answer.
    if (from_stdin) writer.flush();
  }
  writer.flush();
  return 0;
}

const Json& required_field(const Json& row, const std::string& name) {
  const auto field = row.find(name);
  if (field != row.end()) return *field;
  std::vector<std::string> present;
  for (const auto& [key, _] : row.items())
    present.push_back("'" + key + "'");
  throw InputError(
      fmt::format("the row has no '{}'", name),
      {.remedy = present.empty() ? "the row is empty"
                                 : fmt::format("it has {}", fmt::join(present, ", "))});
}

const std::string& required_string(const Json& row, const std::string& name) {
  const Json& field = required_field(row, name);
  if (!field.is_string()) {
    throw InputError(fmt::format("'{}' is {}", name, field.type_name()),
                     {.remedy = "give a string"});
  }
  return field.get_ref<const std::string&>();
}

}  // namespace antisd
