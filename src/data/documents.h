// What `pretrain` learns from: documents of a built-in task, plain text, or chats, one batch per
// step.
//
//   const auto documents = make_documents({.sources = {"countdown:3"}, .seed = 7}, text, report);
//   for (const TrainingDocument& document : documents->batch(/*step=*/12)) ...
//
// The batch of a step is a function of (sources, seed, step) alone, so a run goes on anywhere.
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
  // One call at a time, from any thread; steps in a row are cheapest.
  virtual std::vector<TrainingDocument> batch(std::int64_t step) = 0;
  // Changes with whatever changes the documents.
  virtual std::string fingerprint() const = 0;
};

// How text becomes tokens.
struct DocumentText {
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;
  ScalarMap chat_options;
  std::optional<TokenId> end;  // behind a document of text, and behind a response of a task
};

struct DocumentOptions {
  std::vector<std::string> sources;  // one built-in task, or files of one kind
  MixConfig mix;
  std::int64_t per_step = 640;
  std::int64_t max_tokens = 512;  // of a document
  std::uint64_t seed = 0;
  bool shuffle = true;
};

// `report` hears how many documents there are and what was left out. InputError for no source, an
// unknown one, sources of several kinds, a file without a document, a row that cannot be used, a
// held-out part of a task, or a vocabulary that lacks the task's words.
std::unique_ptr<Documents> make_documents(const DocumentOptions& options, const DocumentText& text,
                                          const std::function<void(const std::string&)>& report);

// The documents whose loss is measured, all at once: the first `count` of the named files, or of a
// task's held-out problems where `sources` names none and `trained` is a task. May be empty.
std::vector<TrainingDocument> held_out_documents(
    const DocumentOptions& trained, const std::vector<std::string>& sources, std::int64_t count,
    const DocumentText& text, const std::function<void(const std::string&)>& report);

// Makes the next batches while the one before is learnt.
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
