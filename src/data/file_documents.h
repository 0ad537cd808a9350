// Documents in files: .txt (one document per file), .jsonl with {"text"} or {"messages"} (one
// document per row), .json and Parquet likewise.
#pragma once

#include "data/documents.h"

namespace antisd::inline data {

// Text documents, each with its end token, are concatenated and cut into pieces of `max_tokens`
// (the last may be shorter); every token of a piece except its first is in the loss. Chats are not
// cut; longer ones are skipped, and `report` gets their number. All files are text, or all are
// chats. InputError with file and line.
std::vector<TrainingDocument> read_documents(const std::vector<std::string>& files,
                                             const DocumentText& text, std::int64_t max_tokens,
                                             const std::function<void(const std::string&)>& report);

}  // namespace antisd::inline data
