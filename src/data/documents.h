// The data of `pretrain`: documents of a built-in task, plain text, or chats, one batch per step.
//
//   const auto documents = make_documents({.sources = {"countdown:3"}, .seed = 7}, text, report);
//   for (const TrainingDocument& document : documents->batch(/*step=*/12)) ...
//
// A step's batch is a function of (sources, seed, step), so a run can resume at any step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/chat_document.h"

namespace antisd::inline data {

class Documents {
 public:
  virtual ~Documents() = default;
  // One call at a time, from any thread; consecutive steps are cheapest.
  virtual std::vector<TrainingDocument> batch(std::int64_t step) = 0;
  // Changes whenever the documents change.
  virtual std::string fingerprint() const = 0;
};

// How text becomes tokens.
struct DocumentText {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;
  ScalarMap chat_options;
  std::optional<TokenId> end;  // after a text document, and after a task's response
};

struct DocumentOptions {
  std::vector<std::string> sources;  // one built-in task, or files of one kind
  MixConfig mix;
  std::int64_t per_step = 640;
  std::int64_t max_tokens = 512;  // per document
  std::uint64_t seed = 0;
  bool shuffle = true;
};

// `report` receives the number of documents and what was skipped. InputError for no source, an
// unknown one, sources of several kinds, a file without documents, an unusable row, the held-out
// part of a task, or a vocabulary without the task's words.
std::unique_ptr<Documents> make_documents(const DocumentOptions& options, const DocumentText& text,
                                          const std::function<void(const std::string&)>& report);

// The documents whose loss is measured: the first `count` of the given files, or of a task's
// held-out problems if `sources` is empty and `trained` is a task. May be empty.
std::vector<TrainingDocument> held_out_documents(
    const DocumentOptions& trained, const std::vector<std::string>& sources, std::int64_t count,
    const DocumentText& text, const std::function<void(const std::string&)>& report);

// Prepares the next batches in the background.
class DocumentsAhead {
 public:
  // Steps [first, last).
  DocumentsAhead(Documents& documents, std::int64_t first, std::int64_t last);
  ~DocumentsAhead();
  DocumentsAhead(const DocumentsAhead&) = delete;
  DocumentsAhead& operator=(const DocumentsAhead&) = delete;

  std::vector<TrainingDocument> next();

 private:
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace antisd::inline data
