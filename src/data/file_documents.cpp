#include "data/file_documents.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/data_source.h"
#include "data/row_reader.h"
#include "io/text_source.h"

namespace antisd::inline data {
namespace {

// Adds the place to an error of `action`.
template <typename Action>
auto at(const std::string& where, Action&& action) {
  try {
    return action();
  } catch (const InputError& error) {
    const std::string inner = error.context().where;
    throw InputError(error.problem(), {.where = inner.empty() ? where : where + ": " + inner,
                                       .remedy = error.context().remedy});
  }
}

class Reading {
 public:
  Reading(const DocumentText& text, std::int64_t max_tokens)
      : text_(text), max_tokens_(std::size_t(max_tokens)) {}

  void add_text(const std::string& document, const std::string& where) {
    expect("text", where);
    if (document.find_first_not_of(" \t\r\n") == std::string::npos)
      throw InputError("the document is empty", {.where = where, .remedy = "leave it out"});
    if (!text_.end) {
      throw InputError("the model's tokenizer has no end-of-sequence token",
                       {.where = where, .remedy = "name one in its tokenizer_config.json"});
    }
    for (const TokenId id : encoded(document, where))
      add_token(id);
    add_token(*text_.end);
    ++documents_;
  }

  void add_chat(const Json& messages, const std::string& where) {
    expect("chats", where);
    if (!chats_) {
      if (!text_.chat) {
        throw InputError("the model has no chat template",
                         {.where = where, .remedy = "give rows with \"text\" instead"});
      }
      chats_.emplace(text_.tokenizer, *text_.chat, text_.chat_options);
    }
    TrainingDocument document = at(where, [&] { return chats_->encode(messages); });
    ++documents_;
    if (document.ids.size() > max_tokens_) {
      ++too_long_;
    } else {
      items_.push_back(std::move(document));
    }
  }

  std::vector<TrainingDocument> finish(const std::function<void(const std::string&)>& report) {
    std::erase_if(items_, [](const TrainingDocument& item) { return item.ids.size() < 2; });
    const std::string shape = kind_ == "text" ? fmt::format(" in {} pieces", items_.size()) : "";
    report(fmt::format(
        "{} documents of {}{}{}", documents_, kind_, shape,
        too_long_ > 0 ? fmt::format("; {} left out: over {} tokens", too_long_, max_tokens_) : ""));
    if (items_.empty()) {
      throw InputError(
          fmt::format("no document is left; {} have more than {} tokens", too_long_, max_tokens_),
          {.remedy = "raise pretrain.sequence_tokens"});
    }
    return std::move(items_);
  }

 private:
  std::vector<TokenId> encoded(const std::string& document, const std::string& where) const {
    return at(where, [&] { return text_.tokenizer.encode(document); });
  }

  void expect(const std::string& kind, const std::string& where) {
    if (kind_.empty()) kind_ = kind;
    if (kind_ == kind) return;
    throw InputError(fmt::format("{} after files of {}", kind, kind_),
                     {.where = where, .remedy = "train on one kind at a time"});
  }

  void add_token(TokenId id) {
    if (items_.empty() || items_.back().ids.size() == max_tokens_) items_.emplace_back();
    items_.back().counts.push_back(!items_.back().ids.empty());
    items_.back().ids.push_back(id);
  }

  const DocumentText& text_;
  std::size_t max_tokens_;
  std::string kind_;
  std::optional<ChatEncoder> chats_;
  std::vector<TrainingDocument> items_;
  std::int64_t documents_ = 0, too_long_ = 0;
};

void read_rows(const std::string& file, Reading& reading) {
  RowReader reader(file);
  bool any = false;
  for (Json row; reader.next(row); any = true) {
    if (row.contains("messages")) {
      reading.add_chat(row["messages"], reader.where());
    } else if (row.contains("text") && row["text"].is_string()) {
      reading.add_text(row["text"].get_ref<const std::string&>(), reader.where());
    } else {
      throw InputError("the row has neither \"messages\" nor \"text\"",
                       {.where = reader.where(),
                        .remedy = "a document is {\"text\": ...} or {\"messages\": [...]}"});
    }
  }
  if (!any)
    throw InputError("the file has no rows",
                     {.where = file, .remedy = "give one document per row"});
}

}  // namespace

std::vector<TrainingDocument> read_documents(
    const std::vector<std::string>& files, const DocumentText& text, std::int64_t max_tokens,
    const std::function<void(const std::string&)>& report) {
  Reading reading(text, max_tokens);
  for (const std::string& file : files) {
    const std::string ending = without_gz(file).extension().string();
    if (ending == ".txt" || ending == ".md") {
      reading.add_text(read_text(file), file);
    } else if (find_source(file).is_data_set) {
      read_rows(file, reading);
    } else if (ending == ".jsonl" || ending == ".json" || ending == ".csv" ||
               ending == ".parquet" || ending == ".pq") {
      read_rows(file, reading);
    } else {
      throw InputError("neither a task nor a file of documents",
                       {.where = file,
                        .remedy = "name countdown:3, countdown:4 or countdown:3+4, or a .txt, "
                                  ".jsonl, .csv or .parquet file, or a data set's name"});
    }
  }
  return reading.finish(report);
}

}  // namespace antisd::inline data
